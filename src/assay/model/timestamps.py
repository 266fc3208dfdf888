"""Times as the ledger writes them (ISO 8601 UTC) and as policy counts them (hours).

Times as numbers, and numbers as times.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache


def parse_epoch_seconds(at: str) -> float:
    """Return an ISO 8601 time as seconds since 1970, so that times written differently still sort."""
    moment = datetime.fromisoformat(at)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


parse_epoch_seconds_cached = lru_cache(parse_epoch_seconds)
"""`parse_epoch_seconds`, for times that come again and again."""


def format_epoch_seconds(at_s: float) -> str:
    """Return seconds since 1970 as an ISO 8601 time in UTC."""
    return datetime.fromtimestamp(at_s, UTC).isoformat()


NEVER = datetime.min.replace(tzinfo=UTC)


def parse_time(at: str) -> datetime:
    """Return a written time in UTC; "" is before everything."""
    if not at:
        return NEVER
    read = datetime.fromisoformat(at)
    if read.tzinfo is UTC:
        return read
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)


def format_time(at: datetime | str) -> str:
    """Return a time in the one form that stories use, in which later is greater."""
    return (parse_time(at) if isinstance(at, str) else at.astimezone(UTC)).isoformat(timespec="microseconds")


def hours(count: float) -> timedelta:
    """Return `count` hours."""
    return timedelta(hours=count)


def format_duration(span: timedelta) -> str:
    """Return a span for people: `40 min`, `6 h`, `3 days`."""
    minutes = span.total_seconds() / 60
    if minutes < 1:
        return f"{span.total_seconds():.0f} s"
    if minutes < 120:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h" if minutes < 72 * 60 else f"{minutes / 1440:.0f} days"
