"""When a node should be back in service: by what earlier absences took, else by the policy's deadlines.

Staff and customers read the same sentence. It promises nothing that the records or the policy do not support.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from assay.decide.state.node_state import NodeState, PendingDecision
from assay.decide.state.service_absences import AbsenceEstimate, ServiceAbsence, estimate_absence, list_absences
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.policy_sections import LifecycleState
from assay.model.timestamps import format_duration, format_minute, format_time, hours, parse_time
from assay.tell.views.next_step import find_blocker

_LATEST_END = re.compile(r"until (\d{4}-\d\d-\d\dT\d\d:\d\d[\d:.+Z-]*) at the latest")
"""How a scheduler's adapter writes the latest end of a job in what a decision waits for."""
GENERAL_CONDITION = "the work on it must be finished first"


def describe_return(
    state: NodeState, policy: LifecyclePolicy | None, others: Iterable[NodeState], now: datetime
) -> str:
    """Return when a node is back, in one sentence or two; "" for one in service that stays. `others` are all nodes."""
    declared = policy.states.get(state.state) if policy else None
    serves = declared is not None and declared.in_service
    if serves and not state.pending:
        return ""
    if policy and state.pending and serves:
        return _describe_leaving(state, policy, state.pending, others, now)
    if declared and declared.final:
        return "It will not come back."
    if hold := state.hold:
        is_ahead = hold.until and parse_time(hold.until) > now
        until = f"It is not back before {format_minute(hold.until)}: our staff hold it until then."
        return until if is_ahead else _say_unknown("our staff must release the node first")
    condition = (declared.for_customers.back if declared else "") or GENERAL_CONDITION
    absence = next(iter(list_absences(state, policy.states_in_service)[-1:]), None) if policy else None
    if policy and absence and (estimate := estimate_return(state, policy, absence.first_state, others, now)):
        return _describe_estimate(estimate, absence, condition, now)
    return _describe_deadline(state, policy.states, declared, condition, now) if policy else _say_unknown(condition)


def estimate_return(
    state: NodeState, policy: LifecyclePolicy, first: str, others: Iterable[NodeState], now: datetime
) -> AbsenceEstimate | None:
    """Return how long an absence takes that begins in `first` and comes to where the node is, if it is out."""
    serving = policy.states_in_service
    present = first if state.state in serving else state.state
    every = ((other.node, past) for other in others for past in list_absences(other, serving))
    earlier = (past for node, past in every if node != state.node or past.ended_at)
    gone = {name for name, declared in policy.states.items() if declared.final}
    return estimate_absence(earlier, first, present, gone, now)


def _describe_leaving(
    state: NodeState, policy: LifecyclePolicy, pending: PendingDecision, others: Iterable[NodeState], now: datetime
) -> str:
    if find_blocker(pending) == "rack":
        return "It takes new jobs again when enough other nodes of its rack are back; when that is, is not known yet."
    if pending.to == state.state:
        return "When it takes new jobs again is not known yet."
    latest = _find_latest_end(pending, now)
    by = f", at {latest} at the latest by their time limits" if latest else ""
    leaves = f"It leaves service when the running jobs have ended{by}"
    if (estimate := estimate_return(state, policy, pending.to, others, now)) and estimate.half:
        return f"{leaves}, and is then out for as long as others: {_describe_cases(estimate)}."
    if allowed := _sum_deadlines(policy.states, pending.to):
        return f"{leaves}, and is then back within {format_duration(allowed)} if its tests pass."
    return f"{leaves}; how long it will then be out is not known yet."


def _find_latest_end(pending: PendingDecision, now: datetime) -> str:
    """Return when the last awaited job ends at the latest, "" unless that is known of every job."""
    matches = [_LATEST_END.search(blocker) for blocker in pending.blockers]
    ends = [parse_time(match[1]) for match in matches if match]
    is_known = bool(ends) and len(ends) == len(pending.blockers) and max(ends) > now
    return format_moment(max(ends)) if is_known else ""


def _describe_cases(estimate: AbsenceEstimate) -> str:
    cases = f"of {estimate.cases} earlier cases"
    if estimate.half and estimate.most:
        half, most = format_duration(estimate.half), format_duration(estimate.most)
        return f"usually {half} to {most} for this kind (half and nine of ten {cases})"
    if estimate.half:
        return f"usually {format_duration(estimate.half)} for this kind, sometimes much longer (half {cases})"
    return f"often long for this kind (fewer than half {cases} are back)"


def _describe_estimate(estimate: AbsenceEstimate, absence: ServiceAbsence, condition: str, now: datetime) -> str:
    cases = _describe_cases(estimate)
    half, most = (absence.began_at + span if span else None for span in (estimate.half, estimate.most))
    sentence = f"{cases[:1].upper()}{cases[1:]}"
    if most and most <= now:
        return f"{sentence}; this one takes longer. {_say_unknown(condition)}"
    if half and half > now:
        return f"{sentence}: by {format_moment(half)}{f', or {format_moment(most)}' if most else ''}."
    return f"{sentence}: by {format_moment(most)}." if most else f"{sentence}. {_say_unknown(condition)}"


def _describe_deadline(
    state: NodeState,
    states: Mapping[str, LifecycleState],
    declared: LifecycleState | None,
    condition: str,
    now: datetime,
) -> str:
    """Return when the policy expects the node back, if every step from here passes."""
    allowed = _sum_deadlines(states, state.state)
    if allowed is None or declared is None or declared.deadline is None or state.note:
        return _say_unknown(condition)
    since = parse_time(state.since)
    if since + hours(declared.deadline.hours) <= now:
        return f"It takes longer than planned. {_say_unknown(condition)}"
    soaked = since + hours(declared.soak_hours)
    earliest = f", not before {format_moment(soaked)}" if soaked > now else ""
    return f"It should be back by {format_moment(since + allowed)} if its tests pass, else later{earliest}."


def _sum_deadlines(states: Mapping[str, LifecycleState], first: str) -> timedelta | None:
    """Return the time that the policy allows from `first` to service if everything passes, None if it does not say."""
    total, seen, here = timedelta(), set[str](), states.get(first)
    while here and not here.in_service:
        if here.deadline is None or here.pass_to is None or here.pass_to in seen:
            return None
        seen.add(here.pass_to)
        total += hours(here.deadline.hours)
        here = states.get(here.pass_to)
    return total if here else None


def _say_unknown(condition: str) -> str:
    return f"When it is back is not known yet: {condition}."


def format_moment(at: datetime) -> str:
    """Return a time to the minute."""
    return format_minute(format_time(at))
