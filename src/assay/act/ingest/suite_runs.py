"""Runs the suites over nodes: the phases that their states ask for, and those of a schedule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from assay.act.loop.context import ControllerContext
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.decide.moves.required_checks import list_due_phases
from assay.decide.state.fleet_snapshot import FleetSnapshot
from assay.decide.state.node_state import NodeState
from assay.ledger.history.append import append_missing_runs
from assay.model.specs.check_catalog import Phase
from assay.model.text.lists import format_count
from assay.validate.runs.run_validation import RunResult, run_validation
from assay.validate.runs.subjects import NodeSelection, list_declared_checks


def run_due_suites(fleet_state: FleetSnapshotCache, names: Collection[str]) -> list[str]:
    """Judge each of the nodes `names` in the phases that are due for it; return the ids of the runs.

    There is one pytest run for each set of phases.
    """
    context, runs = fleet_state.context, list[str]()
    groups = group_by_due_phases(fleet_state.build_snapshot(), fleet_state.node_states(), names)
    for phases, nodes in groups.items():
        checks = list_declared_checks(context.fleet, phases)
        if checks and not any(map(NodeSelection(context.fleet, tuple(nodes)).due_subjects, checks)):
            continue  # the nodes lack what these checks need
        context.progress(f"judging {format_count(len(nodes), 'node')}, phase {' and '.join(phases)} …")
        runs.append(run_suites(context, nodes, phases).run.id)
    if runs:
        write_run_history(context)
    return runs


def group_by_due_phases(
    snapshot: FleetSnapshot, node_states: Mapping[str, NodeState], names: Collection[str]
) -> dict[tuple[str, ...], list[str]]:
    """Return the nodes by the phases that are due for them, without nodes that have none.

    A node that the snapshot only counts is in a state that requires nothing: the phases that the state watches are due.
    """
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    views = {view.name: view for view in snapshot.nodes}
    for name in (name for name in dict.fromkeys(names) if name in node_states):
        view = views.get(name)
        phases = list_due_phases(snapshot, view) if view else snapshot.policy.states[node_states[name].state].watch
        if phases:
            groups[tuple(sorted(phases))].append(name)
    return dict(groups)


def judge_phase(
    context: ControllerContext,
    nodes: Collection[str],
    phase: Phase,
    evidence: Path | None = None,
    extra: Sequence[str] = (),
) -> RunResult:
    """Judge nodes in one phase, by the newest evidence or by that in a folder, and write the run into the history.

    `extra` are arguments for pytest; what they deselect is not missing.
    """
    result = run_suites(context, nodes, [phase], evidence, extra)
    write_run_history(context)
    return result


def run_suites(
    context: ControllerContext,
    nodes: Collection[str],
    phases: Collection[str],
    evidence: Path | None = None,
    extra: Sequence[str] = (),
) -> RunResult:
    """Judge nodes in some phases, by the newest evidence or by that in a folder, and record the outcomes."""
    return run_validation(
        context.fleet,
        evidence or context.evidence.folder / "latest",
        nodes=nodes,
        phases=phases,
        reports=context.reports,
        ledger=context.ledger,
        clock=context.clock,
        extra=extra,
    )


def write_run_history(context: ControllerContext) -> None:
    """Write ended runs into the history. An error is shown as progress and stops nothing else."""
    for error in append_missing_runs(context.reports):
        context.progress(str(error))


def format_run_counts(result: RunResult) -> str:
    """Return the counts of a run in words, such as `38 passed, 2 failed`."""
    words = {"pass": "passed", "fail": "failed", "error": "could not be judged", "skip": "skipped"}
    return ", ".join(f"{result.counts[verdict]} {word}" for verdict, word in words.items() if result.counts[verdict])
