"""`assay move NODE… STATE`: a person sends a node along an edge of the policy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.asked import Now, asked
from assay.cli.desk import Desk, FleetDir, Format
from assay.cli.word import NodeNames, Reason, Who, speak, speaker

app = typer.Typer(add_completion=False, help="Send a node to another state, along a way that the policy draws.")

State = Annotated[str, typer.Argument(metavar="STATE", help="Where to, as the policy calls it.", show_default=False)]


@app.command()
def move(
    nodes: NodeNames,
    state: State,
    reason: Reason,
    now: Now = False,
    who: Who = "",
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Send a node to another state. The next pass decides on it; limits and what a state requires still count.

    Where the policy draws no way there, you are told where the node may go. Typed twice, it happens once.

    To take back what was asked, send the node to the state that it is in.
    """
    desk = Desk(fleet.resolve())
    said = speaker(desk, who, reason)
    speak(desk, nodes, lambda story: asked(desk, said, story, state, "move", now=now), form)
