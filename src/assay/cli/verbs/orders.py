"""People's orders: `hold`, `release`, `move`, `zap`, `wipe` and `certify` by the policy, `approve`, `decline`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from assay.act.orders.orders import (
    OperatorIdentity,
    OperatorOrder,
    answer_wait,
    certify_node,
    find_wait,
    format_hold_end,
    hold_node,
    is_hold_expired,
    list_fleet_waits,
    refuse_watched_move,
    release_node,
)
from assay.cli.name_check import suggest_names
from assay.cli.operator_orders import NodeNames, Reason, Who, Within, identify_operator, parse_within, record_orders
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.decide.moves.manual_moves import describe_reachable_states, find_next_step, refuse_unreachable_states
from assay.declare.stand_ins import find_refused_settings
from assay.model.decision import WIPE
from assay.model.entries.node_entries import MoveEntry, ZapRequestedEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import derive_id
from assay.model.timestamps import parse_time

if TYPE_CHECKING:
    from assay.decide.state.node_state import NodeState
    from assay.model.specs.lifecycle_policy import LifecyclePolicy


hold_app = typer.Typer(add_completion=False)
release_app = typer.Typer(add_completion=False)

Until = Annotated[
    str, typer.Option("--until", metavar="TIME", help="End the hold at this time: 2026-12-01T18:00 (UTC).")
]
Duration = Annotated[
    str, typer.Option("--for", metavar="DURATION", help="End the hold this long after its start: 90m, 12h, 3d, 2w.")
]


@hold_app.command()
def hold(
    nodes: NodeNames,
    reason: Reason,
    until: Until = "",
    duration: Duration = "",
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Hold a node: automation observes it and reports what it would do, but does not act.

    Without an end, the hold lasts until `assay release`, and people are reminded of it. To change the end, hold the
    node again with the same reason and another end.

    Exit codes: 0 all nodes are held; 2 nothing was recorded.
    """
    workspace = Workspace(fleet.resolve())
    operator = identify_operator(workspace, who, reason)
    record_orders(workspace, nodes, lambda state: hold_node(workspace.ledger, operator, state, until, duration), form)


@release_app.command()
def release(
    nodes: NodeNames, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """End a hold. From the next round on, automation acts on the evidence again.

    Exit codes: 0 all nodes are released; 2 nothing was recorded.
    """
    workspace = Workspace(fleet.resolve())
    operator = identify_operator(workspace, who, reason)
    record_orders(workspace, nodes, lambda state: release_node(operator, state), form)


move_app = typer.Typer(add_completion=False)
zap_app = typer.Typer(add_completion=False)
wipe_app = typer.Typer(add_completion=False)
certify_app = typer.Typer(add_completion=False)


class OrderLimits(NamedTuple):
    """Whether an order waits for no job, and for how many hours it is meant, 0 for as long as the policy says."""

    now: bool
    within_hours: float


Now = Annotated[bool, typer.Option("--now", help="Do not wait for the end of customers' jobs on the node.")]


@move_app.command()
def move(
    nodes: NodeNames,
    state: Annotated[
        str,
        typer.Argument(
            metavar="STATE",
            help="The target state, by its name in the policy.",
            show_default=False,
        ),
    ],
    reason: Reason,
    now: Now = False,
    within: Within = "",
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Send a node to another state. The next round decides: the policy's limits and requirements still apply.

    If the policy has no transition to that state, the error lists the possible states. To withdraw an order, send the
    node to the state that it is in. A repeated order is recorded once.

    Exit codes: 0 recorded; 2 nothing was recorded.
    """
    workspace = Workspace(fleet.resolve())
    operator, meant = identify_operator(workspace, who, reason), OrderLimits(now, parse_within(within))
    record_orders(
        workspace, nodes, lambda node_state: _request_move(workspace, operator, node_state, state, meant), form
    )


@zap_app.command()
def zap(
    nodes: NodeNames,
    reason: Reason,
    now: Now = False,
    within: Within = "",
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Order assay to write the firmware and settings that differ from the node's specs, and to read them back.

    The node goes to the state in which the policy zaps. The next round decides; if the policy has no transition there,
    the error lists the possible states.

    Exit codes: 0 recorded; 2 nothing was recorded.
    """
    workspace = Workspace(fleet.resolve())
    operator, meant = identify_operator(workspace, who, reason), OrderLimits(now, parse_within(within))
    record_orders(workspace, nodes, lambda node_state: _request_zap(workspace, operator, node_state, meant), form)


@wipe_app.command()
def wipe(
    nodes: NodeNames,
    reason: Reason,
    now: Now = False,
    within: Within = "",
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Order assay to erase the local drives of a node, as `wipe` of its node spec declares, and to prove it.

    The node goes to the state in which the policy wipes and from which it can serve again. What is erased is gone.

    Exit codes: 0 recorded; 2 nothing was recorded.
    """
    workspace = Workspace(fleet.resolve())
    operator, meant = identify_operator(workspace, who, reason), OrderLimits(now, parse_within(within))
    record_orders(workspace, nodes, lambda node_state: _request_wipe(workspace, operator, node_state, meant), form)


def _request_zap(
    workspace: Workspace, operator: OperatorIdentity, node_state: NodeState, meant: OrderLimits
) -> OperatorOrder:
    policy = find_policy_of_state(workspace, node_state)
    zapping = [name for name, state in policy.states.items() if "zap" in state.entry]
    if not zapping:
        fix = "add `entry: [zap]` to the state that brings firmware and settings to the bundle"
        raise _make_missing_state_error(workspace, policy, "zaps", fix)
    current = node_state.state
    to = current if current in zapping else refuse_unreachable_states(policy, node_state, zapping)
    return _request_move(workspace, operator, node_state, to, meant, ZapRequestedEntry)


def _request_wipe(
    workspace: Workspace, operator: OperatorIdentity, node_state: NodeState, meant: OrderLimits
) -> OperatorOrder:
    """Return the order to go to the state that wipes. One that also makes a dossier is for nodes that leave."""
    policy = find_policy_of_state(workspace, node_state)
    if workspace.fleet.spec_of(node_state.node).wipe is None:
        spec = workspace.fleet.nodes[node_state.node].spec
        raise AssayError(
            f"{node_state.node}: its spec {spec} declares no wipe", fix=f"add `wipe` to specs/nodes/{spec}"
        )
    wiping = [name for name, state in policy.states.items() if WIPE in state.entry and "dossier" not in state.entry]
    if not wiping:
        fix = "add a state with `entry: [cordon, drain, wipe]`, and the edges to it"
        raise _make_missing_state_error(workspace, policy, "wipes", fix)
    current = node_state.state
    to = current if current in wiping else refuse_unreachable_states(policy, node_state, wiping)
    return _request_move(workspace, operator, node_state, to, meant)


def _make_missing_state_error(workspace: Workspace, policy: LifecyclePolicy, does: str, fix: str) -> AssayError:
    where = workspace.fleet.lines.get((f"LifecyclePolicy/{policy.name}", "states"), "")
    return AssayError(f"no state of the policy {policy.name} {does} a node on entry", where=where, fix=fix)


def _request_move(
    workspace: Workspace,
    operator: OperatorIdentity,
    node_state: NodeState,
    to: str,
    meant: OrderLimits,
    entry_type: type[MoveEntry] = MoveEntry,
) -> OperatorOrder:
    """Return the order to go to a state. The node's present state withdraws an earlier order.

    Raises AssayError, with the possible states, if the policy does not allow it or the node is held.
    """
    node, earlier = node_state.node, node_state.move_request
    if node_state.state == to and not earlier:
        return OperatorOrder(node, f"{node} is already in {to}: {node_state.reason}")
    _refuse_impossible_move(workspace, operator, node_state, to)
    now = meant.now
    if earlier and (earlier.to, earlier.now) == (to, now) and not node_state.trust.find_outlived(earlier.id):
        text = f"{node} is already ordered to {to}, by {earlier.who}: {earlier.reason}"
        return OperatorOrder(node, f"{text}; `assay explain {node}` shows what it waits for")
    ident = derive_id(entry_type.kind, node, node_state.stay_id, to, _last_request(workspace, node_state))
    order = entry_type(to, operator.who, operator.reason, now, within_hours=meant.within_hours)
    entry = order.make_entry(ident, operator.at, node)
    if earlier and to == node_state.state:
        return OperatorOrder(node, f"{node} stays in {to}; the order to go to {earlier.to} is withdrawn", entry)
    waits = find_policy_of_state(workspace, node_state).states[node_state.state].in_service
    when = " at once" if now else " when no job is on it" if waits else ""
    text = f"{node} is ordered from {node_state.state} to {to}{when}, by {operator.who}: {operator.reason}"
    return OperatorOrder(node, text, entry)


def _refuse_impossible_move(workspace: Workspace, operator: OperatorIdentity, node_state: NodeState, to: str) -> None:
    policy, hold, now = find_policy_of_state(workspace, node_state), node_state.hold, parse_time(operator.at)
    if hold and not is_hold_expired(hold, now):
        text = f"{node_state.node} is held by {hold.who} {format_hold_end(hold.until, now)}: {hold.reason}"
        raise AssayError(text, fix=f"assay release {node_state.node} --reason …")
    if to not in policy.states:
        reachable = describe_reachable_states(policy, node_state.state)
        near = suggest_names(to, policy.states.keys(), reachable)
        raise AssayError(f"the policy has no state {to!r}", fix=near if near == reachable else f"{near} {reachable}")
    if to != node_state.state:
        refuse_unreachable_states(policy, node_state, [to])
        for step in (find_next_step(policy, node_state.state, to), to):
            refuse_watched_move(workspace.fleet, node_state, step)
    if "zap" in policy.states[to].entry and (refusal := find_refused_settings(workspace.fleet).get(node_state.node)):
        raise AssayError(refusal, fix="write your own value: `assay check` lists what stands in for it")


@certify_app.command()
def certify(
    nodes: NodeNames, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """Certify that a node was inspected or repaired. In the next round it leaves its state, as the policy says.

    Checks that passed earlier no longer count, because somebody worked on the node. `assay tickets` shows the work.

    Exit codes: 0 recorded; 2 nothing was recorded.
    """
    workspace = Workspace(fleet.resolve())
    operator = identify_operator(workspace, who, reason)
    record_orders(workspace, nodes, lambda node_state: certify_node(workspace.fleet, operator, node_state), form)


def _last_request(workspace: Workspace, node_state: NodeState) -> str:
    """Return the id of the node's last order to move, "" for none. It makes the id of the next order unique."""
    entries = workspace.ledger.entries(node_state.node, kinds=[MoveEntry.kind, ZapRequestedEntry.kind])
    return entries[-1].id if entries else ""


def find_policy_of_state(workspace: Workspace, node_state: NodeState) -> LifecyclePolicy:
    """Return the policy that has the node's state. Raises AssayError if none has it."""
    policies = workspace.fleet.policies.values()
    policy = next((policy for policy in policies if node_state.state in policy.states), None)
    if policy is None:
        raise AssayError(f"{node_state.node} is in {node_state.state}, which no policy has", fix="assay check")
    return policy


approve_app = typer.Typer(add_completion=False)
decline_app = typer.Typer(add_completion=False)

DecisionId = Annotated[
    str,
    typer.Argument(metavar="DECISION", help="The id of what waits, or how it begins.", show_default=False),
]


@approve_app.command()
def approve(
    decision: DecisionId,
    reason: Reason,
    within: Within = "",
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Say yes to a decision that waits for a person, or let an order go on that has outlived its time.

    `assay status` lists what waits, `assay explain` says what would be done. The next round does it.

    Exit codes: 0 recorded; 2 nothing was recorded.
    """
    _answer(fleet, decision, (who, reason), form, is_yes=True, within=within)


@decline_app.command()
def decline(
    decision: DecisionId, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """Say no to a decision that waits for a person. The same decision is not made again while its reasons stay.

    Exit codes: 0 recorded; 2 nothing was recorded.
    """
    _answer(fleet, decision, (who, reason), form, is_yes=False)


def _answer(fleet: Path, ident: str, words: tuple[str, str], form: str, *, is_yes: bool, within: str = "") -> None:
    workspace = Workspace(fleet.resolve())
    operator, hours = identify_operator(workspace, *words), parse_within(within)
    wait = find_wait(list_fleet_waits(workspace.fleet, workspace.read_node_states()), ident)
    record_orders(
        workspace,
        [wait.node],
        lambda state: answer_wait(wait, state, operator, is_yes=is_yes, within_hours=hours),
        form,
    )
