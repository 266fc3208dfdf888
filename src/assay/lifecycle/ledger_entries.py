"""Makes the entries that follow from a decision or a fault.

Their ids follow from what they say, so that an entry that is appended twice is in the ledger once.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from assay.lifecycle.faults.detection import FaultClearance, FaultObservation
from assay.lifecycle.fleet_snapshot import NodeSnapshot
from assay.model.decision import Decision
from assay.model.entries.decision_entries import DecisionEntry, DecisionWithdrawnEntry
from assay.model.entries.fault_entries import FaultClearedEntry, FaultEntry
from assay.model.entries.node_entries import NodeEnrolledEntry, TransitionEntry
from assay.model.entries.operator_entries import ReleaseEntry
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import format_time


def make_enrolled_entry(node: str, pool: str, state: str, at: datetime) -> LedgerEntry:
    """Return the first entry of a node."""
    return NodeEnrolledEntry(pool, state).make_entry(derive_id("enrolled", node), format_time(at), node)


def make_decision_entries(
    policy: LifecyclePolicy, node: NodeSnapshot, decision: Decision, at: datetime
) -> tuple[LedgerEntry, ...]:
    """Return the entries of a decision, to be appended together.

    An immediate decision is a transition too. A record may withdraw a pending decision or release a hold. A decision
    that takes the node back into service clears its open faults: the outcomes behind it are newer than they are.
    """
    stamp = format_time(at)
    entries = [DecisionEntry.from_decision(decision).make_entry(decision.id, stamp, decision.node)]
    if decision.timing != "immediate":
        return (*entries, *_make_record_entries(decision, stamp))
    move = TransitionEntry(decision.from_state, decision.to_state, decision.id)
    entries.append(move.make_entry(derive_id("transition", decision.id), stamp, decision.node))
    if policy.states[decision.to_state].in_service:
        reason = f"back in {decision.to_state} by decision {decision.id}"
        entries += [
            make_cleared_entry(decision.node, FaultClearance(fault.id, reason), at)
            for fault in node.node_state.faults
            if fault.is_open
        ]
    return tuple(entries)


def _make_record_entries(decision: Decision, at: str) -> Iterator[LedgerEntry]:
    """Yield what a record changes in the state of the node."""
    cause = decision.causes[0]
    if decision.remedy == "withdraw":
        withdrawn = DecisionWithdrawnEntry(cause.id, cause.text, by=decision.id)
        yield withdrawn.make_entry(derive_id("withdrawn", decision.id), at, decision.node)
    if decision.remedy == "release":
        release = ReleaseEntry("assay", cause.text)
        yield release.make_entry(derive_id("released", decision.id), at, decision.node)


def make_fault_entry(fault: FaultObservation, at: datetime) -> LedgerEntry:
    """Return the entry of a fault that was seen, or seen again."""
    marks = sorted(f"{source} {mark}" for source, mark in fault.marks.items())
    content = FaultEntry(
        fault=fault.id,
        fault_class=fault.fault_class,
        subject=fault.subject,
        severity=fault.severity,
        blame=fault.blame,
        remedy=fault.remedy,
        count=fault.count,
        first_seen=fault.first_seen,
        last_seen=fault.last_seen,
        detail=fault.detail,
        marks=fault.marks,
        times=fault.times,
    )
    ident = derive_id(fault.id, fault.severity, str(fault.count), *marks)
    return content.make_entry(ident, format_time(at), fault.node)


def make_cleared_entry(node: str, clearance: FaultClearance, at: datetime) -> LedgerEntry:
    """Return the entry that ends a fault."""
    content = FaultClearedEntry(clearance.fault, clearance.reason)
    return content.make_entry(derive_id("cleared", clearance.fault), format_time(at), node)
