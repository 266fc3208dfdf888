"""Says which checks count for a node in its state, how old their evidence may be, and whether evidence still counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from assay.decide.state.node_state import NodeState
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.outcome import PassCount, RecordedOutcome
from assay.model.specs.evidence_age import PhaseAges, find_longest_hours
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import parse_epoch_seconds_cached

HOUR_S = 3600


class UnknownReason(NamedTuple):
    """Why something is not known, and the time of the evidence that there is (ISO 8601 UTC), "" for none."""

    text: str
    since: str = ""


def list_phases(policy: LifecyclePolicy, state: str) -> PhaseAges:
    """Return the phases that count in a state: what a node in service needs, and what the state watches or requires.

    A requirement says how old evidence may be. For any other phase, the longest counts that a state of the policy
    allows for it.
    """
    declared = policy.states.get(state)
    required: PhaseAges = {want.phase: want.fresh_hours for want in declared.requires} if declared else {}
    watched = [phase for other in policy.states.values() if other.in_service for phase in other.watch]
    watched += declared.watch if declared else []
    return {phase: find_longest_hours(policy, phase) for phase in watched} | required


@dataclass(frozen=True, slots=True)
class EvidenceWindow:
    """When evidence of a node must be from. It must not be older than the node's last repair (Unix seconds)."""

    now_s: float
    repaired_s: float

    @classmethod
    def of_node(cls, node_state: NodeState | None, now: datetime) -> EvidenceWindow:
        """Return the window of a node; one that was never enrolled has no repair."""
        repaired = node_state.repaired_at if node_state else ""
        return cls(now.timestamp(), parse_epoch_seconds_cached(repaired) if repaired else 0.0)

    def object_to_pass(self, passed: PassCount, max_hours: float | None) -> UnknownReason | None:
        """Return why passes prove nothing today, None if they count."""
        return self._object(passed.seen_at, passed.recorded_s, max_hours)

    def object_to_failure(self, recorded: RecordedOutcome, max_hours: float | None) -> UnknownReason | None:
        """Return why a failure proves nothing today, None if it counts."""
        dated = recorded.recorded_at or recorded.outcome.evidence_at
        return self._object(recorded.outcome.evidence_at, parse_epoch_seconds_cached(dated) if dated else 0, max_hours)

    def _object(self, seen_at: str, recorded_s: float, max_hours: float | None) -> UnknownReason | None:
        if not seen_at:
            return UnknownReason("judged without evidence")
        seen_s, skew_s = parse_epoch_seconds_cached(seen_at), MAX_CLOCK_SKEW.total_seconds()
        if seen_s - min(recorded_s, self.now_s) > skew_s:
            return UnknownReason("its evidence is dated ahead, so its age cannot be told")
        if seen_s < self.repaired_s:
            return UnknownReason("its evidence is older than the last repair", seen_at)
        if max_hours is not None and self.now_s - seen_s > max_hours * HOUR_S:
            return UnknownReason(f"its evidence is older than {max_hours:g} h", seen_at)
        return None
