"""Recognises in a node's history when the cause of a wait went away by itself, and which effects answered faults."""

from __future__ import annotations

from collections.abc import Mapping

from assay.decide.state.node_state import FlapRecord, PendingDecision
from assay.model.decision import CORRECTION_REMEDIES, HELD_RULE, find_rule_name
from assay.model.entries.decision_entries import DecisionEntry
from assay.model.faults.fault_record import FaultRecord


def detect_flaps(
    pending: PendingDecision | None, faults: Mapping[str, FaultRecord], cleared: FaultRecord
) -> list[FlapRecord]:
    """Return that a wait lost its last open cause with this fault; nothing while another cause is open.

    A fault of the same class on the same part is the same cause, also if it began after the wait.
    """
    if pending is None:
        return []
    named = [ident for cause in pending.because for ident in cause.fault_ids]
    keys = {(faults[ident].fault_class, faults[ident].subject) for ident in named if ident in faults}
    if (cleared.fault_class, cleared.subject) not in keys:
        return []
    left = any(one.is_open and (one.fault_class, one.subject) in keys for one in faults.values())
    return [] if left else [FlapRecord(cleared.cleared_at, cleared.id, pending.decision)]


def list_answered_faults(decision: DecisionEntry | None) -> tuple[str, ...]:
    """Return the faults that a decision answers. One that only cordons, or only brings settings, answers none."""
    if decision is None or find_rule_name(decision.rule) == HELD_RULE or decision.remedy in CORRECTION_REMEDIES:
        return ()
    return tuple(ident for cause in decision.causes for ident in cause.fault_ids)
