"""Runs the suites where a node's state asks for it, with as few pytest processes as there are sets of phases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from assay.controller.desk import Desk
from assay.harness.history.keep import catch_up
from assay.harness.run import validate
from assay.lifecycle.requirements import due
from assay.lifecycle.situation import Situation


def judge_nodes(desk: Desk, situation: Situation, names: Collection[str]) -> list[str]:
    """Validate the phases that are due for each of `names`, record the outcomes, and return the runs' ids.

    What stands in the way of writing them into history is told, and costs nothing else.
    """
    runs = [_run(desk, list(phases), nodes) for phases, nodes in grouped(situation, names).items()]
    for trouble in catch_up(desk.reports) if runs else ():
        desk.progress(str(trouble))
    return runs


def grouped(situation: Situation, names: Collection[str]) -> dict[tuple[str, ...], list[str]]:
    """Return the nodes by the phases that are due for them; nodes with none are left out."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for view in situation.nodes:
        if view.name in names and (phases := tuple(sorted(due(situation, view)))):
            groups[phases].append(view.name)
    return dict(groups)


def _run(desk: Desk, phases: list[str], nodes: list[str]) -> str:
    desk.progress(f"judging {len(nodes)} nodes, phase {' and '.join(phases)} …")
    result = validate(
        desk.fleet,
        desk.evidence.folder / "latest",
        nodes=nodes,
        phases=phases,
        reports=desk.reports,
        ledger=desk.ledger,
        clock=desk.clock,
    )
    return result.run.id
