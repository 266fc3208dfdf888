"""A person's yes or no to what waits for one, and the refusal of orders where assay only watches."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from assay.act.actions.action import ACTION_NAMES, load_action
from assay.act.orders.operator_order import OperatorIdentity, OperatorOrder
from assay.decide.state.node_state import NodeState
from assay.decide.trust.trust_gate import find_move_trust
from assay.decide.trust.trust_waits import TrustWait, list_trust_waits
from assay.model.entries.operator_entries import ApprovedEntry, DeclinedEntry
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.ledger_entry import derive_id
from assay.model.specs.trust_rules import TrustSetting


def refuse_watched(fleet: Fleet, node: str, *actions: str) -> None:
    """Raise AssayError if assay only watches a node, so that it must not do this to it."""
    _refuse(fleet, node, fleet.find_trust(node, actions))


def refuse_watched_move(fleet: Fleet, state: NodeState, to: str) -> None:
    """Raise AssayError if assay only watches a node, and a move to this state is more than bookkeeping."""
    setting = find_move_trust(fleet.trust, fleet.policy, state.pool, state.state, to)
    if setting:
        _refuse(fleet, state.node, setting)


def _refuse(fleet: Fleet, node: str, setting: TrustSetting) -> None:
    if setting.step == "watch":
        pool = fleet.nodes[node].pool if node in fleet.nodes else "?"
        what = f"assay changes nothing on {node}, pool {pool}: its trust step is watch"
        raise AssayError(what, where=setting.where or setting.path, fix="set suggest or act there (docs/trust.md)")


def list_fleet_waits(fleet: Fleet, states: Iterable[NodeState]) -> list[TrustWait]:
    """Return what waits for a person, or is only watched, on all nodes of the inventory."""
    policy, trust = fleet.policy, fleet.trust
    known = [state for state in states if state.node in fleet.nodes and state.state in policy.states]
    waits = (wait for state in known for wait in list_trust_waits(policy, trust, state))
    return [replace(wait, undo=_describe_undo(wait.actions)) for wait in waits]


def find_wait(waits: Iterable[TrustWait], ident: str) -> TrustWait:
    """Return what waits under an id that begins so. Raises AssayError unless there is exactly one that takes a yes."""
    found = [one for one in waits if ident and one.id.startswith(ident)]
    if len(found) != 1:
        what = f"nothing that waits for a person begins with {ident!r}" if not found else f"{ident} is not unique"
        raise AssayError(what, fix="`assay status` lists what waits")
    if found[0].kind == "would":
        raise AssayError(f"{found[0].node}: {found[0].text}", fix="raise its trust step (docs/trust.md)")
    return found[0]


def answer_wait(
    wait: TrustWait, state: NodeState, operator: OperatorIdentity, *, is_yes: bool, within_hours: float = 0
) -> OperatorOrder:
    """Return a person's yes or no. The same word twice is recorded once, unless the first one was for another time."""
    last = state.trust.find_consent(wait.id)
    if (
        last
        and (last.is_yes, last.who, last.reason) == (is_yes, operator.who, operator.reason)
        and wait.kind != "order"
    ):
        return OperatorOrder(wait.node, f"you have said so before: {wait.said}")
    kind = ApprovedEntry if is_yes else DeclinedEntry
    entry = kind(wait.id, operator.who, operator.reason, within_hours)
    ident = derive_id(entry.kind, wait.node, wait.id, last.id if last else "")
    word = "approved" if is_yes else "declined"
    text = f"{wait.node}: {word} by {operator.who}: {', '.join(wait.actions) or 'it'}; {wait.undo}"
    return OperatorOrder(wait.node, text, entry.make_entry(ident, operator.at, wait.node))


def _describe_undo(actions: Collection[str]) -> str:
    """Return what undoes these actions, for people."""
    undo = {one: load_action(one).undone_by for one in actions if one in ACTION_NAMES}
    told = [f"{one} is undone by {by}" if by else f"nothing undoes {one}" for one, by in undo.items()]
    if "drain-now" in undo:
        told.append("jobs that drain-now ends do not come back")
    return ", ".join(told) or "it changes nothing outside"
