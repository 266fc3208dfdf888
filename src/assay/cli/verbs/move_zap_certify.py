"""Where a person asks automation to bring a node: along an edge of the policy, once in a stay.

`assay certify NODE…`: a technician's word that a node was inspected.

`assay move NODE… STATE`: a person sends a node along an edge of the policy.

`assay zap NODE…`: a person asks for the whole firmware bundle to be brought onto a node again.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.hold_expiry import format_hold_end, is_hold_expired
from assay.cli.operator_orders import (
    NodeNames,
    OperatorIdentity,
    OperatorOrder,
    Reason,
    Who,
    identify_operator,
    record_orders,
)
from assay.cli.workspace import FleetDir, OutputFormat, Workspace
from assay.lifecycle.decisions.holds_and_manual_moves import find_next_step
from assay.model.errors import AssayError
from assay.model.ledger_entry import derive_id
from assay.model.timestamps import parse_time

if TYPE_CHECKING:
    from assay.cli.workspace import Workspace
    from assay.lifecycle.node_state import NodeState
    from assay.model.specs.lifecycle_policy import LifecyclePolicy

REQUEST_KINDS = ("move", "zap.asked")

Now = Annotated[bool, typer.Option("--now", help="Do not wait until the customers' jobs on it have ended.")]


def request_move(
    desk: Workspace, said: OperatorIdentity, story: NodeState, to: str, kind: str, *, now: bool = False
) -> OperatorOrder:
    """Return the word that asks for a node to go `to` a state. Raises Trouble where it may not, with where it may.

    To ask for the state that it is in takes back what was asked before.
    """
    node, before = story.node, story.move_request
    if story.state == to and not before:
        return OperatorOrder(node, f"{node} is in {to} already: {story.reason}")
    _refuse_impossible_move(desk, said, story, to)
    if before and (before.to, before.now) == (to, now):
        told = f"{node} is asked to go to {to} already, by {before.who}: {before.reason}"
        return OperatorOrder(node, f"{told}; `assay explain {node}` says what it waits for")
    ident = derive_id(kind, node, story.stay_id, to, _last_request(desk, story))
    entry = said.make_entry(ident, kind, node, to=to, **({"now": True} if now else {}))
    if before and to == story.state:
        return OperatorOrder(node, f"{node} stays in {to}; that it go to {before.to} is no longer asked", entry)
    waits = find_policy_of_state(desk, story).states[story.state].in_service
    when = " at once" if now else " when no job is on it" if waits else ""
    return OperatorOrder(
        node, f"{node} is asked to go from {story.state} to {to}{when}, by {said.who}: {said.reason}", entry
    )


def find_policy_of_state(desk: Workspace, story: NodeState) -> LifecyclePolicy:
    """Return the policy that knows the state of a node. Raises Trouble where none does."""
    found = next((one for one in desk.fleet.policies.values() if story.state in one.states), None)
    if found is None:
        raise AssayError(f"{story.node} is in {story.state}, which no lifecycle policy has", fix="assay check")
    return found


def describe_reachable_states(policy: LifecyclePolicy, state: str) -> str:
    """Return where the policy lets a node go from a state, for people."""
    ways = [name for name in policy.states if name != state and find_next_step(policy, state, name)]
    return f"from {state} it may go to {', '.join(ways)}" if ways else f"there is no way out of {state}"


def _refuse_impossible_move(desk: Workspace, said: OperatorIdentity, story: NodeState, to: str) -> None:
    policy, held = find_policy_of_state(desk, story), story.hold
    if held and not is_hold_expired(held, parse_time(said.at)):
        told = f"{story.node} is held by {held.who} {format_hold_end(held.until, parse_time(said.at))}: {held.reason}"
        raise AssayError(told, fix=f"assay release {story.node} --reason …")
    if to not in policy.states:
        near = get_close_matches(to, policy.states, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise AssayError(f"the policy has no state {to!r}", fix=hint + describe_reachable_states(policy, story.state))
    if to != story.state and not find_next_step(policy, story.state, to):
        told = f"the policy draws no way for {story.node} from {story.state} to {to}"
        raise AssayError(told, fix=describe_reachable_states(policy, story.state))


def _last_request(desk: Workspace, story: NodeState) -> str:
    """Return the id of what was last asked of the node, "" where nothing was: the next word follows it only once."""
    words = desk.ledger.entries(story.node, kinds=REQUEST_KINDS)
    return words[-1].id if words else ""


if TYPE_CHECKING:
    from assay.lifecycle.node_state import NodeState

certify_app = typer.Typer(add_completion=False, help="Certify a technician's inspection of a node.")


@certify_app.command()
def certify(
    nodes: NodeNames, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """Certify that a node was inspected or repaired: at the next pass it goes on to where its state leads.

    Every earlier pass stops counting, since hands were on it. `assay tickets` says what to check first.
    """
    desk = Workspace(fleet.resolve())
    said = identify_operator(desk, who, reason)
    record_orders(desk, nodes, lambda story: _certify_node(desk, said, story), form)


def _certify_node(desk: Workspace, said: OperatorIdentity, story: NodeState) -> OperatorOrder:
    node, state = story.node, story.state
    states = [policy.states[state] for policy in desk.fleet.policies.values() if state in policy.states]
    to = next((one.certified_to for one in states if one.certified_to), None)
    if to is None:
        raise AssayError(f"{node} is in {state}, which waits for nobody's certification", fix="assay explain " + node)
    if known := story.certified:
        return OperatorOrder(node, f"{node} is certified in {state} already, by {known.who}: {known.reason}")
    entry = said.make_entry(derive_id("certified", node, story.stay_id), "certified", node)
    return OperatorOrder(node, f"{node} is certified in {state} by {said.who}, and goes to {to}: {said.reason}", entry)


move_app = typer.Typer(add_completion=False, help="Send a node to another state, along a way that the policy draws.")

State = Annotated[str, typer.Argument(metavar="STATE", help="Where to, as the policy calls it.", show_default=False)]


@move_app.command()
def move(
    nodes: NodeNames,
    state: State,
    reason: Reason,
    now: Now = False,
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Send a node to another state. The next pass decides on it; limits and what a state requires still count.

    Where the policy draws no way there, you are told where the node may go. Typed twice, it happens once.

    To take back what was asked, send the node to the state that it is in.
    """
    desk = Workspace(fleet.resolve())
    said = identify_operator(desk, who, reason)
    record_orders(desk, nodes, lambda story: request_move(desk, said, story, state, "move", now=now), form)


if TYPE_CHECKING:
    from assay.lifecycle.node_state import NodeState

zap_app = typer.Typer(add_completion=False, help="Bring firmware and configuration onto a node again.")


@zap_app.command()
def zap(
    nodes: NodeNames,
    reason: Reason,
    now: Now = False,
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Ask for firmware and configuration to be brought to the node's bundle and read back.

    The next pass decides on it. Where the policy draws no way there, you are told where the node may go.
    """
    desk = Workspace(fleet.resolve())
    said = identify_operator(desk, who, reason)
    record_orders(desk, nodes, lambda story: _request_zap(desk, said, story, now=now), form)


def _request_zap(desk: Workspace, said: OperatorIdentity, story: NodeState, *, now: bool) -> OperatorOrder:
    policy = find_policy_of_state(desk, story)
    states = [name for name, state in policy.states.items() if "zap" in state.entry]
    if not states:
        raise AssayError(
            f"no state of the policy {policy.name} zaps a node on arrival",
            where=desk.fleet.lines.get((f"LifecyclePolicy/{policy.name}", "states"), ""),
            fix="say `entry: [zap]` of the state in which firmware and configuration are brought to the bundle",
        )
    near = [name for name in states if name == story.state or find_next_step(policy, story.state, name)]
    if not near:
        told = f"the policy draws no way for {story.node} from {story.state} to {' or '.join(states)}"
        raise AssayError(told, fix=describe_reachable_states(policy, story.state))
    return request_move(desk, said, story, near[0], "zap.asked", now=now)
