"""Puts together everything that a decision may look at: inventory, history, outcomes, and who uses which node."""

from __future__ import annotations

from collections import defaultdict

from assay.controller.desk import Desk
from assay.harness.declared import declared
from assay.lifecycle.fold import fold
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Story
from assay.model.errors import Trouble
from assay.model.fleet import Node
from assay.model.outcome import Recorded


def situation_of(desk: Desk) -> Situation:
    """Return the fleet as it is known now. Nodes that the inventory no longer has are left out."""
    latest: dict[str, list[Recorded]] = defaultdict(list)
    for one in desk.ledger.latest():
        latest[one.outcome.node].append(one)
    stories = fold(desk.ledger.entries())
    nodes = [node for name, node in desk.fleet.nodes.items() if name in stories]
    views = tuple(_view(desk, node, stories[node.name], latest[node.name]) for node in nodes)
    fleet = desk.fleet
    return Situation(desk.clock.now(), desk.policy, views, fleet.lines, fleet.known_issues, fleet.observed_checks)


def _view(desk: Desk, node: Node, story: Story, latest: list[Recorded]) -> NodeView:
    return NodeView(
        node=node,
        profile=desk.fleet.profile_of(node.name),
        story=story,
        declared=tuple(declared(desk.fleet, node.name)),
        latest=tuple(latest),
        jobs=_jobs(desk, node),
    )


def _jobs(desk: Desk, node: Node) -> tuple[str, ...] | None:
    """Return the customers' jobs on a node, None where its scheduler cannot tell."""
    try:
        return tuple(str(job) for job in desk.workloads(node).jobs(node.name))
    except Trouble as trouble:
        desk.progress(f"{node.name}: cannot tell whether it is in use: {trouble}")
        return None
