"""Hold, release and certify: what a person may order for one node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.act.orders.hold_end import format_hold_end, is_hold_expired, parse_hold_end
from assay.act.orders.operator_order import OperatorIdentity, OperatorOrder
from assay.act.orders.trust_orders import refuse_watched_move
from assay.decide.state.node_state import NodeState
from assay.model.entries.operator_entries import CertifiedEntry, HoldEntry, ReleaseEntry
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.ledger_entry import derive_id
from assay.model.timestamps import parse_time

if TYPE_CHECKING:  # a command that gives orders need not wait for it
    from assay.ledger.store import Ledger


def hold_node(
    ledger: Ledger, operator: OperatorIdentity, state: NodeState, until: str = "", duration: str = ""
) -> OperatorOrder:
    """Hold a node, without an end or until one. Raises AssayError if somebody else holds it, or for a wrong end."""
    node, now = state.node, parse_time(operator.at)
    current = state.hold if state.hold and not is_hold_expired(state.hold, now) else None
    if current and (current.who, current.reason) != (operator.who, operator.reason):
        text = f"{node} is already held by {current.who} {format_hold_end(current.until, now)}: {current.reason}"
        raise AssayError(text, fix=f"assay release {node} --reason …")
    end = parse_hold_end(until, duration, parse_time(current.at) if current else now, now)
    end_text = format_hold_end(end, now)
    if current and parse_time(current.until) == parse_time(end):
        return OperatorOrder(node, f"{node} is already held by you, {end_text}: {current.reason}")
    ident = derive_id("hold", node, _last_hold_or_release(ledger, node))
    entry = HoldEntry(operator.who, operator.reason, end).make_entry(ident, operator.at, node)
    return OperatorOrder(node, f"{node} is held by {operator.who} {end_text}: {operator.reason}", entry)


def _last_hold_or_release(ledger: Ledger, node: str) -> str:
    """Return the id of the node's last hold or release, "" for none. It makes the id of the next hold unique."""
    entries = ledger.entries(node, kinds=[HoldEntry.kind, ReleaseEntry.kind])
    return entries[-1].id if entries else ""


def release_node(operator: OperatorIdentity, state: NodeState) -> OperatorOrder:
    """End a node's hold. Raises AssayError if nobody holds it."""
    node, current = state.node, state.hold
    if current is None:
        raise AssayError(f"{node} is not held")
    ident = derive_id("release", node, current.id)
    entry = ReleaseEntry(operator.who, operator.reason).make_entry(ident, operator.at, node)
    return OperatorOrder(node, f"{node} is released; {current.who} held it: {current.reason}", entry)


def certify_node(fleet: Fleet, operator: OperatorIdentity, state: NodeState) -> OperatorOrder:
    """Certify that a node was inspected. Raises AssayError if its state waits for no certification."""
    node, name = state.node, state.state
    states = [policy.states[name] for policy in fleet.policies.values() if name in policy.states]
    to = next((one.certified_to for one in states if one.certified_to), None)
    if to is None:
        raise AssayError(f"{node} is in {name}, which needs no certification", fix=f"assay explain {node}")
    refuse_watched_move(fleet, state, to)
    if earlier := state.certified:
        return OperatorOrder(node, f"{node} is already certified in {name}, by {earlier.who}: {earlier.reason}")
    ident = derive_id(CertifiedEntry.kind, node, state.stay_id)
    entry = CertifiedEntry(operator.who, operator.reason).make_entry(ident, operator.at, node)
    text = f"{node} is certified in {name} by {operator.who}, and goes to {to}: {operator.reason}"
    return OperatorOrder(node, text, entry)
