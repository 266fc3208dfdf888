"""Times as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def written(moment: datetime) -> str:
    """Return a time in RFC 3339, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now() -> str:
    """Return this moment as Kubernetes would write it."""
    return written(datetime.now(UTC))


def age_s(text: str) -> float:
    """Return how many seconds ago a written time was."""
    return (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()
