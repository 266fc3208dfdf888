"""Breakers that hold nodes back, as JSON and as lines: for `assay breaker`, `assay status` and `assay explain`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from assay.model.text.lists import format_count, format_list
from assay.model.timestamps import format_ago

if TYPE_CHECKING:
    from assay.decide.moves.held_answers import OpenBreaker


def format_breaker(breaker: OpenBreaker, now: datetime) -> str:
    """Return a breaker as lines for people: what it holds, why, and how to clear it."""
    cordoned = f", {len(breaker.cordoned)} cordoned" if breaker.cordoned else ""
    return (
        f"the breaker of pool {breaker.pool} holds back {format_count(len(breaker.nodes), 'node')}{cordoned}, "
        f"since {format_ago(breaker.since, now)}: {format_list(list(breaker.nodes))}\n"
        f"  {breaker.reason}\n"
        f"  → find the common cause; then, to have them answered within the limits: {breaker.clear}"
    )
