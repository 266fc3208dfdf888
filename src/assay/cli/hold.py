"""`assay hold NODE`: freeze a node."""

from __future__ import annotations

from pathlib import Path

import typer

from assay.cli.desk import Desk, FleetDir
from assay.cli.roll import story_of
from assay.cli.word import NodeName, Reason, who, write_down
from assay.model.errors import Trouble

app = typer.Typer(add_completion=False, help="Freeze a node: automation looks and reports, but never acts.")


@app.command()
def hold(node: NodeName, reason: Reason, fleet: FleetDir = Path()) -> None:
    """Freeze a node: automation goes on looking and reports what it would do, but does nothing."""
    desk = Desk(fleet.resolve())
    held = story_of(desk, node).held
    if held:
        raise Trouble(f"{node} is already held by {held.who}: {held.reason}", fix=f"assay release {node} --reason …")
    write_down(desk, "hold", node, reason)
    typer.echo(f"{node} is held by {who()}: {reason}")
