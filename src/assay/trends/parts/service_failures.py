"""The failures of hardware that took nodes out of service, from the ledger."""

from __future__ import annotations

from datetime import datetime

from assay.lifecycle.node_state import FaultRecord, NodeState
from assay.lifecycle.service_absences import ServiceAbsence
from assay.model.entries.decision_entries import DecisionEntry
from assay.model.entries.fault_entries import FaultClearedEntry, FaultEntry
from assay.model.entries.node_entries import NodeEnrolledEntry, NodeLeftEntry, NodeRenamedEntry, TransitionEntry
from assay.model.specs.fault_catalog import SEVERITIES
from assay.model.timestamps import parse_time
from assay.trends.peers.fleet_tables import is_hardware_failure

ABSENCE_KINDS = (
    NodeEnrolledEntry.kind,
    NodeRenamedEntry.kind,
    NodeLeftEntry.kind,
    TransitionEntry.kind,
    DecisionEntry.kind,
    FaultEntry.kind,
    FaultClearedEntry.kind,
)
"""The entries from which absences and their faults follow."""


def find_cause(state: NodeState, absence: ServiceAbsence, back: datetime) -> FaultRecord | None:
    """Return the worst fault of hardware that an absence answers, and of equal ones the first; None for none.

    Where people took the node out, it is a fault that was open then, and was seen since the node came into service.
    """
    move = absence.transitions[0]
    answered = [one for one in state.faults if one.id in move.faults]
    if not move.faults and move.is_order:
        answered = [one for one in state.faults if _is_open(one, move.at) and parse_time(one.last_seen) >= back]
    failed = [one for one in answered if is_hardware_failure(one)]
    return min(failed, key=lambda one: (SEVERITIES.index(one.severity), one.first_seen), default=None)


def _is_open(fault: FaultRecord, at: str) -> bool:
    return fault.first_seen <= at and not (fault.cleared_at and fault.cleared_at <= at)
