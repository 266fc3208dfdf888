"""People's orders: `hold`, `release`, `move` and `certify` by the policy, `approve`, `decline`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from assay.act.orders.orders import (
    WantedMove,
    answer_wait,
    certify_node,
    find_wait,
    hold_node,
    list_fleet_waits,
    make_move_order,
    release_node,
)
from assay.cli.operator_orders import NodeNames, Reason, Who, Within, identify_operator, parse_within, record_orders
from assay.cli.options import FleetDir, OutputFormat, argument, option
from assay.cli.workspace import Workspace

Until = Annotated[str, option("--until TIME", "End the hold at this time: 2026-12-01T18:00 (UTC).")]
Duration = Annotated[str, option("--for DURATION", "End the hold this long after its start: 90m, 12h, 3d, 2w.")]


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


def release(
    nodes: NodeNames, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """End a hold. From the next round on, automation acts on the evidence again.

    Exit codes: 0 all nodes are released; 2 nothing was recorded.
    """
    workspace = Workspace(fleet.resolve())
    operator = identify_operator(workspace, who, reason)
    record_orders(workspace, nodes, lambda state: release_node(operator, state), form)


Now = Annotated[bool, option("--now", "Do not wait for the end of customers' jobs on the node.")]


def move(
    nodes: NodeNames,
    state: Annotated[str, argument("STATE", "The target state, by its name in the policy.")],
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
    operator, meant = identify_operator(workspace, who, reason), WantedMove(state, now, parse_within(within))
    record_orders(
        workspace,
        nodes,
        lambda node_state: make_move_order(workspace.fleet, workspace.ledger, operator, node_state, meant),
        form,
    )


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


DecisionId = Annotated[str, argument("DECISION", "The id of what waits, or how it begins.")]


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
