"""How pages write numbers and times."""

from __future__ import annotations

from datetime import UTC, datetime

from assay.model.timestamps import parse_time


def format_number(count: int) -> str:
    """Return a number with separators between thousands: `16,384`."""
    return f"{count:,}"


def format_quantity(count: int, noun: str) -> str:
    """Return a number with its noun: `1 node`, `16,384 nodes`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_utc(at: datetime | float | str | None, missing: str = "") -> str:
    """Return a time to the minute: `2026-10-01 14:02 UTC`. A number is seconds since 1970, a text ISO 8601.

    Returns `missing` for None and for an empty text.
    """
    if at is None or at == "":
        return missing
    moment = datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) else at
    return f"{parse_time(moment) if isinstance(moment, str) else moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
