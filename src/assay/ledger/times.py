"""Times as numbers, and numbers as times."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def seconds(at: str) -> float:
    """Return an ISO 8601 time as seconds since 1970, so that times written differently still sort."""
    moment = datetime.fromisoformat(at)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


seconds_of = lru_cache(seconds)
"""`seconds`, for times that come again and again."""


def written(at_s: float) -> str:
    """Return seconds since 1970 as an ISO 8601 time in UTC."""
    return datetime.fromtimestamp(at_s, UTC).isoformat()
