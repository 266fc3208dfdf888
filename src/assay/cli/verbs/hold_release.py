"""`assay hold NODE…` and `assay release NODE…`: stop automation for a node, and let it act again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.act.orders.node_orders import hold_node, release_node
from assay.cli.operator_orders import NodeNames, Reason, Who, identify_operator, record_orders
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace

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
