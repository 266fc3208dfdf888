"""`assay hold NODE…` and `assay release NODE…`: stop automation for a node, and let it act again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.hold_expiry import format_hold_end, is_hold_expired, parse_hold_end
from assay.cli.operator_orders import (
    NodeNames,
    OperatorIdentity,
    OperatorOrder,
    Reason,
    Who,
    identify_operator,
    record_orders,
)
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.model.entries.operator_entries import HoldEntry, ReleaseEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import derive_id
from assay.model.timestamps import parse_time

if TYPE_CHECKING:
    from assay.lifecycle.node_state import NodeState

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
    record_orders(workspace, nodes, lambda state: _hold_node(workspace, operator, state, until, duration), form)


def _hold_node(
    workspace: Workspace, operator: OperatorIdentity, state: NodeState, until: str, duration: str
) -> OperatorOrder:
    node, now = state.node, parse_time(operator.at)
    current = state.hold if state.hold and not is_hold_expired(state.hold, now) else None
    if current and (current.who, current.reason) != (operator.who, operator.reason):
        text = f"{node} is already held by {current.who} {format_hold_end(current.until, now)}: {current.reason}"
        raise AssayError(text, fix=f"assay release {node} --reason …")
    end = parse_hold_end(until, duration, parse_time(current.at) if current else now, now)
    end_text = format_hold_end(end, now)
    if current and parse_time(current.until) == parse_time(end):
        return OperatorOrder(node, f"{node} is already held by you, {end_text}: {current.reason}")
    ident = derive_id("hold", node, _last_hold_or_release(workspace, state))
    entry = HoldEntry(operator.who, operator.reason, end).make_entry(ident, operator.at, node)
    return OperatorOrder(node, f"{node} is held by {operator.who} {end_text}: {operator.reason}", entry)


def _last_hold_or_release(workspace: Workspace, state: NodeState) -> str:
    """Return the id of the node's last hold or release, "" for none. It makes the id of the next hold unique."""
    entries = workspace.ledger.entries(state.node, kinds=[HoldEntry.kind, ReleaseEntry.kind])
    return entries[-1].id if entries else ""


@release_app.command()
def release(
    nodes: NodeNames, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """End a hold. From the next round on, automation acts on the evidence again.

    Exit codes: 0 all nodes are released; 2 nothing was recorded.
    """
    workspace = Workspace(fleet.resolve())
    operator = identify_operator(workspace, who, reason)
    record_orders(workspace, nodes, lambda state: _release_node(operator, state), form)


def _release_node(operator: OperatorIdentity, state: NodeState) -> OperatorOrder:
    node, current = state.node, state.hold
    if current is None:
        raise AssayError(f"{node} is not held")
    ident = derive_id("release", node, current.id)
    entry = ReleaseEntry(operator.who, operator.reason).make_entry(ident, operator.at, node)
    return OperatorOrder(node, f"{node} is released; {current.who} held it: {current.reason}", entry)
