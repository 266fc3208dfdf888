"""The lifecycle's own lines in the ledger. Their ids follow from what they say: written twice, they are there once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from assay.lifecycle.faults.detection import FaultClearance, FaultObservation
from assay.lifecycle.fleet_snapshot import NodeSnapshot
from assay.model.decision import Decision
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import format_time


def make_enrolled_entry(node: str, pool: str, state: str, at: datetime) -> LedgerEntry:
    """Return the first line of a node."""
    return LedgerEntry(
        derive_id("enrolled", node), format_time(at), "node.enrolled", node, {"pool": pool, "state": state}
    )


def make_decision_entries(
    policy: LifecyclePolicy, view: NodeSnapshot, decision: Decision, at: datetime
) -> tuple[LedgerEntry, ...]:
    """Return the lines of a decision, to be appended together.

    An immediate one is a transition as well, a withdrawal takes back what waited, and the end of a hold releases the
    node. One that takes the node back into service clears its open faults: the outcomes that it rests on are newer
    than they are.
    """
    lines = [LedgerEntry(decision.id, format_time(at), "decision", decision.node, decision.as_entry_body())]
    if decision.timing != "immediate":
        return (*lines, *_record_entries(decision, at))
    lines.append(_transition_entry(decision, at))
    if policy.states[decision.to_state].in_service:
        because = f"back in {decision.to_state} by decision {decision.id}"
        lines += [
            make_cleared_entry(decision.node, FaultClearance(known.id, because), at)
            for known in view.node_state.faults
            if known.is_open
        ]
    return tuple(lines)


def _record_entries(decision: Decision, at: datetime) -> Iterator[LedgerEntry]:
    """Yield what a record changes in the node's story."""
    node, stamp, cause = decision.node, format_time(at), decision.causes[0]
    if decision.remedy == "withdraw":
        body = {"decision": cause.id, "reason": cause.text, "by": decision.id}
        yield LedgerEntry(derive_id("withdrawn", decision.id), stamp, "decision.withdrawn", node, body)
    if decision.remedy == "release":
        yield LedgerEntry(
            derive_id("released", decision.id), stamp, "release", node, {"who": "assay", "reason": cause.text}
        )


def make_fault_entry(seen: FaultObservation, at: datetime) -> LedgerEntry:
    """Return the line of a fault that was seen, or seen again."""
    said = (seen.severity, str(seen.count), *sorted(f"{source} {mark}" for source, mark in seen.marks.items()))
    return LedgerEntry(derive_id(seen.id, *said), format_time(at), "fault", seen.node, seen.as_body())


def make_cleared_entry(node: str, ended: FaultClearance, at: datetime) -> LedgerEntry:
    """Return the line that ends a fault."""
    body: dict[str, Any] = {"fault": ended.fault, "because": ended.reason}
    return LedgerEntry(derive_id("cleared", ended.fault), format_time(at), "fault.cleared", node, body)


def _transition_entry(decision: Decision, at: datetime) -> LedgerEntry:
    body = {"from": decision.from_state, "to": decision.to_state, "decision": decision.id}
    return LedgerEntry(derive_id("transition", decision.id), format_time(at), "transition", decision.node, body)
