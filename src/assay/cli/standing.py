"""How a node stands to what its state asks of checks: what still lacks a pass, and what fails and decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from assay.cli.desk import Desk

if TYPE_CHECKING:
    from assay.lifecycle.requirements import Judgement
    from assay.lifecycle.situation import NodeView, Situation
    from assay.lifecycle.story import Story
    from assay.model.outcome import Recorded

Plain = dict[str, Any]


def standing(desk: Desk, story: Story) -> Plain:
    """Return `requires` (one entry a phase that the state requires) and `undecided` (failures that decide nothing).

    A node that the inventory no longer has, or a state that the policy no longer has, is asked nothing.
    """
    from assay.lifecycle.requirements import judge

    situation = _situation(desk, story)
    if situation is None:
        return {"requires": [], "undecided": []}
    view = situation.nodes[0]
    requires = [_required(judgement) for judgement in judge(situation, view)]
    return {"requires": requires, "undecided": list(_undecided(situation, view))}


def lines(told: Plain) -> Iterator[str]:
    """Yield what `standing` says, one line each."""
    for one in told["requires"]:
        if one["lacks"]:
            more = f" (and {len(one['lacks']) - 1} more)" if len(one["lacks"]) > 1 else ""
            yield f"phase {one['phase']} is not passed: {one['lacks'][0]}{more}"
    for one in told["undecided"]:
        yield f"{one['check'].rpartition('::')[2]} fails on {one['subject']}: {one['reason']} ({one['why']})"


def _situation(desk: Desk, story: Story) -> Situation | None:
    """Return the situation of this node alone, without asking its scheduler."""
    from assay.harness.declared import declared
    from assay.lifecycle.situation import NodeView, Situation

    fleet = desk.fleet
    policy = next((policy for policy in fleet.policies.values() if story.state in policy.states), None)
    node = fleet.nodes.get(story.node)
    if policy is None or node is None:
        return None
    latest = tuple(desk.ledger.latest(node.name))
    view = NodeView(node, fleet.profile_of(node.name), story, tuple(declared(fleet, node.name)), latest, None)
    return Situation(desk.clock.now(), policy, (view,), fleet.lines, fleet.known_issues, fleet.observed_checks)


def _required(judgement: Judgement) -> Plain:
    return {
        "phase": judgement.requirement.phase,
        "passed": len(judgement.passed),
        "excused": len(judgement.excused),
        "lacks": list(judgement.lacks),
    }


def _undecided(situation: Situation, view: NodeView) -> Iterator[Plain]:
    for one in view.latest:
        if why := _why(situation, view, one):
            names = ("check", "subject", "reason")
            yield {**{name: getattr(one.outcome, name) for name in names}, "run": one.run, "why": why}


def _why(situation: Situation, view: NodeView, one: Recorded) -> str:
    """Return why a failure decides nothing, "" where it decides."""
    from assay.lifecycle.excused import excuse_of

    if one.outcome.verdict == "fail" and one.outcome.check in situation.observed:
        return "observed only"
    issue = excuse_of(situation.known, view.node, one.outcome, situation.now)
    return issue.said if issue else ""
