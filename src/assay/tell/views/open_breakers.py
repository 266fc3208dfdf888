"""Breakers that hold nodes back, as JSON and as lines: for `assay breaker`, `assay status` and `assay explain`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from assay.model.text.lists import format_count, format_list
from assay.model.timestamps import format_ago

if TYPE_CHECKING:
    from assay.decide.moves.held_answers import OpenBreaker


def format_breaker(one: OpenBreaker, now: datetime) -> str:
    """Return a breaker as lines for people: what it holds, why, and how to clear it."""
    cordoned = f", {len(one.cordoned)} cordoned" if one.cordoned else ""
    return (
        f"the breaker of pool {one.pool} holds back {format_count(len(one.nodes), 'node')}{cordoned}, "
        f"since {format_ago(one.since, now)}: {format_list(list(one.nodes))}\n"
        f"  {one.reason}\n"
        f"  → find the common cause; then, to have them answered within the limits: {one.clear}"
    )
