"""Reads logs in files: a BMC's event log into `bmc.events`, and the kernel's into `kernel_log` and the host's boot.

In a BMC's text, entries that report no problem are left out. A clock without a zone is taken as UTC. A SEL has no
severities. Of a kernel log, lines of other programs are left out, and the last boot counts if boots are named. Rows of
an event log in the same text become the BMC's events.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from assay.adapters.bmc.logs import EventLogCursor, parse_log_entry
from assay.model.errors import AssayError
from assay.model.log_message import LineTally, LogMessage
from assay.model.reading import absent, failed, value
from assay.model.specs.log_patterns import KernelLogMatcher
from assay.node.probe.kernel_log import MAX_LOG_LINES
from assay.observe.logs.event_text import SAMPLE_LINES, find_text_form, group_by_host, read_event_text
from assay.observe.logs.log_reader import LogReader
from assay.observe.logs.sel_and_redfish_entries import find_log_entries, load_documents

BranchPath = tuple[str, str]
"""Channel and branch: `("probe", "gpu")`."""
Branches = Mapping[BranchPath, Any]
Event = dict[str, str]
SAMPLED_BYTES = 64 * 1024
NAME = "the kernel's log"
BOOT_MESSAGE = "Linux version "
XIDS_ONLY = KernelLogMatcher([])
UNCOUNTED = ("probe", "uncounted_fault")
BROKEN = ("probe", "broken_log")
SHOWN_LENGTH = 200


class RecordingError(ValueError):
    """The file has this format's beginning but cannot be read; the text says why."""


@dataclass(frozen=True)
class RecordingFormat:
    """One format. `detects` takes a whole file. `read` takes it and its time, and may raise RecordingError.

    `broken` is the branch that tells that the rest of the file is missing, None where the rest is needed.
    """

    name: str
    detects: Callable[[bytes], bool]
    read: Callable[[bytes, datetime], Branches]
    broken: BranchPath | None = None


def _is_redfish_log(content: bytes) -> bool:
    return content.lstrip()[:1] in (b"{", b"[") and b"LogEntry" in content and b"Created" in content


def _read_redfish_log(content: bytes, _at: datetime) -> Branches:
    entries = _parse_entries(content)
    if not all(isinstance(entry, dict) for entry in entries):
        raise RecordingError("its members are no entries; ask for them with $expand")
    if links := sum(set(entry) == {"@odata.id"} for entry in entries):
        raise RecordingError(f"{links} of its members are only links; ask for them with $expand")
    dated = [entry for entry in entries if _is_time(entry.get("Created"))]
    undated = len(entries) - len(dated)
    return {
        **build_event_branches([parse_log_entry(entry) for entry in dated]),
        ("bmc", "undated_events"): value(undated),
    }


def _parse_entries(content: bytes) -> list[Any]:
    try:
        documents = load_documents(content)
    except (ValueError, RecursionError):
        raise RecordingError("no JSON") from None
    members = list[Any]()
    for document in documents:
        entries = find_log_entries(document)
        if entries is None:
            raise RecordingError("a collection has Members")
        if isinstance(document, dict) and "Members@odata.nextLink" in document:
            raise RecordingError("it is one page of several; put the Members of all into one list")
        members += entries
    return members


def _is_time(text: Any) -> bool:
    try:
        return isinstance(text, str) and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


REDFISH_LOG = RecordingFormat("Redfish log entries", _is_redfish_log, _read_redfish_log)


def _is_sel(content: bytes) -> bool:
    return find_text_form(_text(content[:SAMPLED_BYTES]).splitlines()[:SAMPLE_LINES])[0] is not None


def _read_sel(content: bytes, _at: datetime) -> Branches:
    tally = LineTally()
    lines = [line for line in _text(content).splitlines(keepends=True) if line.strip()]
    _, by_host = group_by_host(lines)
    if len(by_host) > 1:
        shown = ", ".join(sorted(host or "one without a name" for host in by_host)[:3])
        raise RecordingError(f"its lines are of several hosts, such as {shown}; cut out those of one")
    read = list(read_event_text(lines, tally))
    if tally.unreadable:
        raise RecordingError(
            f"{tally.unreadable} of its {tally.lines} lines are no entries of an event log: {tally.unread_line!r}"
        )
    if cut := [message.text for _, message in read if message.is_cut]:
        raise RecordingError(f"it breaks off within its last entry: {cut[0]!r}")
    branches = build_text_branches(read)
    host = next(iter(by_host), "")
    return {**branches, ("bmc", "log_host"): value(host)} if host else branches


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


def build_text_branches(read: Sequence[tuple[str, LogMessage]]) -> Branches:
    """Return the branches of entries in text, each with its id. One without a time is only counted."""
    events = []
    for ident, message in read:
        if message.at is not None:
            at = datetime.fromtimestamp(message.at, UTC).isoformat()
            plain = {"id": ident, "at": at, "severity": message.severity, "message": message.text}
            events.append(plain | {"message_id": message.message_id, "part": message.part})
    return {**build_event_branches(events), ("bmc", "undated_events"): value(len(read) - len(events))}


def build_event_branches(events: Sequence[Event]) -> Branches:
    """Return the branches `events`, oldest first, and `event_log`: the cursor after them and counts by severity."""
    ordered = sorted(events, key=lambda event: datetime.fromisoformat(event["at"]))
    now = EventLogCursor().after(ordered)
    counts = {"critical": value(now.critical), "warning": value(now.warning)}
    return {("bmc", "events"): value(ordered), ("bmc", "event_log"): {"cursor": value(str(now)), **counts}}


SEL = RecordingFormat("a BMC's event log as text", _is_sel, _read_sel, ("bmc", "broken_log"))


class NumberedMessage(NamedTuple):
    """A message and its number: the record's number where it has one, else its place in the file."""

    seq: int
    message: LogMessage


def make_kernel_log_format(matcher: KernelLogMatcher) -> RecordingFormat:
    """Return the format that finds the messages of `matcher` behind whatever stands before them in a line."""
    return RecordingFormat(NAME, partial(_is_kernel_log, matcher), partial(_read_kernel_log, matcher), BROKEN)


def _is_kernel_log(matcher: KernelLogMatcher, content: bytes) -> bool:
    log = _open(matcher, content, datetime.now(UTC))
    try:
        next(log.messages(), None)
    except AssayError:
        return False
    return bool(log.tally.lines) and not log.is_bmc_log


def _open(matcher: KernelLogMatcher, content: bytes, at: datetime) -> LogReader:
    return LogReader(io.BytesIO(content).read, matcher, at, NAME, every=True)


def _read_kernel_log(matcher: KernelLogMatcher, content: bytes, at: datetime) -> Branches:
    """Read the last messages and, if it comes before these, the last message of a boot; count the others as missed."""
    log = _open(matcher, content, at)
    count = 0
    last: deque[NumberedMessage] = deque(maxlen=MAX_LOG_LINES)
    boot_line: NumberedMessage | None = None
    hosts: set[str] = set()
    events: list[tuple[str, LogMessage]] = []
    for numbered in _kernel_messages(log, matcher, events):
        last.append(numbered)
        hosts |= {numbered.message.host} - {""}
        count += 1
        boot_line = numbered if numbered.message.text.startswith(BOOT_MESSAGE) else boot_line
    if not last:
        raise RecordingError("it holds no message of the kernel")
    if len(hosts) > 1:
        raise RecordingError(
            f"its lines are of several hosts, such as {', '.join(sorted(hosts)[:3])}; cut out those of one"
        )
    boot = last[-1].message.boot
    wanted = [numbered for numbered in last if numbered.message.boot == boot]
    if boot_line and boot_line.message.boot == boot and boot_line.seq < wanted[0].seq:
        wanted.insert(0, boot_line)
    booted_at = _find_boot_time(wanted)
    branch = {
        "cursor": value(wanted[-1].seq),
        "lines": value([_line_leaf(numbered, booted_at, wanted[0]) for numbered in wanted]),
        "missed": value(count - len(wanted)),
        "unread": value(log.tally.unreadable),
    }
    own: dict[BranchPath, Any] = {
        ("probe", "kernel_log"): branch,
        ("probe", "host"): _host_branch(booted_at, boot, at, hosts),
    }
    line = log.tally.uncounted[:SHOWN_LENGTH]
    if line and not any(matcher.find_faults(numbered.message.text) for numbered in wanted):
        own[UNCOUNTED] = failed(f"the log names a fault that cannot be counted: {line!r}")
    return {**own, **build_text_branches(events)} if events else own


def _kernel_messages(
    log: LogReader, matcher: KernelLogMatcher, events: list[tuple[str, LogMessage]]
) -> Iterator[NumberedMessage]:
    """Yield the kernel's messages, and those whose program is unknown. A fault that cannot be counted is noted.

    A BMC's entries go to `events`, each with its place in the file.
    """
    for number, message in enumerate(log.messages()):
        if log.is_bmc_log and not message.is_cut:
            events.append((str(number), message))
        elif message.is_cut or log.is_uncounted(message, matcher.find_faults(message.text)):
            log.tally.note_uncounted(message.text)
        elif message.is_of_kernel:
            yield NumberedMessage(number if message.seq is None else message.seq, message)


def _line_leaf(numbered: NumberedMessage, booted_at: float | None, first: NumberedMessage) -> dict[str, Any]:
    """Return a line in the probe's form. Without the kernel's clock, `t_s` counts from the boot or the first line."""
    message = numbered.message
    start = first.message.at if booted_at is None else booted_at
    plain: dict[str, Any] = {"seq": numbered.seq, "text": message.text, "t_s": 0.0}
    plain |= {} if message.level is None else {"level": message.level}
    if message.uptime_s is not None:
        plain["t_s"] = message.uptime_s
    elif message.at is not None and start is not None:
        plain["t_s"] = message.at - start
    return plain if (wall := message.wall) is None else {**plain, "at": datetime.fromtimestamp(wall, UTC).isoformat()}


def _find_boot_time(messages: Sequence[NumberedMessage]) -> float | None:
    """Return the time of the last boot: that of the kernel's first message, or as a line with both clocks tells it."""
    for _, message in reversed(messages):
        if message.wall is not None and message.text.startswith(BOOT_MESSAGE):
            return message.wall
    both = (message for _, message in reversed(messages) if message.wall is not None and message.uptime_s is not None)
    latest = next(both, None)
    return (latest.wall or 0.0) - (latest.uptime_s or 0.0) if latest else None


def _host_branch(booted_at: float | None, boot: str, at: datetime, hosts: Collection[str]) -> dict[str, Any]:
    uptime = absent("the recording does not say when the node booted")
    if booted_at is not None:
        uptime = value((at - datetime.fromtimestamp(booted_at, UTC)) / timedelta(seconds=1))
    if len(boot) == 32:  # the journal writes it without the kernel's dashes
        boot = "-".join((boot[:8], boot[8:12], boot[12:16], boot[16:20], boot[20:]))
    boot_id = value(boot) if boot else absent("the recording names no boot")
    named = next(iter(hosts), "")
    return {"boot_id": boot_id, "uptime_s": uptime} | ({"hostname": value(named)} if named else {})
