"""`assay release NODE…`: end a hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.cli.word import NodeNames, Reason, Speaker, Who, Word, speak, speaker
from assay.model.entry import derived_id
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.lifecycle.story import Story

app = typer.Typer(add_completion=False, help="End a hold.")


@app.command()
def release(nodes: NodeNames, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: Format = "text") -> None:
    """End a hold; at the next look automation does what the evidence asks for."""
    desk = Desk(fleet.resolve())
    said = speaker(desk, who, reason)
    speak(desk, nodes, lambda story: _released(said, story), form)


def _released(said: Speaker, story: Story) -> Word:
    node, held = story.node, story.held
    if held is None:
        raise Trouble(f"{node} is not held by anybody")
    entry = said.entry(derived_id("release", node, held.id), "release", node)
    return Word(node, f"{node} is released; {held.who} held it: {held.reason}", entry)
