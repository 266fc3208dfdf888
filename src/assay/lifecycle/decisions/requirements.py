"""What a state requires of the newest outcomes, and which of them count: fresh, passed, newer than the last repair."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.lifecycle.node_state import NodeState
from assay.model.clock import MAX_CLOCK_SKEW
from assay.model.outcome import RecordedOutcome
from assay.model.specs.check_catalog_and_gates import CheckDeclaration, Phase
from assay.model.specs.known_issues import KnownIssue, find_known_issue
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.policy_sections import PhaseRequirement
from assay.model.timestamps import format_duration, hours, parse_time


@dataclass(frozen=True, slots=True)
class RequirementResult:
    """How a node stands to one requirement. `lacks` says per check and subject why it does not count as passed.

    `excused` are failures that block nothing, each with its known issue; their evidence must be as fresh as a pass's.
    """

    requirement: PhaseRequirement
    passed: tuple[RecordedOutcome, ...]
    failed: tuple[RecordedOutcome, ...]
    missing: tuple[str, ...]
    excused: tuple[tuple[RecordedOutcome, KnownIssue], ...] = ()

    @property
    def is_met(self) -> bool:
        """Whether every declared check counts as passed or is excused, and at least one passed."""
        return bool(self.passed) and not self.failed and not self.missing


def judge_state_requirements(situation: FleetSnapshot, view: NodeSnapshot) -> list[RequirementResult]:
    """Return the judgement on every requirement of the node's state."""
    newest = {(one.outcome.check, one.outcome.subject): one for one in view.latest}
    return [_judge_requirement(situation, view, want, newest) for want in situation.policy_state_of(view).requires]


def list_due_phases(situation: FleetSnapshot, view: NodeSnapshot) -> tuple[Phase, ...]:
    """Return the phases to be judged now: what the state watches always, what it requires while that is not met.

    Nothing that is required is due before the actions on arrival are verified: it would judge the old node.
    """
    state = situation.policy_state_of(view)
    unmet = [
        judgement.requirement.phase for judgement in judge_state_requirements(situation, view) if not judgement.is_met
    ]
    return tuple(dict.fromkeys([*state.watch, *(unmet if are_entry_actions_verified(situation, view) else [])]))


def are_entry_actions_verified(situation: FleetSnapshot, view: NodeSnapshot) -> bool:
    """Whether every action on arrival in the node's state is verified."""
    return all(standing == "verified" for _, standing in list_entry_actions(situation, view))


def list_entry_actions(situation: FleetSnapshot, view: NodeSnapshot) -> list[tuple[str, str]]:
    """Return the actions on arrival that something waits for, each with its standing ("" before it began).

    A ticket is paperwork: nothing waits for it. A node that was enrolled in its state arrived by no decision.
    """
    if not view.node_state.decision:
        return []
    wanted = [action for action in situation.policy_state_of(view).entry if action != "ticket"]
    effects = [(action, view.node_state.find_effect(view.node_state.decision, action)) for action in wanted]
    return [(action, effect.standing if effect else "") for action, effect in effects]


def settled_since(policy: LifecyclePolicy, story: NodeState) -> datetime:
    """Return the time from which what is seen may be held against the node: in its state, and settled after repair."""
    since, repaired = parse_time(story.since), story.repaired_at
    return max(since, parse_time(repaired) + timedelta(minutes=policy.settle_minutes)) if repaired else since


def _judge_requirement(
    situation: FleetSnapshot, view: NodeSnapshot, want: PhaseRequirement, newest: dict[tuple[str, str], RecordedOutcome]
) -> RequirementResult:
    declared = [(check, str(subject)) for check, subject in view.declared if want.phase in check.phases]
    deciding = [(check, subject) for check, subject in declared if check.id not in situation.observing_checks]
    found = [(check, subject, newest.get((check.id, subject))) for check, subject in deciding]
    since = settled_since(situation.policy, view.node_state)
    judgement = _RequirementResultBuilder()
    for check, subject, one in found:
        issue = find_known_issue(situation.known_issues, one.outcome, view.node, situation.now) if one else None
        if one and one.outcome.verdict == "fail" and not issue and parse_time(one.measured_at) >= since:
            judgement.failed.append(one)
        if lack := _find_shortcoming(situation, view, want, check, one, excused=issue is not None):
            judgement.missing.append(f"{check.id}[{subject}]: {lack}")
        elif one and issue:
            judgement.excused.append((one, issue))
        elif one:
            judgement.passed.append(one)
    if want.active and not any(check.active for check, _, _ in found):
        judgement.missing.append(f"no active check is declared for phase {want.phase}")
    return judgement.build(want)


@dataclass(slots=True)
class _RequirementResultBuilder:
    """A judgement that is being made."""

    passed: list[RecordedOutcome] = field(default_factory=list)
    failed: list[RecordedOutcome] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    excused: list[tuple[RecordedOutcome, KnownIssue]] = field(default_factory=list)

    def build(self, want: PhaseRequirement) -> RequirementResult:
        return RequirementResult(want, tuple(self.passed), tuple(self.failed), tuple(self.missing), tuple(self.excused))


def _find_shortcoming(
    situation: FleetSnapshot,
    view: NodeSnapshot,
    want: PhaseRequirement,
    check: CheckDeclaration,
    one: RecordedOutcome | None,
    *,
    excused: bool,
) -> str:
    """Return why this outcome does not count as a pass, "" when it does, or is excused as if it did."""
    if one is None:
        return "never judged"
    if one.outcome.verdict != "pass" and not excused:
        return f"{one.outcome.verdict}: {one.outcome.reason}"
    if not one.outcome.evidence_at:
        return "judged without evidence"
    seen, (most, whose) = parse_time(one.seen_at), find_max_age(want, check)
    if one.is_dated_ahead or seen - situation.now > MAX_CLOCK_SKEW:
        return f"its evidence is dated ahead ({one.outcome.evidence_at[:19]}): how old it is cannot be told"
    if situation.now - seen > hours(most):
        return f"its evidence is {format_duration(situation.now - seen)} old, more than the {most:g} h {whose}"
    if want.newer_than_repair and seen <= parse_time(view.node_state.repaired_at):
        return "its evidence is older than the last repair"
    return ""


def find_max_age(want: PhaseRequirement, check: CheckDeclaration) -> tuple[float, str]:
    """Return how old a pass of a check may be, in hours, and whose word that is: the smaller of the two counts."""
    if check.valid_hours is not None and check.valid_hours < want.fresh_hours:
        return check.valid_hours, "for which a pass of this check is valid"
    return want.fresh_hours, "that the state allows"
