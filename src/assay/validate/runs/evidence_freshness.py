"""How old the evidence of a pass may be in a run, by check: what the policy allows for the phases of the run."""

from __future__ import annotations

from collections.abc import Collection

from assay.model.fleet import Fleet
from assay.model.specs.evidence_age import PhaseAges, find_longest_hours, find_max_hours
from assay.validate.runs.declared_outcomes import list_declared_checks

UNREQUIRED_HOURS = {"weekly": 336.0}
"""Phases that no state requires: a week is judged once a week, and one may be missed (our own choice)."""
OTHER_HOURS = 48.0
"""For other such phases: what was not read for two days is not known, as on the page of the report (our own choice)."""


def list_fresh_hours(fleet: Fleet, phases: Collection[str]) -> dict[str, float]:
    """Return the greatest age of evidence in hours for each declared check of these phases (none: of all)."""
    found = {}
    for check in list_declared_checks(fleet, phases):
        judged = [phase for phase in check.phases if not phases or phase in phases]
        ages: PhaseAges = {phase: _find_hours(fleet, phase) for phase in judged}
        found[check.id] = find_max_hours(ages, check) or OTHER_HOURS
    return found


def _find_hours(fleet: Fleet, phase: str) -> float:
    allowed = [hours for policy in fleet.policies.values() if (hours := find_longest_hours(policy, phase)) is not None]
    return max(allowed, default=UNREQUIRED_HOURS.get(phase, OTHER_HOURS))
