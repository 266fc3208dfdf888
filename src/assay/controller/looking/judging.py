"""Runs the suites where a node's state asks for it, with as few pytest processes as there are sets of phases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from assay.controller.known.memory import Memory
from assay.controller.looking.judgement import into_history, run_of
from assay.lifecycle.requirements import due
from assay.lifecycle.situation import Situation
from assay.lifecycle.story import Story


def judge_nodes(memory: Memory, names: Collection[str]) -> list[str]:
    """Validate the phases that are due for each of `names`, record the outcomes, and return the runs' ids."""
    desk, runs = memory.desk, list[str]()
    for phases, nodes in grouped(memory.situation(), memory.stories(), names).items():
        desk.progress(f"judging {len(nodes)} nodes, phase {' and '.join(phases)} …")
        runs.append(run_of(desk, nodes, phases).run.id)
    if runs:
        into_history(desk)
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
