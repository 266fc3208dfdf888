"""Runs the suites where a node's state asks for it, with as few pytest processes as there are sets of phases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from assay.controller.desk import Desk
from assay.controller.memory import Memory
from assay.harness.history.keep import catch_up
from assay.harness.run import validate
from assay.lifecycle.requirements import due
from assay.lifecycle.situation import Situation
from assay.lifecycle.story import Story


def judge_nodes(memory: Memory, names: Collection[str]) -> list[str]:
    """Validate the phases that are due for each of `names`, record the outcomes, and return the runs' ids.

    What stands in the way of writing them into history is told, and costs nothing else.
    """
    desk, groups = memory.desk, grouped(memory.situation(), memory.stories(), names)
    runs = [_run(desk, list(phases), nodes) for phases, nodes in groups.items()]
    for trouble in catch_up(desk.reports) if runs else ():
        desk.progress(str(trouble))
    return runs


def grouped(
    situation: Situation, stories: Mapping[str, Story], names: Collection[str]
) -> dict[tuple[str, ...], list[str]]:
    """Return the nodes by the phases that are due for them; nodes with none are left out.

    One that the situation only counts is in a state that requires nothing: what it watches is due.
    """
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    views = {view.name: view for view in situation.nodes}
    for name in (name for name in dict.fromkeys(names) if name in stories):
        view = views.get(name)
        phases = due(situation, view) if view else situation.policy.states[stories[name].state].watch
        if phases:
            groups[tuple(sorted(phases))].append(name)
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
