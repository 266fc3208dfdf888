"""Reads a kernel log in a file, in any known form, into the branch `kernel_log` of the probe and the host's boot.

Lines of other programs in a journal are left out. Of a journal that names its boots, the last boot counts. Rows of a
BMC's event log in the same text become the BMC's events.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from assay.model.errors import AssayError
from assay.model.log_message import LogMessage
from assay.model.reading import absent, failed, value
from assay.model.specs.kernel_log_and_xid_patterns import KernelLogMatcher
from assay.node.probe.kernel_log import MAX_LOG_LINES
from assay.observe.logs.log_reader import LogReader
from assay.observe.recordings.bmc_log_recording import build_text_branches
from assay.observe.recordings.recording_format import Branches, BranchPath, RecordingError, RecordingFormat

NAME = "the kernel's log"
BOOT_MESSAGE = "Linux version "
XIDS_ONLY = KernelLogMatcher({})
UNCOUNTED = ("probe", "uncounted_fault")
BROKEN = ("probe", "broken_log")
SHOWN_LENGTH = 200


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
    log, count = _open(matcher, content, at), 0
    last: deque[NumberedMessage] = deque(maxlen=MAX_LOG_LINES)
    boot_line: NumberedMessage | None = None
    hosts, events = set[str](), list[tuple[str, LogMessage]]()
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
    branch = _log_branch(wanted, missed=count - len(wanted), unread=log.tally.unreadable)
    own: dict[BranchPath, Any] = {
        ("probe", "kernel_log"): branch,
        ("probe", "host"): _host_branch(wanted, boot, at, hosts),
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


def _log_branch(messages: Sequence[NumberedMessage], missed: int, unread: int) -> dict[str, Any]:
    booted_at = _find_boot_time(messages)
    lines = [_line_leaf(numbered, booted_at, messages[0]) for numbered in messages]
    return {"cursor": value(messages[-1].seq), "lines": value(lines), "missed": value(missed), "unread": value(unread)}


def _line_leaf(numbered: NumberedMessage, booted_at: float | None, first: NumberedMessage) -> dict[str, Any]:
    """Return a line in the probe's form. Without the kernel's clock, `t_s` counts from the boot or the first line."""
    message, start = numbered.message, first.message.at if booted_at is None else booted_at
    plain: dict[str, Any] = {"seq": numbered.seq, "text": message.text, "t_s": 0.0}
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


def _host_branch(
    messages: Sequence[NumberedMessage], boot: str, at: datetime, hosts: Collection[str]
) -> dict[str, Any]:
    booted_at = _find_boot_time(messages)
    unknown = absent("the recording does not say when the node booted")
    uptime = (
        unknown if booted_at is None else value((at - datetime.fromtimestamp(booted_at, UTC)) / timedelta(seconds=1))
    )
    boot_id = value(_add_dashes(boot)) if boot else absent("the recording names no boot")
    named = next(iter(hosts), "")
    return {"boot_id": boot_id, "uptime_s": uptime} | ({"hostname": value(named)} if named else {})


def _add_dashes(boot: str) -> str:
    """Return a boot id as the kernel writes it; the journal writes it without dashes."""
    return f"{boot[:8]}-{boot[8:12]}-{boot[12:16]}-{boot[16:20]}-{boot[20:]}" if len(boot) == 32 else boot
