"""Proposes what people order: moves along the policy's edges, the end of a hold, and reminders of holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from assay.lifecycle.decisions.proposals import Proposal
from assay.lifecycle.decisions.required_checks import (
    are_entry_actions_verified,
    judge_state_requirements,
    list_entry_actions,
)
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.lifecycle.node_state import MoveRequest, OperatorNote
from assay.model.decision import PERSON_RULE, DecisionCause, DecisionTiming
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import format_duration, format_minute, hours, parse_time


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


def propose_manual_move(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield the next step of a requested move. It waits until the node is idle, unless the request says `now`."""
    request, node_state = view.node_state.move_request, view.node_state
    if request is None or request.to == node_state.state:
        return
    step = find_next_step(snapshot.policy, node_state.state, request.to)
    cause = DecisionCause("person", request.id, f"{request.who} asked for {request.to}: {request.reason}")
    path = f"edges.{node_state.state}"
    if why := _find_obstacle(snapshot, view, request, step):  # recorded once a stay for each reason
        causes = (DecisionCause("policy", why, why), cause)
        yield Proposal(node_state.state, "record", path, PERSON_RULE, causes, (request.id, why), "wait")
    elif not snapshot.policy_state_of(view).until_idle or _is_drained(snapshot, view):
        waits = snapshot.policy_state_of(view).in_service and not request.now
        timing: DecisionTiming = "pending" if waits else "immediate"
        yield Proposal(step, timing, path, PERSON_RULE, (cause,), (request.id,))


def _find_obstacle(snapshot: FleetSnapshot, view: NodeSnapshot, request: MoveRequest, step: str) -> str:
    """Return what forbids the next step, "" if nothing does."""
    if request.to not in snapshot.policy.states:
        return f"the policy has no state {request.to}"
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
    return view.jobs == () and all(standing in ("verified", "failed") for standing in standings)


def propose_hold_actions(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield the release of a hold that has ended; otherwise a warning before its end, and reminders."""
    hold, state = view.node_state.hold, view.node_state.state
    if hold is None:
        return
    if hold.until and parse_time(hold.until) <= snapshot.now:
        over = DecisionCause("person", hold.id, f"{hold.who} held it until {format_minute(hold.until)}: {hold.reason}")
        yield Proposal(state, "record", "holds", "hold-ends", (over,), (hold.id,), "release")
        return
    if hold.until and _find_warning_time(hold) <= snapshot.now:
        text = f"{hold.who}'s hold ends at {format_minute(hold.until)}: {hold.reason}"
        causes = (DecisionCause("person", hold.id, text),)
        yield Proposal(state, "record", "holds", "hold-ends-soon", causes, (hold.id, hold.until), "none")
    age = snapshot.now - parse_time(hold.at)
    times = int(age / hours(snapshot.policy.holds.remind_hours))
    if times >= 1:
        causes = (DecisionCause("person", hold.id, f"held by {hold.who} for {format_duration(age)}: {hold.reason}"),)
        yield Proposal(state, "record", "holds", "hold-reminder", causes, (hold.id, str(times)), "none")


def _find_warning_time(hold: OperatorNote) -> datetime:
    """Return when to warn that a hold will end: a day before, or for its last quarter if that is shorter."""
    start, end = parse_time(hold.at), parse_time(hold.until)
    return end - min(timedelta(days=1), (end - start) / 4)
