"""The lifecycle's own lines in the ledger. Their ids follow from what they say: written twice, they are there once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from assay.lifecycle.classify import Cleared, FaultSeen
from assay.lifecycle.situation import NodeView
from assay.lifecycle.when import written
from assay.model.decision import Decision
from assay.model.entry import Entry, derived_id
from assay.model.policy import LifecyclePolicy


def enrolled(node: str, pool: str, state: str, at: datetime) -> Entry:
    """Return the first line of a node."""
    return Entry(derived_id("enrolled", node), written(at), "node.enrolled", node, {"pool": pool, "state": state})


def made(policy: LifecyclePolicy, view: NodeView, decision: Decision, at: datetime) -> tuple[Entry, ...]:
    """Return the lines of a decision, to be appended together.

    An immediate one is a transition as well, a withdrawal takes back what waited, and the end of a hold releases the
    node. One that takes the node back into service clears its open faults: the outcomes that it rests on are newer
    than they are.
    """
    lines = [Entry(decision.id, written(at), "decision", decision.node, decision.as_body())]
    if decision.timing != "immediate":
        return (*lines, *_recorded(decision, at))
    lines.append(_transition(decision, at))
    if policy.states[decision.to_state].in_service:
        because = f"back in {decision.to_state} by decision {decision.id}"
        lines += [cleared(decision.node, Cleared(known.id, because), at) for known in view.story.faults if known.open]
    return tuple(lines)


def _recorded(decision: Decision, at: datetime) -> Iterator[Entry]:
    """Yield what a record changes in the node's story."""
    node, stamp, cause = decision.node, written(at), decision.because[0]
    if decision.remedy == "withdraw":
        body = {"decision": cause.id, "reason": cause.text, "by": decision.id}
        yield Entry(derived_id("withdrawn", decision.id), stamp, "decision.withdrawn", node, body)
    if decision.remedy == "release":
        yield Entry(derived_id("released", decision.id), stamp, "release", node, {"who": "assay", "reason": cause.text})


def fault(seen: FaultSeen, at: datetime) -> Entry:
    """Return the line of a fault that was seen, or seen again."""
    said = (seen.severity, str(seen.count), *sorted(f"{source} {mark}" for source, mark in seen.marks.items()))
    return Entry(derived_id(seen.id, *said), written(at), "fault", seen.node, seen.as_body())


def cleared(node: str, ended: Cleared, at: datetime) -> Entry:
    """Return the line that ends a fault."""
    body: dict[str, Any] = {"fault": ended.fault, "because": ended.because}
    return Entry(derived_id("cleared", ended.fault), written(at), "fault.cleared", node, body)


def _transition(decision: Decision, at: datetime) -> Entry:
    body = {"from": decision.from_state, "to": decision.to_state, "decision": decision.id}
    return Entry(derived_id("transition", decision.id), written(at), "transition", decision.node, body)
