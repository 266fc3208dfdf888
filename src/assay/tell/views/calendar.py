"""Planned work as a calendar: iCalendar (RFC 5545), to which people subscribe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.decide.state.operation_record import OperationRecord
from assay.model.text.lists import format_nodes
from assay.model.timestamps import parse_time

LINE_BYTES = 73
"""A line has at most 75 bytes; what is folded begins with a space."""
STATUSES = {"planned": "CONFIRMED", "cancelled": "CANCELLED"}


def format_calendar(records: Iterable[OperationRecord]) -> str:
    """Return the calendar. An event keeps its id when it is deferred, and its number tells which version is newer."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//assay//planned work//EN"]
    for record in records:
        lines += _list_lines(record)
    return "".join(f"{part}\r\n" for line in [*lines, "END:VCALENDAR"] for part in _fold(line))


def _list_lines(record: OperationRecord) -> list[str]:
    nodes = format_nodes([each.node for each in record.nodes])
    return [
        "BEGIN:VEVENT",
        f"UID:{record.id}@assay",
        f"SEQUENCE:{record.position}",
        f"DTSTAMP:{_format_moment(record.updated_at)}",
        f"DTSTART:{_format_moment(record.starts_at)}",
        f"DTEND:{_format_moment(record.ends_at)}",
        f"SUMMARY:{_escape(f'{record.operation} of {nodes}')}",
        f"DESCRIPTION:{_escape(f'{record.reason} ({record.state})')}",
        f"STATUS:{STATUSES.get(record.state, 'CONFIRMED')}",
        "END:VEVENT",
    ]


def _format_moment(at: str) -> str:
    return f"{parse_time(at):%Y%m%dT%H%M%SZ}"


def _escape(text: str) -> str:
    for sign in ("\\", ";", ","):
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def _fold(line: str) -> Iterator[str]:
    """Yield a line in parts that are short enough, none of which ends within a character."""
    part = ""
    for sign in line:
        if len((part + sign).encode()) > LINE_BYTES:
            yield part
            part = " "
        part += sign
    yield part
