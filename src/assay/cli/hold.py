"""`assay hold NODE…`: freeze a node."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.desk import Desk, FleetDir, Format
from assay.cli.holding import ends_at, is_over, until_when
from assay.cli.word import NodeNames, Reason, Speaker, Who, Word, speak, speaker
from assay.lifecycle.when import moment
from assay.model.entry import derived_id
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.lifecycle.story import Story

app = typer.Typer(add_completion=False, help="Freeze a node: automation looks and reports, but never acts.")

Until = Annotated[str, typer.Option("--until", metavar="TIME", help="It ends then, by itself: 2026-12-01T18:00 (UTC).")]
Lasting = Annotated[
    str, typer.Option("--for", metavar="SPAN", help="It ends by itself so long after it began: 90m, 12h, 3d, 2w.")
]


@app.command()
def hold(
    nodes: NodeNames,
    reason: Reason,
    until: Until = "",
    lasting: Lasting = "",
    who: Who = "",
    fleet: FleetDir = Path(),
    form: Format = "text",
) -> None:
    """Freeze a node: automation goes on looking and reports what it would do, but does nothing.

    Without an end it lasts until `assay release`, and is brought to mind again and again.

    To move its end, hold it again with the same reason and another end.
    """
    desk = Desk(fleet.resolve())
    said = speaker(desk, who, reason)
    speak(desk, nodes, lambda story: _held(desk, said, story, until, lasting), form)


def _held(desk: Desk, said: Speaker, story: Story, until: str, lasting: str) -> Word:
    node, now = story.node, moment(said.at)
    held = story.held if story.held and not is_over(story.held, now) else None
    if held and (held.who, held.reason) != (said.who, said.reason):
        told = f"{node} is already held by {held.who} {until_when(held.until, now)}: {held.reason}"
        raise Trouble(told, fix=f"assay release {node} --reason …")
    end = ends_at(until, lasting, moment(held.at) if held else now, now)
    lasts = until_when(end, now)
    if held and moment(held.until) == moment(end):
        return Word(node, f"{node} is held by you already, {lasts}: {held.reason}")
    more = {"until": end} if end else {}
    entry = said.entry(derived_id("hold", node, _last_word(desk, story)), "hold", node, **more)
    return Word(node, f"{node} is held by {said.who} {lasts}: {said.reason}", entry)


def _last_word(desk: Desk, story: Story) -> str:
    """Return the id of the last hold or release of the node: a hold follows that one only once."""
    words = desk.ledger.entries(story.node, kinds=["hold", "release"])
    return words[-1].id if words else ""
