"""Rollouts in short: how far each merged change is."""

from __future__ import annotations

from dataclasses import dataclass

from assay.lifecycle.rollouts.rollout_history import Rollout


@dataclass(frozen=True, slots=True)
class RolloutPauser:
    """Who or which rule paused a rollout, why and when."""

    who: str
    reason: str
    at: str
    rule: str


@dataclass(frozen=True, slots=True)
class RolloutSummary:
    """A rollout. `base`, `commit`: what was merged. `nodes`: how many must take part; `proven`: how many have."""

    id: str
    base: str
    commit: str
    plan: str
    status: str
    started_at: str
    ended_at: str
    nodes: int
    proven: int
    paused_by: RolloutPauser | None
    reason: str
    replaced_by: str


def summarize_rollout(one: Rollout) -> RolloutSummary:
    """Return a rollout in short."""
    pause = one.pause
    return RolloutSummary(
        id=one.id,
        base=one.base,
        commit=one.commit,
        plan=one.plan,
        status=one.status,
        started_at=one.started_at,
        ended_at=one.ended_at,
        nodes=len(one.members),
        proven=len(one.members) - len(one.unproven),
        paused_by=RolloutPauser(pause.who, pause.reason, pause.at, pause.rule) if pause else None,
        reason=one.end_reason,
        replaced_by=one.replaced_by,
    )
