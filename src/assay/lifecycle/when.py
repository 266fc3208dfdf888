"""Times as the ledger writes them (ISO 8601 UTC) and as policy counts them (hours)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NEVER = datetime.min.replace(tzinfo=UTC)


def moment(at: str) -> datetime:
    """Return a written time in UTC; "" is before everything."""
    if not at:
        return NEVER
    read = datetime.fromisoformat(at)
    if read.tzinfo is UTC:
        return read
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)


def written(at: datetime | str) -> str:
    """Return a time in the one form that stories use, in which later is greater."""
    return (moment(at) if isinstance(at, str) else at.astimezone(UTC)).isoformat(timespec="microseconds")


def hours(count: float) -> timedelta:
    """Return `count` hours."""
    return timedelta(hours=count)


def spoken(span: timedelta) -> str:
    """Return a span for people: `40 min`, `6 h`, `3 days`."""
    minutes = span.total_seconds() / 60
    if minutes < 1:
        return f"{span.total_seconds():.0f} s"
    if minutes < 120:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h" if minutes < 72 * 60 else f"{minutes / 1440:.0f} days"
