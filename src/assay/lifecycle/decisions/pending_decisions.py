"""What waits: taken back once nothing is left of its cause, and brought to mind with what it waits for and its age."""

from __future__ import annotations

from collections.abc import Iterator

from assay.lifecycle.decisions.proposals import Proposal
from assay.lifecycle.decisions.rack_cordons import ShortRack
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.lifecycle.node_state import NodeState, PendingDecision
from assay.model.decision import DecisionCause
from assay.model.specs.lifecycle_policy import PERSON_RULE, RACK_RULE_PREFIX, LifecyclePolicy
from assay.model.timestamps import format_duration, hours, parse_time

STILL_WAITING_RULE = "still-waiting"
SCHEDULER_SILENT = ("unknown: the scheduler does not answer",)


def propose_pending_changes(
    situation: FleetSnapshot, view: NodeSnapshot, short: ShortRack | None
) -> Iterator[Proposal]:
    """Yield the withdrawal of what waits for nothing any more, else the reminder of what waits for long."""
    pending = view.node_state.pending
    if pending is None:
        yield from _remind_of_move_request(situation, view)
    elif gone := find_withdrawal_reason(situation.policy, view.node_state, short):
        if view.node_state.hold is None:
            because = (DecisionCause("decision", pending.decision, gone), *pending.because)
            keys = (pending.decision,)
            yield Proposal(
                view.node_state.state,
                "record",
                pending_policy_path(pending),
                pending_rule_name(pending),
                because,
                keys,
                remedy="withdraw",
            )
    else:
        yield from _remind_of_pending(situation, view, pending)


def find_withdrawal_reason(policy: LifecyclePolicy, story: NodeState, short: ShortRack | None) -> str:
    """Return why what waits has lost its cause, "" while something of it is left."""
    pending = story.pending
    name = pending_rule_name(pending) if pending else ""
    if pending is None:
        return ""
    if name.startswith(RACK_RULE_PREFIX):
        return "" if short else "enough nodes of the rack serve again"
    if not policy.has_edge(story.state, pending.to):
        return f"the policy no longer leads from {story.state} to {pending.to}"
    if name == PERSON_RULE:
        asked = story.move_request
        return "" if asked and asked.id in {cause.id for cause in pending.because} else "nobody asks for it any more"
    told = {cause.id for cause in pending.because if cause.kind == "fault"}
    left = [
        known for known in story.faults if known.id in told and known.is_open and known.last_seen > story.repaired_at
    ]
    return "" if left or not told else "what it waited to answer is over"


def pending_rule_name(pending: PendingDecision) -> str:
    """Return the name of the rule that waits."""
    return pending.rule.rpartition(" ")[2]


def pending_policy_path(pending: PendingDecision) -> str:
    """Return where in the policy its rule stands."""
    name = pending_rule_name(pending)
    if name == PERSON_RULE:
        return "waiting"
    return name if name.startswith(RACK_RULE_PREFIX) else f"faults.{name}"


def _remind_of_pending(situation: FleetSnapshot, view: NodeSnapshot, pending: PendingDecision) -> Iterator[Proposal]:
    waited = situation.now - parse_time(pending.since)
    times = int(waited / hours(situation.policy.waiting.remind_hours))
    if times < 1:
        return
    for_what = pending.blockers if pending_rule_name(pending).startswith(RACK_RULE_PREFIX) else view.jobs
    blockers = SCHEDULER_SILENT if for_what is None else for_what
    said = (
        f"has waited {format_duration(waited)} to go to {pending.to}, for {', '.join(blockers) or 'nothing any more'}"
    )
    because = (DecisionCause("decision", pending.decision, said), *pending.because)
    yield _reminder(view, because, pending.decision, times, blockers)


def _remind_of_move_request(situation: FleetSnapshot, view: NodeSnapshot) -> Iterator[Proposal]:
    asked = view.node_state.move_request
    waited = situation.now - parse_time(asked.at) if asked else None
    times = int(waited / hours(situation.policy.waiting.remind_hours)) if waited else 0
    if asked and waited and times >= 1:
        said = f"{asked.who} asked for {asked.to} {format_duration(waited)} ago, and it is still in {view.node_state.state}"
        yield _reminder(view, (DecisionCause("person", asked.id, f"{said}: {asked.reason}"),), asked.id, times)


def _reminder(
    view: NodeSnapshot, because: tuple[DecisionCause, ...], about: str, times: int, blockers: tuple[str, ...] = ()
) -> Proposal:
    keys = (about, str(times))
    return Proposal(
        view.node_state.state, "record", "waiting", STILL_WAITING_RULE, because, keys, "none", blockers=blockers
    )
