"""Runs of the suites over nodes, and what those that a schedule asks for mean for nodes in service.

Runs the suites where a node's state asks for it, with as few pytest processes as there are sets of phases.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from assay.controller.cache.fleet_state import FleetStateCache
from assay.controller.cache.ledger_cache import read_latest_outcomes, read_node_states
from assay.controller.context import ControllerContext
from assay.controller.controller_locks import hold_fault_lock
from assay.harness.runs.run_validation import RunResult, run_validation
from assay.lifecycle import ledger_entries
from assay.lifecycle.decisions.known_issues import drop_excused_outcomes, select_proving_outcomes
from assay.lifecycle.decisions.requirements import list_due_phases
from assay.lifecycle.faults.detection import count_sightings, find_clearances
from assay.lifecycle.faults.sightings import find_check_sightings
from assay.lifecycle.fleet_snapshot import FleetSnapshot
from assay.lifecycle.node_state import NodeState
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import RecordedOutcome
from assay.model.specs.check_catalog_and_gates import Phase
from assay.results.history.append import append_missing_runs


def judge_phase(
    desk: ControllerContext, nodes: Collection[str], phase: Phase, evidence: Path | None = None
) -> RunResult:
    """Judge nodes in a phase, by the newest evidence or by that in a folder, and write the run into history."""
    result = run_suites(desk, nodes, [phase], evidence)
    write_run_history(desk)
    return result


def run_suites(
    desk: ControllerContext, nodes: Collection[str], phases: Collection[str], evidence: Path | None = None
) -> RunResult:
    """Judge nodes in some phases, by the newest evidence or by that in a folder, and record the outcomes."""
    return run_validation(
        desk.fleet,
        evidence or desk.evidence.folder / "latest",
        nodes=nodes,
        phases=phases,
        reports=desk.reports,
        ledger=desk.ledger,
        clock=desk.clock,
    )


def write_run_history(desk: ControllerContext) -> None:
    """Write the runs that ended into history. What stands in the way of that is told, and costs nothing else."""
    for trouble in append_missing_runs(desk.reports):
        desk.progress(str(trouble))


def format_run_counts(result: RunResult) -> str:
    """Return `38 passed, 2 failed`, as a run came out."""
    words = {"pass": "passed", "fail": "failed", "error": "could not be judged", "skip": "skipped"}
    return ", ".join(f"{result.counts[one]} {word}" for one, word in words.items() if result.counts[one])


def record_outcome_faults(desk: ControllerContext, outcomes: Sequence[RecordedOutcome]) -> None:
    """Append the faults that these outcomes of nodes in service are, and the ends of those that they prove gone.

    A node that has left service since is judged by what its state requires.
    """
    names = list(dict.fromkeys(one.outcome.node for one in outcomes))
    latest = read_latest_outcomes(desk.ledger, names)
    with hold_fault_lock(desk.home):
        stories = read_node_states(desk.ledger)
        for name in names:
            if name in stories and desk.policy.states[stories[name].state].in_service:
                own = [one for one in outcomes if one.outcome.node == name]
                desk.ledger.append(*_make_outcome_entries(desk, stories[name], own, latest[name]))


def _make_outcome_entries(
    desk: ControllerContext, story: NodeState, outcomes: Sequence[RecordedOutcome], latest: Sequence[RecordedOutcome]
) -> list[LedgerEntry]:
    fleet, node, now = desk.fleet, desk.fleet.nodes[story.node], desk.clock.now()
    counted = drop_excused_outcomes(outcomes, node, fleet.known_issues, fleet.observed_checks, now)
    faults = count_sightings(fleet.fault_catalog, node, story, find_check_sightings(fleet.fault_catalog, counted))
    ends = find_clearances(story, select_proving_outcomes(latest, fleet.observed_checks))
    return [ledger_entries.make_fault_entry(one, now) for one in faults] + [
        ledger_entries.make_cleared_entry(node.name, one, now) for one in ends
    ]


def run_due_suites(memory: FleetStateCache, names: Collection[str]) -> list[str]:
    """Validate the phases that are due for each of `names`, record the outcomes, and return the runs' ids."""
    desk, runs = memory.context, list[str]()
    for phases, nodes in group_by_due_phases(memory.build_snapshot(), memory.node_states(), names).items():
        desk.progress(f"judging {len(nodes)} nodes, phase {' and '.join(phases)} …")
        runs.append(run_suites(desk, nodes, phases).run.id)
    if runs:
        write_run_history(desk)
    return runs


def group_by_due_phases(
    situation: FleetSnapshot, stories: Mapping[str, NodeState], names: Collection[str]
) -> dict[tuple[str, ...], list[str]]:
    """Return the nodes by the phases that are due for them; nodes with none are left out.

    One that the situation only counts is in a state that requires nothing: what it watches is due.
    """
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    views = {view.name: view for view in situation.nodes}
    for name in (name for name in dict.fromkeys(names) if name in stories):
        view = views.get(name)
        phases = list_due_phases(situation, view) if view else situation.policy.states[stories[name].state].watch
        if phases:
            groups[tuple(sorted(phases))].append(name)
    return dict(groups)
