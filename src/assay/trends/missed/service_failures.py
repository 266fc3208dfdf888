"""The failures of hardware that took nodes out of service, from the ledger."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from assay.ledger.store import Ledger
from assay.lifecycle.node_state import FaultRecord, NodeState
from assay.lifecycle.node_state_projection import project_node_states
from assay.lifecycle.service_absences import ServiceAbsence, list_absences
from assay.model.entries.decision_entries import DecisionEntry
from assay.model.entries.fault_entries import FaultClearedEntry, FaultEntry
from assay.model.entries.node_entries import NodeEnrolledEntry, NodeLeftEntry, NodeRenamedEntry, TransitionEntry
from assay.model.outcome import read_part
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


class ServiceFailure(NamedTuple):
    """A failure that took a node out of service from `left_at` to `until`, at most to the moment of asking.

    `seen_at`: when the fault was first seen. `served_from`: when the node last came into service before it. `place` "":
    the node itself.
    """

    node: str
    place: str
    fault: str
    served_from: datetime
    seen_at: datetime
    left_at: datetime
    until: datetime

    @property
    def node_hours(self) -> float:
        """How long the node was out."""
        return (self.until - self.left_at) / timedelta(hours=1)


class NodeAbsence(NamedTuple):
    """A node that was out of service, at most until the moment of asking."""

    node: str
    left_at: datetime
    until: datetime


class ServiceLosses(NamedTuple):
    """The absences of nodes, and those among them that failures of hardware began."""

    absences: list[NodeAbsence]
    failures: list[ServiceFailure]

    @property
    def others(self) -> int:
        """How many absences had other causes: orders of people, rollouts, other faults."""
        return len(self.absences) - len(self.failures)


def read_service_losses(ledger: Ledger, in_service: Collection[str], since: datetime, as_of: datetime) -> ServiceLosses:
    """Return the absences that began between two moments; no entry after the second one is used."""
    entries = [entry for entry in ledger.entries(kinds=ABSENCE_KINDS) if parse_time(entry.at) <= as_of]
    return list_service_losses(project_node_states(entries).values(), in_service, since, as_of)


def list_service_losses(
    node_states: Iterable[NodeState], in_service: Collection[str], since: datetime, as_of: datetime
) -> ServiceLosses:
    """Return the absences that began since a moment. `node_states` are those of the moment of asking."""
    losses = ServiceLosses([], [])
    for state in node_states:
        back = parse_time(state.enrolled_at)
        for absence in list_absences(state, in_service):
            if absence.began_at >= since:
                losses.absences.append(NodeAbsence(state.node, absence.began_at, absence.ended_at or as_of))
                if fault := find_cause(state, absence, back):
                    losses.failures.append(_make_failure(state, absence, fault, back, as_of))
            back = absence.ended_at or as_of
    return losses


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


def _make_failure(
    state: NodeState, absence: ServiceAbsence, fault: FaultRecord, back: datetime, as_of: datetime
) -> ServiceFailure:
    """Return the failure. A fault that is older than the last return to service was seen again when the node left."""
    seen = parse_time(fault.first_seen)
    seen = seen if back <= seen <= absence.began_at else absence.began_at
    until = absence.ended_at or as_of
    return ServiceFailure(state.node, read_part(fault.subject), fault.fault_class, back, seen, absence.began_at, until)
