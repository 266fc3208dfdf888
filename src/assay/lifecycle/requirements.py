"""What a state requires of the newest outcomes, and which of them count: fresh, passed, newer than the last repair."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Story
from assay.lifecycle.when import hours, moment, spoken
from assay.model.checks import Phase
from assay.model.outcome import Recorded
from assay.model.policy import LifecyclePolicy, Requirement


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a node stands to one requirement. `lacks` says per check and subject why it does not count as passed."""

    requirement: Requirement
    passed: tuple[Recorded, ...]
    failed: tuple[Recorded, ...]
    lacks: tuple[str, ...]

    @property
    def met(self) -> bool:
        """Whether every declared check counts as passed, and there was at least one."""
        return bool(self.passed) and not self.failed and not self.lacks


def judge(situation: Situation, view: NodeView) -> list[Judgement]:
    """Return the judgement on every requirement of the node's state."""
    newest = {(one.outcome.check, one.outcome.subject): one for one in view.latest}
    return [_judge(situation, view, want, newest) for want in situation.state_of(view).requires]


def due(situation: Situation, view: NodeView) -> tuple[Phase, ...]:
    """Return the phases to be judged now: what the state watches always, what it requires while that is not met.

    Nothing that is required is due before the actions on arrival are verified: it would judge the old node.
    """
    state = situation.state_of(view)
    unmet = [judgement.requirement.phase for judgement in judge(situation, view) if not judgement.met]
    return tuple(dict.fromkeys([*state.watch, *(unmet if arrived(situation, view) else [])]))


def arrived(situation: Situation, view: NodeView) -> bool:
    """Whether every action on arrival in the node's state is verified."""
    return all(standing == "verified" for _, standing in arrivals(situation, view))


def arrivals(situation: Situation, view: NodeView) -> list[tuple[str, str]]:
    """Return the actions on arrival that something waits for, each with its standing ("" before it began).

    A ticket is paperwork: nothing waits for it. A node that was enrolled in its state arrived by no decision.
    """
    if not view.story.decision:
        return []
    wanted = [action for action in situation.state_of(view).entry if action != "ticket"]
    effects = [(action, view.story.effect_of(view.story.decision, action)) for action in wanted]
    return [(action, effect.standing if effect else "") for action, effect in effects]


def settled_from(policy: LifecyclePolicy, story: Story) -> datetime:
    """Return the time from which what is seen may be held against the node: in its state, and settled after repair."""
    since, repaired = moment(story.since), story.repaired_at
    return max(since, moment(repaired) + timedelta(minutes=policy.settle_minutes)) if repaired else since


def _judge(
    situation: Situation, view: NodeView, want: Requirement, newest: dict[tuple[str, str], Recorded]
) -> Judgement:
    declared = [(check, str(subject)) for check, subject in view.declared if want.phase in check.phases]
    found = [(f"{check.id}[{subject}]", newest.get((check.id, subject))) for check, subject in declared]
    since = settled_from(situation.policy, view.story)
    failed = [one for _, one in found if one and one.outcome.verdict == "fail" and moment(one.measured_at) >= since]
    lacks = [f"{title}: {lack}" for title, one in found if (lack := _lack(situation, view, want, one))]
    if want.active and not any(check.active for check, _ in view.declared if want.phase in check.phases):
        lacks.append(f"no active check is declared for phase {want.phase}")
    passed = [one for _, one in found if one and not _lack(situation, view, want, one)]
    return Judgement(want, tuple(passed), tuple(failed), tuple(lacks))


def _lack(situation: Situation, view: NodeView, want: Requirement, one: Recorded | None) -> str:
    """Return why this outcome does not count as a pass, "" when it does."""
    if one is None:
        return "never judged"
    if one.outcome.verdict != "pass":
        return f"{one.outcome.verdict}: {one.outcome.reason}"
    if not one.outcome.evidence_at:
        return "passed without evidence"
    seen = moment(one.outcome.evidence_at)
    if abs(situation.now - seen) > hours(want.fresh_hours):
        return f"its evidence is {spoken(situation.now - seen)} old, more than {want.fresh_hours:g} h"
    if want.newer_than_repair and seen <= moment(view.story.repaired_at):
        return "its evidence is older than the last repair"
    return ""
