"""Withdraws pending decisions that have lost their cause, and reminds people of long waits."""

from __future__ import annotations

from collections.abc import Iterator

from assay.decide.moves.flapping import is_wait_over
from assay.decide.moves.manual_moves import is_order_stopped
from assay.decide.moves.proposals import Proposal
from assay.decide.moves.rack_cordons import ShortRack
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState, PendingDecision
from assay.model.decision import FLAPPING_RULE, HELD_RULE, PERSON_RULE, ROLLOUT_RULE, DecisionCause
from assay.model.specs.lifecycle_policy import RACK_RULE_PREFIX
from assay.model.timestamps import format_duration, hours, parse_time

STILL_WAITING_RULE = "still-waiting"
SCHEDULER_SILENT = ("unknown: the scheduler does not answer",)


def propose_pending_changes(snapshot: FleetSnapshot, view: NodeSnapshot, short: ShortRack | None) -> Iterator[Proposal]:
    """Yield the withdrawal of a pending decision that lost its cause; otherwise a reminder if it waits for long."""
    pending, state = view.node_state.pending, view.node_state.state
    if pending is None:
        yield from _remind_of_move_request(snapshot, view)
    elif why := find_withdrawal_reason(snapshot, view.node_state, short):
        if view.node_state.hold is None:
            causes = (DecisionCause("decision", pending.decision, why), *pending.because)
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
    what = "to be answered" if name == HELD_RULE else f"to go to {pending.to}"
    text = f"has waited {format_duration(waited)} {what}, for {', '.join(blockers) or 'nothing any more'}"
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
