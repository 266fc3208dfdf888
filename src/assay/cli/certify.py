"""`assay certify NODE`: a technician's word that a node was inspected."""

from __future__ import annotations

from pathlib import Path

import typer

from assay.cli.desk import Desk, FleetDir
from assay.cli.roll import story_of
from assay.cli.word import NodeName, Reason, who, write_down
from assay.model.errors import Trouble

app = typer.Typer(add_completion=False, help="Certify a technician's inspection of a node.")


@app.command()
def certify(node: NodeName, reason: Reason, fleet: FleetDir = Path()) -> None:
    """Certify that a node was inspected or repaired. Every earlier pass stops counting, since hands were on it."""
    desk = Desk(fleet.resolve())
    story = story_of(desk, node)
    policies = desk.fleet.policies.values()
    if not any((state := policy.states.get(story.state)) and state.certified_to for policy in policies):
        raise Trouble(
            f"{node} is in {story.state}, which waits for nobody's certification", fix="assay explain " + node
        )
    write_down(desk, "certified", node, reason)
    typer.echo(f"{node} is certified in {story.state} by {who()}: {reason}")
