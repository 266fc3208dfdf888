"""A BMC's event log as Redfish gives it: a LogEntryCollection, one LogEntry, or a list of them, as JSON.

A BMC's event log as `ipmitool sel list` and `sel elist` print it.

A line is `2 | 11/21/2026 | 18:00:00 UTC | Power Supply PS1 | Failure detected | Asserted`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from assay.model.log_message import LineTally, LogMessage, replace_unencodable


def find_log_entries(document: Any) -> list[Any] | None:
    """Return the entries of a document, None where it is no event log."""
    if isinstance(document, Mapping):
        document = document.get("Members", [document] if "Message" in document or "MessageId" in document else None)
    return document if isinstance(document, list) else None


def parse_redfish_entries(entries: list[Any], tally: LineTally) -> Iterator[LogMessage]:
    """Yield the entries in the order of their times; one without a message cannot be read."""
    read = [entry for entry in map(_parse_redfish_entry, entries) if entry]
    tally.lines += len(entries)
    tally.unreadable += len(entries) - len(read)
    asserted = [message for message, well in read if not well]
    yield from sorted(asserted, key=lambda message: (message.at is not None, message.at or 0.0))


def _parse_redfish_entry(entry: Any) -> tuple[LogMessage, bool] | None:
    """Return an entry and whether it says that all is well again, None where it says nothing."""
    if not isinstance(entry, Mapping):
        return None
    said = entry.get("Message") or entry.get("Name")
    if not isinstance(said, str):
        return None
    at = _parse_entry_time(entry.get("EventTimestamp") or entry.get("Created"))
    message_id, sensor = entry.get("MessageId"), entry.get("SensorType")
    message = LogMessage(
        replace_unencodable(said),
        at.timestamp() if at else None,
        at.isoformat() if at else None,
        part=replace_unencodable(_origin(entry) or (sensor if isinstance(sensor, str) else "")),
        message_id=replace_unencodable(message_id) if isinstance(message_id, str) else "",
    )
    return message, "OK" in (entry.get("Severity"), entry.get("MessageSeverity"))


def _origin(entry: Mapping[str, Any]) -> str:
    links = entry.get("Links")
    origin = links.get("OriginOfCondition") if isinstance(links, Mapping) else entry.get("OriginOfCondition")
    place = origin.get("@odata.id") if isinstance(origin, Mapping) else None
    return place.rstrip("/").rpartition("/")[2] if isinstance(place, str) else ""


def _parse_entry_time(text: Any) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


SEL_LINE = re.compile(r"\s*[0-9a-fA-F]+ *\|([^|]*)\|([^|]*)\|([^|]*)\|(.*)")
SEL_LINE_WITHOUT_TIME = re.compile(r"\s*[0-9a-fA-F]+ *\| *(?:Pre-Init|Unknown)[^|]*\|()([^|]*)\|(.*)", re.IGNORECASE)


def is_sel_line(line: bytes) -> bool:
    """Whether a line is an entry of such a log."""
    return line.count(b"|") >= 3 and re.match(rb"\s*[0-9a-fA-F]+ *\|", line) is not None


def parse_sel_lines(lines: Iterable[str], tally: LineTally) -> Iterator[LogMessage]:
    """Yield the entries of the log that were asserted: what was deasserted is over."""
    for line in filter(str.strip, lines):
        tally.lines += 1
        entry = _parse_sel_line(line)
        if entry is None:
            tally.unreadable += 1
        elif entry.text:
            yield entry


def _parse_sel_line(line: str) -> LogMessage | None:
    """Return an entry, one without text where it tells of an end, None where it cannot be read."""
    match = SEL_LINE_WITHOUT_TIME.match(line) or SEL_LINE.match(line)
    if match is None:
        return None
    *when, sensor, event = (field.strip() for field in match.groups())
    said = [field.strip() for field in event.split("|")]
    over = "Deasserted" in said
    text = "" if over else ", ".join([sensor, *(field for field in said if field not in ("Asserted", ""))])
    at = _parse_sel_time(" ".join(when))
    if at is None:
        return LogMessage(text, part=sensor)
    return LogMessage(text, at.timestamp(), at.replace(tzinfo=None).isoformat(), part=sensor)


def _parse_sel_time(text: str) -> datetime | None:
    """Return the time of an entry, in the BMC's zone, which nobody knows. None before its clock was set."""
    for form in ("%m/%d/%Y %H:%M:%S", "%m/%d/%y %H:%M:%S"):
        try:
            return datetime.strptime(" ".join(text.split()[:2]), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None
