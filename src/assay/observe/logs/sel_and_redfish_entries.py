"""The forms of a BMC's event log: the lines of `ipmitool sel list` and `sel elist`, and Redfish entries as JSON.

A line is `2 | 11/21/2026 | 18:00:00 UTC | Power Supply PS1 | Failure detected | Asserted`. Redfish gives a
LogEntryCollection, one LogEntry, or a list of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from assay.model.log_message import LineTally, LogMessage, replace_unencodable
from assay.observe.logs.log_form_protocol import LogQuery, UnknownLogForm

MAX_REDFISH_BYTES = 256 * 1024 * 1024
SEL_LINE = re.compile(r"\s*[0-9a-fA-F]+ *\|([^|]*)\|([^|]*)\|([^|]*)\|(.*)")
SEL_LINE_WITHOUT_TIME = re.compile(r"\s*[0-9a-fA-F]+ *\| *(?:Pre-Init|Unknown)[^|]*\|()([^|]*)\|(.*)", re.IGNORECASE)


class SelForm:
    """The lines of `ipmitool sel list`."""

    name, is_bmc_log = "ipmitool sel list", True

    def rate(self, sample: Sequence[bytes]) -> float:
        """Return the share of lines that are entries, 0 unless they are more than half."""
        share = sum(map(is_sel_line, sample)) / len(sample)
        return share if share > 0.5 else 0.0

    def read(self, pieces: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
        """Yield the entries that were asserted."""
        lines = (line for piece in pieces for line in piece.decode(errors="replace").splitlines())
        return parse_sel_lines(lines, query.tally)


class RedfishLogForm:
    """A JSON document of Redfish LogEntry resources."""

    name, is_bmc_log = "a Redfish LogEntryCollection", True

    def rate(self, sample: Sequence[bytes]) -> float:
        """Return a rating below that of any line of another form: a log in JSON lines begins like a document."""
        return 0.001 if sample[0].lstrip()[:1] in (b"{", b"[") else 0.0

    def read(self, pieces: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
        """Yield the entries by time. Raises UnknownLogForm for JSON that is no event log, and for too much of it."""
        content = bytearray()
        for piece in pieces:
            content += piece
            if len(content) > MAX_REDFISH_BYTES:
                raise UnknownLogForm
        try:
            entries = find_log_entries(json.loads(content))
        except (ValueError, RecursionError):
            entries = None
        if entries is None:
            raise UnknownLogForm
        yield from parse_redfish_entries(entries, query.tally)


SEL_FORM, REDFISH_FORM = SelForm(), RedfishLogForm()


def find_log_entries(document: Any) -> list[Any] | None:
    """Return the entries in a JSON document, None where it is no event log."""
    if isinstance(document, Mapping):
        document = document.get("Members", [document] if "Message" in document or "MessageId" in document else None)
    return document if isinstance(document, list) else None


def parse_redfish_entries(entries: list[Any], tally: LineTally) -> Iterator[LogMessage]:
    """Yield the messages of entries by time, without those that report OK. Entries without a message are unreadable."""
    parsed = [entry for entry in map(_parse_redfish_entry, entries) if entry]
    tally.lines += len(entries)
    tally.unreadable += len(entries) - len(parsed)
    problems = [message for message, is_ok in parsed if not is_ok]
    yield from sorted(problems, key=lambda message: (message.at is not None, message.at or 0.0))


def _parse_redfish_entry(entry: Any) -> tuple[LogMessage, bool] | None:
    """Return the message of an entry and whether it reports OK, None for an entry without a message."""
    if not isinstance(entry, Mapping):
        return None
    text = entry.get("Message") or entry.get("Name")
    if not isinstance(text, str):
        return None
    at = _parse_entry_time(entry.get("EventTimestamp") or entry.get("Created"))
    message_id, sensor = entry.get("MessageId"), entry.get("SensorType")
    message = LogMessage(
        replace_unencodable(text),
        at.timestamp() if at else None,
        at.isoformat() if at else None,
        part=replace_unencodable(_part(entry) or (sensor if isinstance(sensor, str) else "")),
        message_id=replace_unencodable(message_id) if isinstance(message_id, str) else "",
        severity="Critical" if "Critical" in (entry.get("Severity"), entry.get("MessageSeverity")) else "",
    )
    return message, "OK" in (entry.get("Severity"), entry.get("MessageSeverity"))


def _part(entry: Mapping[str, Any]) -> str:
    """Return the last name in the path of an entry's OriginOfCondition, "" where it has none."""
    links = entry.get("Links")
    origin = links.get("OriginOfCondition") if isinstance(links, Mapping) else entry.get("OriginOfCondition")
    path = origin.get("@odata.id") if isinstance(origin, Mapping) else None
    return path.rstrip("/").rpartition("/")[2] if isinstance(path, str) else ""


def _parse_entry_time(text: Any) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def is_sel_line(line: bytes) -> bool:
    """Return whether a line is an entry of `ipmitool sel list`."""
    return line.count(b"|") >= 3 and re.match(rb"\s*[0-9a-fA-F]+ *\|", line) is not None


def parse_sel_lines(lines: Iterable[str], tally: LineTally) -> Iterator[LogMessage]:
    """Yield the entries that were asserted; a deasserted one is over."""
    for line in filter(str.strip, lines):
        tally.lines += 1
        entry = _parse_sel_line(line)
        if entry is None:
            tally.unreadable += 1
        elif entry.text:
            yield entry


def _parse_sel_line(line: str) -> LogMessage | None:
    """Return the message of an entry (without text where it was deasserted), None where it cannot be parsed."""
    match = SEL_LINE_WITHOUT_TIME.match(line) or SEL_LINE.match(line)
    if match is None:
        return None
    *when, sensor, event = (field.strip() for field in match.groups())
    fields = [field.strip() for field in event.split("|")]
    is_over = "Deasserted" in fields
    text = "" if is_over else ", ".join([sensor, *(field for field in fields if field not in ("Asserted", ""))])
    at = _parse_sel_time(" ".join(when))
    if at is None:
        return LogMessage(text, part=sensor)
    return LogMessage(text, at.timestamp(), at.replace(tzinfo=None).isoformat(), part=sensor)


def _parse_sel_time(text: str) -> datetime | None:
    """Return the time of an entry, in the BMC's unknown zone. None for entries from before its clock was set."""
    for form in ("%m/%d/%Y %H:%M:%S", "%m/%d/%y %H:%M:%S"):
        try:
            return datetime.strptime(" ".join(text.split()[:2]), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None
