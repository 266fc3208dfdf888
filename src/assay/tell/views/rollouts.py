"""Rollouts in short: how far each merged change is."""

from __future__ import annotations

from typing_extensions import TypedDict

from assay.decide.rollouts.rollout_history import Rollout, RolloutStatus
from assay.model.entries.rollout_entries import PauseRule


class RolloutPauser(TypedDict):
    """Who or which rule paused a rollout."""

    who: str
    """Who paused it: a person, or assay."""
    reason: str
    """Why."""
    at: str
    """When: ISO 8601 with the offset of UTC."""
    rule: PauseRule
    """What made assay pause it: failures, a hold, a breaker or its plan; "" for a person."""


class RolloutSummary(TypedDict):
    """A rollout: how a merged change comes to its nodes. Times are ISO 8601 with the offset of UTC."""

    id: str
    """The id of the rollout."""
    base: str
    """The commit before the change."""
    commit: str
    """The commit with the change."""
    plan: str
    """The digest (`sha256:…`) of the plan as it was reviewed; "" if nobody recorded it."""
    status: RolloutStatus
    """How it stands; superseded by a later rollout, or aborted by a person."""
    started_at: str
    """When it started."""
    ended_at: str
    """When it ended; "" while it goes on."""
    nodes: int
    """How many nodes must take part."""
    proven: int
    """How many of them serve again and have passed their checks."""
    paused_by: RolloutPauser | None
    """Who or what paused it; null if it is not paused."""
    reason: str
    """Why it ended; "" while it goes on."""
    replaced_by: str
    """The id of the rollout that took over its nodes; "" if none did."""


def summarize_rollout(one: Rollout) -> RolloutSummary:
    """Return a rollout in short."""
    pause = one.pause
    return {
        "id": one.id,
        "base": one.base,
        "commit": one.commit,
        "plan": one.plan,
        "status": one.status,
        "started_at": one.started_at,
        "ended_at": one.ended_at,
        "nodes": len(one.members),
        "proven": len(one.members) - len(one.unproven),
        "paused_by": {"who": pause.who, "reason": pause.reason, "at": pause.at, "rule": pause.rule} if pause else None,
        "reason": one.end_reason,
        "replaced_by": one.replaced_by,
    }
