"""How old evidence may be: what the states of the policy require of a phase, and what a check says of itself."""

from __future__ import annotations

from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.lifecycle_policy import LifecyclePolicy

PhaseAges = dict[str, float | None]
"""Phases, each with the greatest age of evidence in hours; None: any age."""


def find_longest_hours(policy: LifecyclePolicy, phase: str) -> float | None:
    """Return the greatest age of evidence that a state of the policy allows for a phase, None if none requires it."""
    wanted = (want for state in policy.states.values() for want in state.requires if want.phase == phase)
    return max((want.fresh_hours for want in wanted), default=None)


def find_max_hours(phases: PhaseAges, check: CheckDeclaration) -> float | None:
    """Return how old evidence for a check may be that has one of these phases."""
    allowed = [limit for phase in check.phases if (limit := phases.get(phase)) is not None]
    longest = max(allowed, default=None)
    if check.valid_hours is None:
        return longest
    return check.valid_hours if longest is None else min(check.valid_hours, longest)
