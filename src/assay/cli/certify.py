"""`assay certify NODE…`: a technician's word that a node was inspected."""

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

app = typer.Typer(add_completion=False, help="Certify a technician's inspection of a node.")


@app.command()
def certify(nodes: NodeNames, reason: Reason, who: Who = "", fleet: FleetDir = Path(), form: Format = "text") -> None:
    """Certify that a node was inspected or repaired: at the next pass it goes on to where its state leads.

    Every earlier pass stops counting, since hands were on it. `assay tickets` says what to check first.
    """
    desk = Desk(fleet.resolve())
    said = speaker(desk, who, reason)
    speak(desk, nodes, lambda story: _certified(desk, said, story), form)


def _certified(desk: Desk, said: Speaker, story: Story) -> Word:
    node, state = story.node, story.state
    states = [policy.states[state] for policy in desk.fleet.policies.values() if state in policy.states]
    to = next((one.certified_to for one in states if one.certified_to), None)
    if to is None:
        raise Trouble(f"{node} is in {state}, which waits for nobody's certification", fix="assay explain " + node)
    if known := story.certified:
        return Word(node, f"{node} is certified in {state} already, by {known.who}: {known.reason}")
    entry = said.entry(derived_id("certified", node, story.stay), "certified", node)
    return Word(node, f"{node} is certified in {state} by {said.who}, and goes to {to}: {said.reason}", entry)
