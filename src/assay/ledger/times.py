"""Times as numbers."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds(at: str) -> float:
    """Return an ISO 8601 time as seconds since 1970, so that times written differently still sort."""
    moment = datetime.fromisoformat(at)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
