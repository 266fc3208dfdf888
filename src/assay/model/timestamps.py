"""Times as the ledger writes them (ISO 8601 UTC), as numbers, and as text for people.

Durations as people type them: a number and a unit, `90m`, `12h`, `3d` or `2w`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from assay.model.errors import AssayError


def parse_epoch_seconds(at: str) -> float:
    """Return an ISO 8601 time as seconds since 1970, by which times in different notations sort correctly."""
    moment = datetime.fromisoformat(at)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


parse_epoch_seconds_cached = lru_cache(parse_epoch_seconds)
"""`parse_epoch_seconds` with a cache, for times that recur."""


def format_epoch_seconds(at_s: float) -> str:
    """Return seconds since 1970 as an ISO 8601 time in UTC."""
    return datetime.fromtimestamp(at_s, UTC).isoformat()


NEVER = datetime.min.replace(tzinfo=UTC)


def parse_time(at: str) -> datetime:
    """Return an ISO 8601 time in UTC; "" is earlier than every other time."""
    if not at:
        return NEVER
    moment = datetime.fromisoformat(at)
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def format_time(at: datetime | str) -> str:
    """Return a time as ISO 8601 UTC with microseconds: in this form, later times sort after earlier ones."""
    return (parse_time(at) if isinstance(at, str) else at.astimezone(UTC)).isoformat(timespec="microseconds")


def format_minute(at: str) -> str:
    """Return an ISO 8601 time in UTC for people, to the minute: `2026-11-21 19:07 UTC`."""
    return f"{at[:16].replace('T', ' ')} UTC"


def format_second(at: str) -> str:
    """Return an ISO 8601 time in UTC for people, to the second, without a zone: `2026-11-21 19:07:03`."""
    return at[:19].replace("T", " ")


def hours(count: float) -> timedelta:
    """Return `count` hours as a timedelta."""
    return timedelta(hours=count)


def format_ago(at: str, now: datetime) -> str:
    """Return how long ago an ISO 8601 time was, for people: `6 h ago`."""
    return f"{format_duration(max(now - parse_time(at), timedelta()))} ago"


def format_duration(span: timedelta) -> str:
    """Return a duration for people: `40 min`, `6 h`, `3 days`."""
    minutes = span.total_seconds() / 60
    if minutes < 1:
        return f"{span.total_seconds():.0f} s"
    if minutes < 120:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h" if minutes < 72 * 60 else f"{minutes / 1440:.0f} days"


UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_FORM = re.compile(r"(\d{1,4}(?:\.\d+)?)([mhdw])")


def parse_duration(text: str, option: str) -> timedelta:
    """Return a typed duration, longer than none. Raises AssayError, which names the `option` that it was given to."""
    match = _FORM.fullmatch(text.strip().lower())
    if not match or float(match[1]) == 0:
        raise AssayError(f"{text!r} is not a duration", fix=f"use {option} 90m, 12h, 3d or 2w")
    return timedelta(**{UNITS[match[2]]: float(match[1])})
