"""`assay history NODE`: everything that the ledger has about a node, in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.cli.roll import story_of
from assay.cli.telling import told

if TYPE_CHECKING:
    from assay.lifecycle.story import Story
    from assay.model.entry import Entry

app = typer.Typer(add_completion=False, help="Show how a node got there.")


@app.command()
def history(
    node: Annotated[str, typer.Argument(metavar="NODE")], fleet: FleetDir = Path(), form: Format = "text"
) -> None:
    """Show everything that was seen of a node, decided about it and done to it, oldest first."""
    desk = Desk(fleet.resolve())
    story = story_of(desk, node)
    entries = desk.ledger.entries(node)
    if form == "json":
        typer.echo(json.dumps(_plain(story, entries), indent=1, ensure_ascii=False))
        return
    for entry in entries:
        _line(entry)
    typer.echo(f"\n{node} is in {story.state}: {story.because}")


def _plain(story: Story, entries: list[Entry]) -> dict[str, object]:
    lines = [
        {"seq": entry.seq, "at": entry.at, "kind": entry.kind, "text": told(entry), "body": entry.body}
        for entry in entries
    ]
    return {"node": story.node, "pool": story.pool, "state": story.state, "entries": lines}


def _line(entry: Entry) -> None:
    colour = {"fault": "red", "transition": "green", "hold": "yellow", "effect.failed": "red"}.get(entry.kind)
    at = typer.style(entry.at[:19].replace("T", " "), dim=True)
    typer.echo(f"{at}  {typer.style(f'{entry.kind:16}', fg=colour)}  {told(entry)}")
