"""Where a person wants a node to be, and the next step towards it: along the policy's edges, within its limits.

Holds: released when their time is over, which is said before; brought to mind while they last.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from assay.lifecycle.decisions.proposals import Proposal
from assay.lifecycle.decisions.requirements import (
    are_entry_actions_verified,
    judge_state_requirements,
    list_entry_actions,
)
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.lifecycle.node_state import MoveRequest, OperatorNote
from assay.model.decision import DecisionCause, DecisionTiming
from assay.model.specs.lifecycle_policy import PERSON_RULE, LifecyclePolicy
from assay.model.timestamps import format_duration, format_minute, hours, parse_time


def find_next_step(policy: LifecyclePolicy, origin: str, target: str) -> str:
    """Return the next state on a person's way from `origin` to `target`, "" where the policy draws none.

    Out of service it leads through a state that drains, where `target` itself does not cordon the node on arrival.
    """
    if target not in policy.states:
        return ""
    direct = policy.has_edge(origin, target)
    if not policy.states[origin].in_service or "cordon" in policy.states[target].entry:
        return target if direct else ""
    drains = [name for name in policy.edges.get(origin, ()) if policy.states[name].until_idle]
    through = next((name for name in drains if policy.has_edge(name, target)), "")
    return through or (target if direct else "")


def propose_manual_move(situation: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield the wish of a person. It waits for the node to be idle, unless the person said that it is not to."""
    asked, story = view.node_state.move_request, view.node_state
    if asked is None or asked.to == story.state:
        return
    step = find_next_step(situation.policy, story.state, asked.to)
    if why := _find_obstacle(situation, view, asked, step):
        yield _make_obstacle_record(view, asked, why)
    elif not situation.policy_state_of(view).until_idle or _is_drained(situation, view):
        waits = situation.policy_state_of(view).in_service and not asked.now
        because = (_request_cause(asked),)
        timing: DecisionTiming = "pending" if waits else "immediate"
        yield Proposal(step, timing, f"edges.{story.state}", PERSON_RULE, because, (asked.id,))


def _find_obstacle(situation: FleetSnapshot, view: NodeSnapshot, asked: MoveRequest, step: str) -> str:
    """Return what forbids the next step, "" for nothing."""
    if asked.to not in situation.policy.states:
        return f"the policy has no state {asked.to}"
    if not step:
        return f"the policy draws no way from {view.node_state.state} to {asked.to}"
    return _find_unproved_phases(situation, view) if situation.policy.states[step].in_service else ""


def _request_cause(asked: MoveRequest) -> DecisionCause:
    return DecisionCause("person", asked.id, f"{asked.who} asked for {asked.to}: {asked.reason}")


def _make_obstacle_record(view: NodeSnapshot, asked: MoveRequest, why: str) -> Proposal:
    """Return the record that a person's move does not happen now, and why: once in a stay for each reason."""
    because = (DecisionCause("policy", why, why), _request_cause(asked))
    return Proposal(
        view.node_state.state, "record", f"edges.{view.node_state.state}", PERSON_RULE, because, (asked.id, why), "wait"
    )


def _find_unproved_phases(situation: FleetSnapshot, view: NodeSnapshot) -> str:
    """Return what is not proved yet of a node that is to serve. A person may cut its soaking short, not the proof."""
    judgements = judge_state_requirements(situation, view)
    if not judgements or not are_entry_actions_verified(situation, view):
        return f"nobody serves straight out of {view.node_state.state}: nothing is proved there"
    unmet = [judgement.requirement.phase for judgement in judgements if not judgement.is_met]
    return f"phase {' and '.join(unmet)} is not passed" if unmet else ""


def _is_drained(situation: FleetSnapshot, view: NodeSnapshot) -> bool:
    """Whether nothing is left on the node, as far as draining it has come to an end."""
    standings = [standing for _, standing in list_entry_actions(situation, view)]
    return view.jobs == () and all(standing in ("verified", "failed") for standing in standings)


def propose_hold_actions(situation: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    """Yield the release of a hold whose time is over; else a word before that, and a reminder every so many hours."""
    held, policy = view.node_state.hold, situation.policy
    if held is None:
        return
    if held.until and parse_time(held.until) <= situation.now:
        over = DecisionCause("person", held.id, f"{held.who} held it until {format_minute(held.until)}: {held.reason}")
        yield Proposal(view.node_state.state, "record", "holds", "hold-ends", (over,), (held.id,), "release")
        return
    if held.until and _find_warning_time(held) <= situation.now:
        over = DecisionCause(
            "person", held.id, f"{held.who}'s hold ends at {format_minute(held.until)}: {held.reason}"
        )
        yield Proposal(
            view.node_state.state, "record", "holds", "hold-ends-soon", (over,), (held.id, held.until), "none"
        )
    times = int((situation.now - parse_time(held.at)) / hours(policy.holds.remind_hours))
    if times < 1:
        return
    since = format_duration(situation.now - parse_time(held.at))
    because = (DecisionCause("person", held.id, f"held by {held.who} for {since}: {held.reason}"),)
    yield Proposal(view.node_state.state, "record", "holds", "hold-reminder", because, (held.id, str(times)), "none")


def _find_warning_time(held: OperatorNote) -> datetime:
    """Return from when on it is said that a hold will end: a day before, or for its last quarter if that is less."""
    begun, end = parse_time(held.at), parse_time(held.until)
    return end - min(timedelta(days=1), (end - begun) / 4)
