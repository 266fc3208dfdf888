"""What a state requires of the newest outcomes, and which of them count: fresh, passed, newer than the last repair."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from assay.lifecycle.excused import excuse_of
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Story
from assay.lifecycle.when import hours, moment, spoken
from assay.model.checks import Check, Phase
from assay.model.clock import AHEAD
from assay.model.known import KnownIssue
from assay.model.outcome import Recorded
from assay.model.policy import LifecyclePolicy, Requirement


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a node stands to one requirement. `lacks` says per check and subject why it does not count as passed.

    `excused` are failures that block nothing, each with its known issue; their evidence must be as fresh as a pass's.
    """

    requirement: Requirement
    passed: tuple[Recorded, ...]
    failed: tuple[Recorded, ...]
    lacks: tuple[str, ...]
    excused: tuple[tuple[Recorded, KnownIssue], ...] = ()

    @property
    def met(self) -> bool:
        """Whether every declared check counts as passed or is excused, and at least one passed."""
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
    deciding = [(check, subject) for check, subject in declared if check.id not in situation.observed]
    found = [(check, subject, newest.get((check.id, subject))) for check, subject in deciding]
    since = settled_from(situation.policy, view.story)
    judgement = _Judging()
    for check, subject, one in found:
        issue = excuse_of(situation.known, view.node, one.outcome, situation.now) if one else None
        if one and one.outcome.verdict == "fail" and not issue and moment(one.measured_at) >= since:
            judgement.failed.append(one)
        if lack := _lack(situation, view, want, check, one, excused=issue is not None):
            judgement.lacks.append(f"{check.id}[{subject}]: {lack}")
        elif one and issue:
            judgement.excused.append((one, issue))
        elif one:
            judgement.passed.append(one)
    if want.active and not any(check.active for check, _, _ in found):
        judgement.lacks.append(f"no active check is declared for phase {want.phase}")
    return judgement.of(want)


@dataclass(slots=True)
class _Judging:
    """A judgement that is being made."""

    passed: list[Recorded] = field(default_factory=list)
    failed: list[Recorded] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)
    excused: list[tuple[Recorded, KnownIssue]] = field(default_factory=list)

    def of(self, want: Requirement) -> Judgement:
        return Judgement(want, tuple(self.passed), tuple(self.failed), tuple(self.lacks), tuple(self.excused))


def _lack(
    situation: Situation, view: NodeView, want: Requirement, check: Check, one: Recorded | None, *, excused: bool
) -> str:
    """Return why this outcome does not count as a pass, "" when it does, or is excused as if it did."""
    if one is None:
        return "never judged"
    if one.outcome.verdict != "pass" and not excused:
        return f"{one.outcome.verdict}: {one.outcome.reason}"
    if not one.outcome.evidence_at:
        return "judged without evidence"
    seen, (most, whose) = moment(one.seen_at), fresh_hours(want, check)
    if one.dated_ahead or seen - situation.now > AHEAD:
        return f"its evidence is dated ahead ({one.outcome.evidence_at[:19]}): how old it is cannot be told"
    if situation.now - seen > hours(most):
        return f"its evidence is {spoken(situation.now - seen)} old, more than the {most:g} h {whose}"
    if want.newer_than_repair and seen <= moment(view.story.repaired_at):
        return "its evidence is older than the last repair"
    return ""


def fresh_hours(want: Requirement, check: Check) -> tuple[float, str]:
    """Return how old a pass of a check may be, in hours, and whose word that is: the smaller of the two counts."""
    if check.valid_hours is not None and check.valid_hours < want.fresh_hours:
        return check.valid_hours, "for which a pass of this check is valid"
    return want.fresh_hours, "that the state allows"
