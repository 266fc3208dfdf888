"""Reads a BMC's event log in a file into the branch `bmc.events`: Redfish LogEntry members, or text of a BMC's tools.

In text, entries that report no problem are left out. A clock without a zone is taken as UTC. A SEL has no severities.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from assay.adapters.bmc.event_log import EventLogCursor, parse_log_entry
from assay.model.log_message import LineTally, LogMessage
from assay.model.reading import value
from assay.observe.logs.event_text_reader import SAMPLE_LINES, find_text_form, group_by_host, read_event_text
from assay.observe.logs.sel_and_redfish_entries import find_log_entries, load_documents
from assay.observe.recordings.recording_format import Branches, RecordingError, RecordingFormat

Event = dict[str, str]
SAMPLED_BYTES = 64 * 1024


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
        found = find_log_entries(document)
        if found is None:
            raise RecordingError("a collection has Members")
        if isinstance(document, dict) and "Members@odata.nextLink" in document:
            raise RecordingError("it is one page of several; put the Members of all into one list")
        members += found
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
    tally, lines = LineTally(), [line for line in _text(content).splitlines(keepends=True) if line.strip()]
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
    events = [_sel_event(ident, message, message.at) for ident, message in read if message.at is not None]
    return {**build_event_branches(events), ("bmc", "undated_events"): value(len(read) - len(events))}


def _sel_event(ident: str, message: LogMessage, at: float) -> Event:
    when = datetime.fromtimestamp(at, UTC).isoformat()
    plain = {"id": ident, "at": when, "severity": message.severity, "message": message.text}
    return {**plain, "message_id": message.message_id, "part": message.part}


def build_event_branches(events: Sequence[Event]) -> Branches:
    """Return the branches `events`, oldest first, and `event_log`: the cursor after them and counts by severity."""
    ordered = sorted(events, key=lambda event: datetime.fromisoformat(event["at"]))
    now = EventLogCursor().after(ordered)
    counts = {"critical": value(now.critical), "warning": value(now.warning)}
    return {("bmc", "events"): value(ordered), ("bmc", "event_log"): {"cursor": value(str(now)), **counts}}


SEL = RecordingFormat("a BMC's event log as text", _is_sel, _read_sel, ("bmc", "broken_log"))
