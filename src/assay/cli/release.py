"""`assay release NODE`: end a hold."""

from __future__ import annotations

from pathlib import Path

import typer

from assay.cli.desk import Desk, FleetDir
from assay.cli.roll import story_of
from assay.cli.word import NodeName, Reason, write_down
from assay.model.errors import Trouble

app = typer.Typer(add_completion=False, help="End a hold.")


@app.command()
def release(node: NodeName, reason: Reason, fleet: FleetDir = Path()) -> None:
    """End a hold; at the next look automation does what the evidence asks for."""
    desk = Desk(fleet.resolve())
    held = story_of(desk, node).held
    if held is None:
        raise Trouble(f"{node} is not held by anybody")
    write_down(desk, "release", node, reason)
    typer.echo(f"{node} is released; {held.who} held it: {held.reason}")
