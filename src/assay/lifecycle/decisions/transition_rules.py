"""What should happen to a node for every reason but a fault: the ways out that its state names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from assay.lifecycle.decisions.circuit_breaker import has_missed_deadline
from assay.lifecycle.decisions.fault_remedies import has_recurred, make_fault_cause
from assay.lifecycle.decisions.known_issues import make_failure_cause
from assay.lifecycle.decisions.pending_decisions import pending_policy_path, pending_rule_name
from assay.lifecycle.decisions.proposals import Proposal
from assay.lifecycle.decisions.requirements import (
    RequirementResult,
    are_entry_actions_verified,
    judge_state_requirements,
    list_entry_actions,
)
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.decision import DecisionCause
from assay.model.timestamps import format_duration, hours, parse_time

TransitionRule = Callable[[FleetSnapshot, NodeSnapshot], Proposal | None]


def propose_transitions(situation: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield what the node's state wishes, the weightiest first."""
    for way in (_effect_failed, _certified, _pending_now_idle, _escalate, _fails, _passes, _deadline):
        if wish := way(situation, view):
            yield wish


def _effect_failed(situation: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    story, state = view.node_state, situation.policy_state_of(view)
    failed = [action for action, standing in list_entry_actions(situation, view) if standing == "failed"]
    effect = story.find_effect(story.decision, failed[0]) if failed else None
    if effect is None:
        return None
    because = (DecisionCause("effect", effect.id, f"{effect.action} failed: {effect.reason}"),)
    path = f"states.{story.state}.effect_failed_to" if state.effect_failed_to else f"states.{story.state}"
    name = f"{story.state}-effect-failed"
    if state.effect_failed_to:
        return Proposal(state.effect_failed_to, "immediate", path, name, because, (effect.id,))
    return Proposal(story.state, "record", path, name, because, (effect.id,), "ticket")


def _certified(situation: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    word, to = view.node_state.certified, situation.policy_state_of(view).certified_to
    if word is None or to is None:
        return None
    because = (DecisionCause("certified", word.id, f"certified by {word.who}: {word.reason}"),)
    state = view.node_state.state
    return Proposal(to, "immediate", f"states.{state}.certified_to", f"{state}-certified", because, (word.id,))


def _pending_now_idle(situation: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    """Grant what waited for the node to be idle. A scheduler that cannot tell is no sign of idleness."""
    pending = view.node_state.pending
    if pending is None or view.jobs != () or not situation.policy.has_edge(view.node_state.state, pending.to):
        return None
    name = pending_rule_name(pending)
    waited = format_duration(situation.now - parse_time(pending.since))
    because = (DecisionCause("decision", pending.decision, f"idle after {waited} of waiting"), *pending.because)
    by_fault = name in situation.policy.faults
    return Proposal(
        pending.to,
        "immediate",
        pending_policy_path(pending),
        name,
        because,
        (pending.decision,),
        pending.remedy,
        takes_out=by_fault,
    )


def _escalate(situation: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    story, ladder = view.node_state, situation.policy.ladder
    for number, step in enumerate(situation.policy_state_of(view).escalate):
        blamed = [known for known in story.faults if known.is_open and known.blame == step.blame]
        guilty = [known for known in blamed if not step.recurred or has_recurred(ladder, story, known, situation.now)]
        if guilty:
            because = tuple(make_fault_cause(known) for known in guilty)
            keys = tuple(known.id for known in guilty)
            path, name = f"states.{story.state}.escalate.{number}", f"{story.state}-escalates"
            remedy = "rma" if "dossier" in situation.policy.states[step.to].entry else ""
            return Proposal(step.to, "immediate", path, name, because, keys, remedy)
    return None


def _fails(situation: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    state = situation.policy_state_of(view)
    failed = {one.id: one for judgement in judge_state_requirements(situation, view) for one in judgement.failed}
    if not failed:
        return None
    because = tuple(make_failure_cause(one) for _, one in sorted(failed.items()))
    keys = tuple(f"{one.outcome.check}[{one.outcome.subject}]" for one in failed.values())
    name = f"{view.node_state.state}-fails"
    if state.fail_to:
        return Proposal(state.fail_to, "immediate", f"states.{view.node_state.state}.fail_to", name, because, keys)
    return Proposal(
        view.node_state.state, "record", f"states.{view.node_state.state}.requires", name, because, keys, "ticket"
    )


def _passes(situation: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    state, story = situation.policy_state_of(view), view.node_state
    judgements = judge_state_requirements(situation, view)
    stayed = situation.now - parse_time(story.since)
    ready = are_entry_actions_verified(situation, view) and all(judgement.is_met for judgement in judgements)
    if state.pass_to is None or not ready or stayed < hours(state.soak_hours):
        return None
    if state.until_idle and view.jobs != ():
        return None
    because = tuple(_phase_cause(judgement) for judgement in judgements) or (_arrival_cause(situation, view),)
    return Proposal(state.pass_to, "immediate", f"states.{story.state}.pass_to", f"{story.state}-passes", because)


def _deadline(situation: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    deadline, story = situation.policy_state_of(view).deadline, view.node_state
    if deadline is None or not has_missed_deadline(situation, view):
        return None
    path, name = f"states.{story.state}.deadline", f"{story.state}-deadline"
    because = (DecisionCause("deadline", story.stay_id, f"{story.state} took longer than {deadline.hours:g} h"),)
    if deadline.to is None:
        return Proposal(story.state, "record", path, name, because, (story.stay_id,), "ticket")
    return Proposal(
        deadline.to,
        "immediate",
        path,
        name,
        because,
        (story.deadline_held_at,) if story.deadline_held_at else (),
        is_deadline=True,
    )


def _phase_cause(judgement: RequirementResult) -> DecisionCause:
    """Return one link for a whole phase; it names the run of its oldest outcome, the one that freshness hangs on."""
    counted = (*judgement.passed, *(one for one, _ in judgement.excused))
    oldest = min(counted, key=lambda one: (one.outcome.evidence_at, one.id))
    phase = judgement.requirement.phase
    count, seen = len(judgement.passed), oldest.outcome.evidence_at[:19]
    issues = sorted({issue.annotation for _, issue in judgement.excused})
    but = f", {len(judgement.excused)} failed ({'; '.join(issues)})" if issues else ""
    text = f"{count} of {len(counted)} checks of phase {phase} passed{but}, on evidence since {seen}"
    return DecisionCause("outcome", f"{oldest.run}/{phase}", text)


def _arrival_cause(situation: FleetSnapshot, view: NodeSnapshot) -> DecisionCause:
    story = view.node_state
    for action, _ in reversed(list_entry_actions(situation, view)):
        if effect := story.find_effect(story.decision, action):
            return DecisionCause("effect", effect.id, f"{action} verified: {effect.reason}")
    return DecisionCause("decision", story.decision, f"nothing is left to do in {story.state}")
