"""`assay history NODE`: everything that the ledger has about a node, in order; or what all runs said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.cli.roll import story_of
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.lifecycle.story import Story
    from assay.model.entry import Entry

app = typer.Typer(add_completion=False, help="Show how a node got there.")

MOVES = frozenset(
    ("node.enrolled", "transition", "hold", "release", "certified", "move", "zap.asked", "part.replaced")
)  # fmt: skip

Node = Annotated[
    str, typer.Argument(metavar="[NODE]", help="The node; with --outcomes, all pools where none is named.")
]
Outcomes = Annotated[
    bool, typer.Option("--outcomes", help="Show when which check failed and recovered, and what flaps.")
]
Measurements = Annotated[
    bool, typer.Option("--measurements", help="Show what was measured, beside what it usually is.")
]
Days = Annotated[int, typer.Option("--days", min=0, help="With those: of so many days, and today.")]
Moves = Annotated[bool, typer.Option("--moves", help="Only where it went, and what people said of it.")]
Serial = Annotated[str, typer.Option("--serial", metavar="S", help="Where the part with this serial number was.")]
Check = Annotated[str, typer.Option("--check", metavar="GLOB", help="With those: only checks such as '*ecc*'.")]


@app.command()
def history(
    node: Node = "",
    moves: Moves = False,
    serial: Serial = "",
    outcomes: Outcomes = False,
    measurements: Measurements = False,
    days: Days = 90,
    check: Check = "",
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Show everything that was seen of a node, decided about it and done to it, oldest first."""
    desk = Desk(fleet.resolve())
    if outcomes or measurements:
        from assay.cli import past

        show = past.measurements if measurements else past.outcomes if node else past.pools
        show(desk, node, days, check, form)
        return
    if serial:
        from assay.cli.whereabouts import show_stays

        show_stays(desk, serial, form)
        return
    if not node:
        raise Trouble("no node is named", fix="name one; of the whole fleet: assay history --outcomes")
    story = story_of(desk, node)
    entries = _told(desk.ledger.entries(node), moves=moves)
    if form == "json":
        typer.echo(json.dumps(_plain(story, entries), indent=1, ensure_ascii=False))
        return
    for entry, text in entries:
        _line(entry, text)
    typer.echo(f"\n{node} is in {story.state}: {story.because}")


def _told(entries: list[Entry], *, moves: bool) -> list[tuple[Entry, str]]:
    """Return each entry with its words; with `moves` only where the node went and what people said of it."""
    from assay.controller.people.telling import Teller

    teller = Teller()
    told = [(entry, teller.told(entry)) for entry in entries]
    return [one for one in told if not moves or one[0].kind in MOVES]


def _plain(story: Story, entries: list[tuple[Entry, str]]) -> dict[str, object]:
    lines = [
        {"seq": entry.seq, "at": entry.at, "kind": entry.kind, "text": text, "body": entry.body}
        for entry, text in entries
    ]
    return {"node": story.node, "pool": story.pool, "state": story.state, "entries": lines}


def _line(entry: Entry, text: str) -> None:
    colour = {"fault": "red", "transition": "green", "hold": "yellow", "effect.failed": "red"}.get(entry.kind)
    at = typer.style(entry.at[:19].replace("T", " "), dim=True)
    typer.echo(f"{at}  {typer.style(f'{entry.kind:16}', fg=colour)}  {text}")
