"""Proposes the exits of a state, as the policy names them, for every reason except a new fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from assay.decide.moves.circuit_breaker import has_missed_deadline
from assay.decide.moves.excused_failures import make_failure_cause
from assay.decide.moves.fault_remedies import make_fault_cause, make_lemon_causes, shorten_fault_causes
from assay.decide.moves.hand_over import describe_missing_proofs
from assay.decide.moves.manual_moves import pending_policy_path
from assay.decide.moves.proposals import Proposal
from assay.decide.moves.remedy_ladder import has_recurred, list_present_causes
from assay.decide.moves.required_checks import (
    RequirementResult,
    are_entry_actions_verified,
    describe_missing_burn_in,
    find_burn_in_of_stay,
    find_failed_burn_in,
    is_empty,
    judge_state_requirements,
    list_entry_actions,
    list_good_burn_in,
    make_burn_in_cause,
)
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.decision import FLAPPING_RULE, DecisionCause
from assay.model.text.lists import format_list
from assay.model.timestamps import format_duration, hours, parse_time

TransitionRule = Callable[[FleetSnapshot, NodeSnapshot], Proposal | None]


def propose_transitions(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield what the exits of the node's state propose, in the order in which they count."""
    rules: tuple[TransitionRule, ...] = (
        _effect_failed,
        _certified,
        _pending_now_idle,
        _escalate,
        _fails,
        _proves_nothing,
        _passes,
        _deadline,
    )
    for rule in rules:
        if proposal := rule(snapshot, view):
            yield proposal


def _effect_failed(snapshot: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    """Go to `effect_failed_to` if an entry action failed; without such a target, record that a technician is needed."""
    node_state, to = view.node_state, snapshot.policy_state_of(view).effect_failed_to
    failed = [action for action, standing in list_entry_actions(snapshot, view) if standing == "failed"]
    effect = node_state.find_entry_effect(failed[0]) if failed else None
    if effect is None:
        return None
    state, name = node_state.state, f"{node_state.state}-effect-failed"
    causes = (DecisionCause("effect", effect.id, f"{effect.action} failed: {effect.reason}"),)
    if to:
        return Proposal(to, "immediate", f"states.{state}.effect_failed_to", name, causes, (effect.id,))
    return Proposal(state, "record", f"states.{state}", name, causes, (effect.id,), "ticket")


def _certified(snapshot: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    """Go to `certified_to` after a person certified the node."""
    note, to = view.node_state.certified, snapshot.policy_state_of(view).certified_to
    if note is None or to is None:
        return None
    state = view.node_state.state
    causes = (DecisionCause("certified", note.id, f"certified by {note.who}: {note.reason}"),)
    return Proposal(to, "immediate", f"states.{state}.certified_to", f"{state}-certified", causes, (note.id,))


def _pending_now_idle(snapshot: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    """Carry out a pending decision when the node is idle. If nothing tells which jobs run, the node is not idle.

    While its faults are away, it waits: for them to come back, or to stay away for long enough.
    """
    pending = view.node_state.pending
    if pending is None or view.jobs != () or not snapshot.policy.has_edge(view.node_state.state, pending.to):
        return None
    name, path = pending.rule_name, pending_policy_path(pending)
    waited = format_duration(snapshot.now - parse_time(pending.since))
    causes = (DecisionCause("decision", pending.decision, f"idle after {waited} of waiting"), *pending.because)
    takes_out = name in snapshot.policy.faults or name == FLAPPING_RULE
    if name in snapshot.policy.faults:
        present, named = list_present_causes(view.node_state, pending), {i for cause in causes for i in cause.fault_ids}
        if not present:
            return None
        causes += shorten_fault_causes([make_fault_cause(fault) for fault in present if fault.id not in named])
    keys = (pending.decision,)
    return Proposal(pending.to, "immediate", path, name, causes, keys, pending.remedy, takes_out=takes_out)


def _escalate(snapshot: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    """Go to the target of the first matching `escalate` step: for open faults of its blame, recurred or of a lemon."""
    node_state, ladder = view.node_state, snapshot.policy.ladder
    present = [fault for fault in node_state.faults if fault.is_open]
    for number, step in enumerate(snapshot.policy_state_of(view).escalate):
        faults = [each for each in present if each.blame == step.blame and each.fault_class not in step.left_to_people]
        lemon = make_lemon_causes(snapshot, view) if faults and step.lemon else []
        if step.lemon and not lemon:
            continue
        if step.recurred:
            faults = [fault for fault in faults if has_recurred(ladder, node_state, fault, snapshot.now)]
        if faults:
            path, name = f"states.{node_state.state}.escalate.{number}", f"{node_state.state}-escalates"
            causes = (*shorten_fault_causes([make_fault_cause(fault) for fault in faults]), *lemon)
            keys = tuple(fault.id for fault in faults)
            remedy = "rma" if "dossier" in snapshot.policy.states[step.to].entry else ""
            return Proposal(step.to, "immediate", path, name, causes, keys, remedy)
    return None


def _fails(snapshot: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    """Go to `fail_to` if a required check failed; without such a target, record that a technician is needed.

    A rule that names the fault of a failed check or burn-in, this state and another target precedes `fail_to`.
    """
    results = judge_state_requirements(snapshot, view)
    failed = {failure.id: failure for result in results for failure in result.failed}
    burned = find_failed_burn_in(snapshot, view)
    if not failed and burned is None:
        return None
    state, to = view.node_state.state, snapshot.policy_state_of(view).fail_to
    name = f"{state}-fails"
    causes = tuple(make_failure_cause(failure) for _, failure in sorted(failed.items()))
    keys = tuple(f"{failure.outcome.check}[{failure.outcome.subject}]" for failure in failed.values())
    faults = [failure.outcome.fault for failure in failed.values()]
    if burned:
        causes, keys, faults = (make_burn_in_cause(burned), *causes), (burned.id, *keys), [burned.fault, *faults]
    named = (snapshot.policy.find_named_rule(state, fault) for fault in faults)
    if rule := next(filter(None, named), None):
        return Proposal(rule[1], "immediate", f"faults.{rule[0]}", rule[0], causes, keys)
    if to:
        return Proposal(to, "immediate", f"states.{state}.fail_to", name, causes, keys)
    return Proposal(state, "record", f"states.{state}.requires", name, causes, keys, "ticket")


def _proves_nothing(snapshot: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    """Record that a person is needed: the burn-in of this stay has ended, and proves nothing of the node."""
    record, state = find_burn_in_of_stay(view), view.node_state.state
    if record is None or record.outcome != "incomplete" or not snapshot.policy_state_of(view).burn_in:
        return None
    causes = (make_burn_in_cause(record),)
    return Proposal(state, "record", f"states.{state}.burn_in", f"{state}-incomplete", causes, (record.id,), "ticket")


def _passes(snapshot: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    """Go to `pass_to` if all requirements are met, entry actions are verified and the soak time is over."""
    state, node_state = snapshot.policy_state_of(view), view.node_state
    results = judge_state_requirements(snapshot, view)
    stayed = snapshot.now - parse_time(node_state.since)
    ready = are_entry_actions_verified(snapshot, view) and all(result.is_met for result in results)
    if state.pass_to is None or not ready or stayed < hours(state.soak_hours):
        return None
    if (state.until_idle and not is_empty(view)) or describe_missing_burn_in(snapshot, view):
        return None
    if describe_missing_proofs(snapshot, view):
        return None
    proofs = (*(make_phase_cause(result) for result in results), *list_good_burn_in(view))
    causes = proofs or (_make_arrival_cause(snapshot, view),)
    path, name = f"states.{node_state.state}.pass_to", f"{node_state.state}-passes"
    return Proposal(state.pass_to, "immediate", path, name, causes)


def _deadline(snapshot: FleetSnapshot, view: NodeSnapshot) -> Proposal | None:
    """Go to the target of a missed deadline; without a target, record that a technician is needed."""
    deadline, node_state = snapshot.policy_state_of(view).deadline, view.node_state
    if deadline is None or not has_missed_deadline(snapshot, view):
        return None
    state, stay = node_state.state, node_state.stay_id
    path, name = f"states.{state}.deadline", f"{state}-deadline"
    causes = (DecisionCause("deadline", stay, f"{state} took longer than {deadline.hours:g} h"),)
    if deadline.to is None:
        return Proposal(state, "record", path, name, causes, (stay,), "ticket")
    keys = (node_state.deadline_held_at,) if node_state.deadline_held_at else ()
    return Proposal(deadline.to, "immediate", path, name, causes, keys, is_deadline=True)


def make_phase_cause(result: RequirementResult) -> DecisionCause:
    """Return one cause for a whole phase. It names the run of the oldest outcome, on which freshness depends."""
    counted = (*result.passed, *(failure for failure, _ in result.excused))
    oldest = min(counted, key=lambda recorded: (recorded.outcome.evidence_at, recorded.id))
    phase = result.requirement.phase
    count, seen = len(result.passed), oldest.outcome.evidence_at[:19]
    issues = sorted({issue.annotation for _, issue in result.excused})
    but = f", {len(result.excused)} failed ({'; '.join(issues)})" if issues else ""
    if result.skipped:
        but += f", {result.skipped} skipped: no load ran {format_list(result.left_out, 4)}"
    total = len(counted) + result.skipped
    text = f"{count} of {total} checks of phase {phase} passed{but}, on evidence since {seen}"
    return DecisionCause("outcome", f"{oldest.run}/{phase}", text)


def _make_arrival_cause(snapshot: FleetSnapshot, view: NodeSnapshot) -> DecisionCause:
    """Return the last entry action as the cause, for a state that requires nothing else."""
    node_state = view.node_state
    for action, _ in reversed(list_entry_actions(snapshot, view)):
        if effect := node_state.find_entry_effect(action):
            return DecisionCause("effect", effect.id, f"{action} verified: {effect.reason}")
    return DecisionCause("decision", node_state.decision, f"nothing is left to do in {node_state.state}")
