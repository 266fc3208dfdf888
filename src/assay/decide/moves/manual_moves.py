"""Moves that people or a rollout order: which the policy allows, and the next step of each.

Withdraws pending decisions that have lost their cause, and reminds people of long waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from assay.decide.moves.cordons import ShortRack
from assay.decide.moves.proposals import Proposal
from assay.decide.moves.remedy_ladder import is_wait_over
from assay.decide.moves.required_checks import (
    are_entry_actions_verified,
    is_empty,
    judge_state_requirements,
    list_entry_actions,
)
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState, PendingDecision
from assay.decide.trust.record import MoveRequest
from assay.model.decision import FLAPPING_RULE, HELD_RULE, PERSON_RULE, ROLLOUT_RULE, DecisionCause, DecisionTiming
from assay.model.errors import AssayError
from assay.model.specs.lifecycle_policy import RACK_RULE_PREFIX, LifecyclePolicy
from assay.model.timestamps import format_duration, hours, parse_time


def find_next_step(policy: LifecyclePolicy, origin: str, target: str) -> str:
    """Return the next state on the way from `origin` to `target`, "" if the policy has no such way.

    The way out of service leads through a state that drains the node, unless `target` itself cordons it on arrival.
    """
    if target not in policy.states:
        return ""
    direct = policy.has_edge(origin, target)
    if not policy.states[origin].in_service or "cordon" in policy.states[target].entry:
        return target if direct else ""
    drains = [name for name in policy.edges.get(origin, ()) if policy.states[name].until_idle]
    through = next((name for name in drains if policy.has_edge(name, target)), "")
    return through or (target if direct else "")


def refuse_unreachable_states(policy: LifecyclePolicy, node_state: NodeState, targets: Sequence[str]) -> str:
    """Return the first of these states to which a person may order the node.

    Raises AssayError, with the states that it may go to, if the policy has no way to any of them.
    """
    reachable = next((name for name in targets if find_next_step(policy, node_state.state, name)), "")
    if not reachable:
        way = f"from {node_state.state} to {' or '.join(targets)}"
        fact = f"the policy has no transition for {node_state.node} {way}"
        raise AssayError(fact, fix=describe_reachable_states(policy, node_state.state))
    return reachable


def describe_reachable_states(policy: LifecyclePolicy, state: str) -> str:
    """Return the states to which a person may send a node from `state`, for people."""
    reachable = [name for name in policy.states if name != state and find_next_step(policy, state, name)]
    return f"from {state} it may go to {', '.join(reachable)}" if reachable else f"no transition leaves {state}"


def is_order_stopped(policy: LifecyclePolicy, node_state: NodeState, running: Collection[str]) -> bool:
    """Whether a node that serves has the order of a rollout that is paused or over. Such an order is not carried out.

    A node that has left service already finishes its way.
    """
    request = node_state.move_request
    return (
        request is not None
        and bool(request.rollout)
        and request.rollout not in running
        and policy.states[node_state.state].in_service
    )


def propose_manual_move(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield the next step of a requested move. It waits until the node is idle, unless the request says `now`.

    A rollout may order a node into the state where it is: it begins there anew, and gets what is declared now.
    """
    request, node_state = view.node_state.move_request, view.node_state
    if request is None:
        return
    is_there = request.to == node_state.state
    step = request.to if is_there else find_next_step(snapshot.policy, node_state.state, request.to)
    if is_order_stopped(snapshot.policy, node_state, snapshot.running_rollouts):
        return
    kind, rule = ("rollout", ROLLOUT_RULE) if request.rollout else ("person", PERSON_RULE)
    cause = DecisionCause(kind, request.id, f"{request.who} asked for {request.to}: {request.reason}")
    path = f"edges.{node_state.state}"
    if obstacle := _find_obstacle(snapshot, view, request, step):  # recorded once a stay for each reason
        causes = (DecisionCause("policy", obstacle, obstacle), cause)
        yield Proposal(node_state.state, "record", path, rule, causes, (request.id, obstacle), "wait")
    elif not snapshot.policy_state_of(view).until_idle or _is_drained(snapshot, view):
        waits = snapshot.policy_state_of(view).in_service and not request.now
        timing: DecisionTiming = "pending" if waits else "immediate"
        yield Proposal(step, timing, path, rule, (cause,), (request.id,))


def _find_obstacle(snapshot: FleetSnapshot, view: NodeSnapshot, request: MoveRequest, step: str) -> str:
    """Return what forbids the next step, "" if nothing does."""
    if late := view.node_state.trust.find_outlived(request.id):
        return late
    if request.to not in snapshot.policy.states:
        return f"the policy has no state {request.to}"
    if "zap" in snapshot.policy.states[request.to].entry and (refusal := snapshot.refused_zaps.get(view.name)):
        return refusal
    if not step:
        return f"the policy draws no way from {view.node_state.state} to {request.to}"
    return _find_unproved_phases(snapshot, view) if snapshot.policy.states[step].in_service else ""


def _find_unproved_phases(snapshot: FleetSnapshot, view: NodeSnapshot) -> str:
    """Return the phases that a node must still pass before it serves. A person may skip its soak time, but no check."""
    results = judge_state_requirements(snapshot, view)
    if not results or not are_entry_actions_verified(snapshot, view):
        return f"nobody serves straight out of {view.node_state.state}: nothing is proved there"
    unmet = [result.requirement.phase for result in results if not result.is_met]
    return f"phase {' and '.join(unmet)} is not passed" if unmet else ""


def _is_drained(snapshot: FleetSnapshot, view: NodeSnapshot) -> bool:
    """Whether no job is left on the node, and draining it has ended."""
    standings = [standing for _, standing in list_entry_actions(snapshot, view)]
    return is_empty(view) and all(standing in ("verified", "failed") for standing in standings)


STILL_WAITING_RULE = "still-waiting"
SCHEDULER_SILENT = ("unknown: nothing tells which jobs run there",)


def propose_pending_changes(snapshot: FleetSnapshot, view: NodeSnapshot, short: ShortRack | None) -> Iterator[Proposal]:
    """Yield the withdrawal of a pending decision that lost its cause; otherwise a reminder if it waits for long."""
    pending, state = view.node_state.pending, view.node_state.state
    if pending is None:
        yield from _remind_of_move_request(snapshot, view)
    elif withdrawal := find_withdrawal_reason(snapshot, view.node_state, short):
        if view.node_state.hold is None:
            causes = (DecisionCause("decision", pending.decision, withdrawal), *pending.because)
            path, name = pending_policy_path(pending), pending.rule_name
            yield Proposal(state, "record", path, name, causes, (pending.decision,), remedy="withdraw")
    else:
        yield from _remind_of_pending(snapshot, view, pending)


def find_withdrawal_reason(snapshot: FleetSnapshot, node_state: NodeState, short: ShortRack | None) -> str:
    """Return why a pending decision has lost its cause; "" if it still has one, or if nothing is pending."""
    policy, pending = snapshot.policy, node_state.pending
    if pending is None:
        return ""
    name = pending.rule_name
    if name.startswith(RACK_RULE_PREFIX):
        return "" if short else "enough nodes of the rack serve again"
    if name != HELD_RULE and not policy.has_edge(node_state.state, pending.to):
        return f"the policy no longer leads from {node_state.state} to {pending.to}"
    if name in (PERSON_RULE, ROLLOUT_RULE):
        return _find_lost_order(snapshot, node_state, pending)
    return "what it waited to answer is over" if is_wait_over(policy, node_state, pending, snapshot.now) else ""


def _find_lost_order(snapshot: FleetSnapshot, node_state: NodeState, pending: PendingDecision) -> str:
    request = node_state.move_request
    if request is None or request.id not in {cause.id for cause in pending.because}:
        return "nobody asks for it any more"
    is_stopped = is_order_stopped(snapshot.policy, node_state, snapshot.running_rollouts)
    return f"{request.who} is paused, or over" if is_stopped else ""


def pending_policy_path(pending: PendingDecision) -> str:
    """Return the dotted policy path of the rule behind a pending decision."""
    name = pending.rule_name
    if name in (PERSON_RULE, ROLLOUT_RULE, HELD_RULE, FLAPPING_RULE):
        return {PERSON_RULE: "waiting", ROLLOUT_RULE: "rollouts", HELD_RULE: "breaker"}.get(name, FLAPPING_RULE)
    return name if name.startswith(RACK_RULE_PREFIX) else f"faults.{name}"


def _remind_of_pending(snapshot: FleetSnapshot, view: NodeSnapshot, pending: PendingDecision) -> Iterator[Proposal]:
    waited = snapshot.now - parse_time(pending.since)
    times = int(waited / hours(snapshot.policy.waiting.remind_hours))
    if times < 1:
        return
    name = pending.rule_name
    awaited = pending.blockers if name.startswith((RACK_RULE_PREFIX, HELD_RULE)) else view.jobs
    blockers = SCHEDULER_SILENT if awaited is None else awaited
    wait = "to be answered" if name == HELD_RULE else f"to go to {pending.to}"
    text = f"has waited {format_duration(waited)} {wait}, for {', '.join(blockers) or 'nothing any more'}"
    causes = (DecisionCause("decision", pending.decision, text), *pending.because)
    yield _make_reminder(view, causes, pending.decision, times, blockers)


def _remind_of_move_request(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    request = view.node_state.move_request
    if request is None:
        return
    waited = snapshot.now - parse_time(request.at)
    times = int(waited / hours(snapshot.policy.waiting.remind_hours))
    if times >= 1:
        state = view.node_state.state
        text = f"{request.who} asked for {request.to} {format_duration(waited)} ago, and it is still in {state}"
        causes = (DecisionCause("person", request.id, f"{text}: {request.reason}"),)
        yield _make_reminder(view, causes, request.id, times)


def _make_reminder(
    view: NodeSnapshot, causes: tuple[DecisionCause, ...], ident: str, times: int, blockers: tuple[str, ...] = ()
) -> Proposal:
    state, keys = view.node_state.state, (ident, str(times))
    return Proposal(state, "record", "waiting", STILL_WAITING_RULE, causes, keys, "none", blockers=blockers)
