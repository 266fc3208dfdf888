"""A BMC's event log as Redfish gives it: a LogEntryCollection, one LogEntry, or a list of them, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from assay.observe.logs.message import Message, Tally, legible


def entries_in(document: Any) -> list[Any] | None:
    """Return the entries of a document, None where it is no event log."""
    if isinstance(document, Mapping):
        document = document.get("Members", [document] if "Message" in document or "MessageId" in document else None)
    return document if isinstance(document, list) else None


def messages(entries: list[Any], tally: Tally) -> Iterator[Message]:
    """Yield the entries in the order of their times; one without a message cannot be read."""
    read = [entry for entry in map(_entry, entries) if entry]
    tally.lines += len(entries)
    tally.unread += len(entries) - len(read)
    asserted = [message for message, well in read if not well]
    yield from sorted(asserted, key=lambda message: (message.at is not None, message.at or 0.0))


def _entry(entry: Any) -> tuple[Message, bool] | None:
    """Return an entry and whether it says that all is well again, None where it says nothing."""
    if not isinstance(entry, Mapping):
        return None
    said = entry.get("Message") or entry.get("Name")
    if not isinstance(said, str):
        return None
    at = _time(entry.get("EventTimestamp") or entry.get("Created"))
    message_id, sensor = entry.get("MessageId"), entry.get("SensorType")
    message = Message(
        legible(said),
        at.timestamp() if at else None,
        at.isoformat() if at else None,
        part=legible(_origin(entry) or (sensor if isinstance(sensor, str) else "")),
        message_id=legible(message_id) if isinstance(message_id, str) else "",
    )
    return message, "OK" in (entry.get("Severity"), entry.get("MessageSeverity"))


def _origin(entry: Mapping[str, Any]) -> str:
    links = entry.get("Links")
    origin = links.get("OriginOfCondition") if isinstance(links, Mapping) else entry.get("OriginOfCondition")
    place = origin.get("@odata.id") if isinstance(origin, Mapping) else None
    return place.rstrip("/").rpartition("/")[2] if isinstance(place, str) else ""


def _time(text: Any) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
