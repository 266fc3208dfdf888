"""Compares a node's newest outcomes with its state's requirements: passed, fresh, and newer than what they prove.

Whether the burn-in that a state asks for proves the node, and why not.
"""

from __future__ import annotations

from assay.decide.moves.evidence_validity import (
    RequiredBoot,
    counts_in_stay,
    find_disorder,
    find_required_boot,
    find_shortcoming,
)
from assay.decide.state.burn_in_record import BurnInRecord
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.load_coverage import list_requirements
from assay.model.decision import DecisionCause
from assay.model.facts import frozen
from assay.model.outcome import Outcome, RecordedOutcome
from assay.model.specs.check_catalog import Phase
from assay.model.specs.known_issues import KnownIssue, find_known_issue
from assay.model.specs.policy_sections import PhaseRequirement


@frozen
class RequirementResult:
    """Whether a node meets one requirement.

    `missing` says, by check and subject, why an outcome does not count as passed. `excused` are failures, each with the
    known issue that excuses it. Their evidence must be as fresh as that of a pass. `skipped` counts the outcomes of the
    phase that nothing asked for, and `left_out` are the parts of a load that would have made them.
    """

    requirement: PhaseRequirement
    passed: tuple[RecordedOutcome, ...]
    failed: tuple[RecordedOutcome, ...]
    missing: tuple[str, ...]
    excused: tuple[tuple[RecordedOutcome, KnownIssue], ...] = ()
    skipped: int = 0
    left_out: tuple[str, ...] = ()

    @property
    def is_met(self) -> bool:
        """Whether every declared check counts as passed or is excused, and at least one passed."""
        return bool(self.passed) and not self.failed and not self.missing


def judge_state_requirements(snapshot: FleetSnapshot, view: NodeSnapshot) -> list[RequirementResult]:
    """Return the result of every requirement of the node's state, and of what proves the repair of its faults."""
    newest = {(recorded.outcome.check, recorded.outcome.subject): recorded for recorded in view.latest}
    requirements = list_requirements(snapshot, view)
    phases = {requirement.phase for requirement in requirements}
    boot = find_required_boot(
        view.node_state, (recorded for recorded in view.latest if phases & set(recorded.outcome.phases))
    )
    return [_judge_requirement(snapshot, view, requirement, newest, boot) for requirement in requirements]


def list_due_phases(snapshot: FleetSnapshot, view: NodeSnapshot) -> tuple[Phase, ...]:
    """Return the phases to judge now: those that the state watches, and the required ones that are not met yet.

    Required phases are due only after the entry actions are verified: before that, checks would judge the old node.
    """
    due = list(snapshot.policy_state_of(view).watch)
    if are_entry_actions_verified(snapshot, view):
        results = judge_state_requirements(snapshot, view)
        due += [result.requirement.phase for result in results if not result.is_met]
    return tuple(dict.fromkeys(due))


def are_entry_actions_verified(snapshot: FleetSnapshot, view: NodeSnapshot) -> bool:
    """Whether every entry action of the node's state is verified."""
    return all(standing == "verified" for _, standing in list_entry_actions(snapshot, view))


def list_entry_actions(snapshot: FleetSnapshot, view: NodeSnapshot) -> list[tuple[str, str]]:
    """Return the entry actions of the node's state, each with the standing of its effect ("" before it starts).

    Tickets are left out, because nothing waits for them, and so are a drain that a person takes for done and a look
    that failed. Enrolled in its state, a node has some for a burn-in only.
    """
    state = view.node_state
    if not state.decision:
        return []
    actions = [action for action in snapshot.policy_state_of(view).entry if action != "ticket"]
    effects = [(action, state.find_entry_effect(action)) for action in actions]
    return [
        (action, effect.standing if effect else "")
        for action, effect in effects
        if not (effect and (state.takes_for_empty(effect) or effect.is_harmless_failure))
    ]


def is_empty(view: NodeSnapshot) -> bool:
    """Whether no job is on a node: known, or where nothing tells it, taken for granted by a person."""
    state = view.node_state
    drains = (effect for effect in state.effects if effect.decision == state.decision)
    return view.jobs == () or (view.jobs is None and any(map(state.takes_for_empty, drains)))


def _judge_requirement(
    snapshot: FleetSnapshot,
    view: NodeSnapshot,
    requirement: PhaseRequirement,
    newest: dict[tuple[str, str], RecordedOutcome],
    boot: RequiredBoot,
) -> RequirementResult:
    named = requirement.checks
    of_phase = [
        (check, str(subject))
        for check, subject in view.declared
        if requirement.phase in check.phases and (not named or check.name in named)
        if check.id not in snapshot.observing_checks
    ]
    deciding = [pair for pair in of_phase if pair[0].is_due(requirement.phase, requirement.parts)]
    skipped = [check for check, _ in of_phase if not check.is_due(requirement.phase, requirement.parts)]
    left_out = tuple(dict.fromkeys(part for check in skipped for part in check.parts))
    passed, failed, missing = list[RecordedOutcome](), list[RecordedOutcome](), list[str]()
    excused: list[tuple[RecordedOutcome, KnownIssue]] = []
    for check, subject in deciding:
        recorded = newest.get((check.id, subject))
        outcome = recorded.outcome if recorded else None
        issue = _find_excuse(snapshot, view, outcome) if outcome else None
        is_failure = recorded is not None and recorded.outcome.verdict == "fail" and not issue
        if recorded and is_failure and counts_in_stay(snapshot.policy, view.node_state, recorded):
            failed.append(recorded)
        shortcoming = find_shortcoming(snapshot, requirement, check, recorded, excused=issue is not None)
        shortcoming = shortcoming or find_disorder(snapshot, view, requirement, recorded, boot)
        if shortcoming:
            missing.append(f"{check.id}[{subject}]: {shortcoming}")
        elif recorded and issue:
            excused.append((recorded, issue))
        elif recorded:
            passed.append(recorded)
    if requirement.active and not any(check.active for check, _ in deciding):
        missing.append(f"no active check is declared for phase {requirement.phase}")
    results = tuple(passed), tuple(failed), tuple(missing), tuple(excused)
    return RequirementResult(requirement, *results, len(skipped), left_out)


def _find_excuse(snapshot: FleetSnapshot, view: NodeSnapshot, outcome: Outcome) -> KnownIssue | None:
    """Return the known issue that excuses an outcome here. What admission requires is excused only by the policy."""
    policy, to = snapshot.policy, snapshot.policy_state_of(view).pass_to
    if to and policy.states[to].in_service and not policy.excuses.may_excuse_admission(outcome.check):
        return None
    return find_known_issue(snapshot.known_issues, outcome, view.node, snapshot.now)


def find_burn_in_of_stay(view: NodeSnapshot) -> BurnInRecord | None:
    """Return the burn-in of the node's present stay, None if none has begun."""
    record = view.node_state.burn_in
    return record if record and record.stay_id == view.node_state.stay_id else None


def describe_missing_burn_in(snapshot: FleetSnapshot, view: NodeSnapshot) -> str:
    """Return what the node's state still waits for, "" if its policy names no burn-in, or if it ended well."""
    if not snapshot.policy_state_of(view).burn_in:
        return ""
    record = find_burn_in_of_stay(view)
    if record is None:
        return "no burn-in has begun in this stay"
    return "" if record.outcome in ("done", "none") else record.describe()


def find_failed_burn_in(snapshot: FleetSnapshot, view: NodeSnapshot) -> BurnInRecord | None:
    """Return the burn-in of this stay if a verdict ended it, else None."""
    record = find_burn_in_of_stay(view)
    if record is None or record.outcome != "failed" or not snapshot.policy_state_of(view).burn_in:
        return None
    return record


def make_burn_in_cause(record: BurnInRecord) -> DecisionCause:
    """Return a burn-in that ended as a cause."""
    return DecisionCause("burn-in", record.id, record.describe())


def list_good_burn_in(view: NodeSnapshot) -> tuple[DecisionCause, ...]:
    """Return the burn-in of this stay as a cause, if it ended well."""
    record = find_burn_in_of_stay(view)
    return (make_burn_in_cause(record),) if record and record.outcome == "done" else ()
