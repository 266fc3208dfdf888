"""The forms of a BMC's event log: text, as one of several tools prints it, and Redfish entries as JSON.

Redfish gives a LogEntryCollection, one LogEntry, or a list of them; tools write one a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from assay.model.log_message import LineTally, LogMessage, replace_unencodable
from assay.observe.logs.event_forms import CRITICAL
from assay.observe.logs.log_form import LogQuery, UnknownLogForm
from assay.observe.logs.record_forms import DOCUMENT_START

MAY_BE_EVENT_TEXT = re.compile(
    rb"(?:[A-Za-z0-9][\w.,\[\]/-]*: )?"
    rb"\s*(?:[0-9a-fA-F]{1,8}\s*[|,:]|ID\b|SEL |Record:|SeqNumber)"
)
"""How lines of event logs as text begin, perhaps behind a host.

Without one, a kernel log need not wait for their readers to be loaded.
"""
STREAM_SPEAKS = re.compile(rb"(?:id|event|retry)?:")
"""Lines of a stream of server-sent events that hold no event."""
MAX_LOG_BYTES = 256 * 1024 * 1024


class SelForm:
    """An event log as text: of ipmitool, FreeIPMI or racadm."""

    name = "event logs as text (ipmitool sel list, ipmi-sel, racadm)"
    is_bmc_log = True

    def rate(self, sample: Sequence[bytes]) -> float:
        """Return the share of lines that are of one of the tools, 0 unless they are more than half."""
        if not any(map(MAY_BE_EVENT_TEXT.match, sample)):
            return 0.0
        from assay.observe.logs.event_text import find_text_form

        return find_text_form([line.decode(errors="replace") for line in sample])[1]

    def read(self, pieces: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
        """Yield the entries that report a problem. Raises UnknownLogForm for too much text."""
        from assay.observe.logs.event_text import read_event_text

        content = _read_whole(pieces).decode(errors="replace")
        yield from (message for _, message in read_event_text(content.splitlines(keepends=True), query.tally))


class RedfishLogForm:
    """A JSON document of Redfish LogEntry resources."""

    name = "a Redfish LogEntryCollection"
    is_bmc_log = True

    def rate(self, sample: Sequence[bytes]) -> float:
        """Return a rating below that of any line of another form: a log in JSON lines begins like a document."""
        first = next((line for line in sample if not STREAM_SPEAKS.match(line)), b"").removeprefix(b"data:")
        return 0.001 if DOCUMENT_START.match(first.lstrip()) else 0.0

    def read(self, pieces: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
        """Yield the entries by time. Raises UnknownLogForm for JSON that is no event log, and for too much of it."""
        try:
            documents = load_documents(_read_whole(pieces))
        except (ValueError, RecursionError):
            raise UnknownLogForm from None
        lists = [find_log_entries(document) for document in documents]
        entries = [entry for some in lists for entry in some or ()]
        if None in lists or not (any(map(_parse_redfish_entry, entries)) or all(map(_is_empty_log, documents))):
            raise UnknownLogForm
        query.tally.lines += not entries
        yield from parse_redfish_entries(entries, query.tally)


SEL_FORM, REDFISH_FORM = SelForm(), RedfishLogForm()


def _read_whole(pieces: Iterable[bytes]) -> bytearray:
    """Return a whole log. Raises UnknownLogForm where it is larger than the log of any BMC."""
    content = bytearray()
    for piece in pieces:
        content += piece
        if len(content) > MAX_LOG_BYTES:
            raise UnknownLogForm
    return content


def load_documents(content: bytes | bytearray) -> list[Any]:
    """Return the whole document, or one of each line."""
    try:
        return [json.loads(content)]
    except ValueError:
        lines = (line.removeprefix(b"data:") for line in content.splitlines() if not STREAM_SPEAKS.match(line))
        return [json.loads(line) for line in lines if line.strip()]


def _is_empty_log(document: Any) -> bool:
    """Whether a document is the collection of a log without an entry."""
    names = f"{document.get('@odata.type')} {document.get('@odata.id')}" if isinstance(document, Mapping) else ""
    return ("LogEntryCollection" in names or "/LogServices/" in names) and document.get("Members") == []


def find_log_entries(document: Any) -> list[Any] | None:
    """Return the entries in a JSON document, None where it is no event log."""
    if isinstance(document, Mapping):
        own = [document] if "Message" in document or "MessageId" in document else None
        document = document.get("Members", document.get("Events", own))
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
    message_id = entry.get("MessageId")
    sensor = entry.get("SensorType")
    levels = {str(entry.get(name)).lower() for name in ("Severity", "MessageSeverity")}
    message = LogMessage(
        replace_unencodable(text),
        at.timestamp() if at else None,
        at.isoformat() if at else None,
        part=replace_unencodable(_part(entry) or (sensor if isinstance(sensor, str) else "")),
        message_id=replace_unencodable(message_id) if isinstance(message_id, str) else "",
        severity="" if CRITICAL.isdisjoint(levels) else "Critical",
    )
    return message, "ok" in levels


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
