"""Runs of the suites over nodes, and what those that a schedule asks for mean for nodes in service."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from assay.controller.desk import Desk
from assay.controller.known.newest import outcomes_of
from assay.controller.known.stories import stories_of
from assay.controller.lock import told_by_one
from assay.harness.history.keep import catch_up
from assay.harness.run import RunResult, validate
from assay.lifecycle import journal
from assay.lifecycle.classify import cleared_in, faults_of
from assay.lifecycle.excused import counting, proving
from assay.lifecycle.sightings import in_outcomes
from assay.lifecycle.story import Story
from assay.model.checks import Phase
from assay.model.entry import Entry
from assay.model.outcome import Recorded


def judged(desk: Desk, nodes: Collection[str], phase: Phase, evidence: Path | None = None) -> RunResult:
    """Judge nodes in a phase, by the newest evidence or by that in a folder, and write the run into history."""
    result = run_of(desk, nodes, [phase], evidence)
    into_history(desk)
    return result


def run_of(desk: Desk, nodes: Collection[str], phases: Collection[str], evidence: Path | None = None) -> RunResult:
    """Judge nodes in some phases, by the newest evidence or by that in a folder, and record the outcomes."""
    return validate(
        desk.fleet,
        evidence or desk.evidence.folder / "latest",
        nodes=nodes,
        phases=phases,
        reports=desk.reports,
        ledger=desk.ledger,
        clock=desk.clock,
    )


def into_history(desk: Desk) -> None:
    """Write the runs that ended into history. What stands in the way of that is told, and costs nothing else."""
    for trouble in catch_up(desk.reports):
        desk.progress(str(trouble))


def counts_of(result: RunResult) -> str:
    """Return `38 passed, 2 failed`, as a run came out."""
    words = {"pass": "passed", "fail": "failed", "error": "could not be judged", "skip": "skipped"}
    return ", ".join(f"{result.counts[one]} {word}" for one, word in words.items() if result.counts[one])


def held_against(desk: Desk, outcomes: Sequence[Recorded]) -> None:
    """Append the faults that these outcomes of nodes in service are, and the ends of those that they prove gone.

    A node that has left service since is judged by what its state requires.
    """
    names = list(dict.fromkeys(one.outcome.node for one in outcomes))
    latest = outcomes_of(desk.ledger, names)
    with told_by_one(desk.home):
        stories = stories_of(desk.ledger)
        for name in names:
            if name in stories and desk.policy.states[stories[name].state].in_service:
                own = [one for one in outcomes if one.outcome.node == name]
                desk.ledger.append(*_said(desk, stories[name], own, latest[name]))


def _said(desk: Desk, story: Story, outcomes: Sequence[Recorded], latest: Sequence[Recorded]) -> list[Entry]:
    fleet, node, now = desk.fleet, desk.fleet.nodes[story.node], desk.clock.now()
    counted = counting(outcomes, node, fleet.known_issues, fleet.observed_checks, now)
    faults = faults_of(fleet.catalog, node, story, in_outcomes(fleet.catalog, counted))
    ends = cleared_in(story, proving(latest, fleet.observed_checks))
    return [journal.fault(one, now) for one in faults] + [journal.cleared(node.name, one, now) for one in ends]
