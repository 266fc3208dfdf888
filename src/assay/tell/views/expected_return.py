"""When a node should be back in service: by what earlier absences took, else by the policy's deadlines.

Staff and customers read the same sentence. It promises nothing that the records or the policy do not support.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING

from assay.decide.state.node_state import NodeState, PendingDecision
from assay.decide.state.service_absences import (
    AbsenceEstimate,
    ExpectedReturn,
    ServiceAbsence,
    expect_return,
    list_fleet_absences,
)
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.policy_sections import LifecycleState
from assay.model.timestamps import format_duration, format_minute, format_time, hours, parse_time
from assay.tell.views.next_step import find_blocker

if TYPE_CHECKING:
    from assay.tell.views.records import RecordSource

_LATEST_END = re.compile(r"until (\d{4}-\d\d-\d\dT\d\d:\d\d[\d:.+Z-]*) at the latest")
"""How a scheduler's adapter writes the latest end of a job in what a decision waits for."""
IN_TIME = "if every step keeps to its time"
SERVES = "It serves meanwhile."
GENERAL_CONDITION = "the work on it must be finished first"


def describe_return(
    state: NodeState, policy: LifecyclePolicy | None, absences: Collection[ServiceAbsence], now: datetime
) -> str:
    """Return when a node is back, in one sentence or two; "" for one in service that stays.

    `absences` are those of all nodes.
    """
    declared = policy.states.get(state.state) if policy else None
    serves = declared is not None and declared.in_service
    if serves and not state.pending:
        return ""
    if policy and state.pending and serves:
        return _describe_leaving(state, policy, state.pending, absences, now)
    if declared and declared.final:
        return "It will not come back."
    if hold := state.hold:
        is_ahead = hold.until and parse_time(hold.until) > now
        until = f"It is not back before {format_minute(hold.until)}: our staff hold it until then."
        return until if is_ahead else _say_unknown("our staff must release the node first")
    condition = (declared.for_customers.back if declared else "") or GENERAL_CONDITION
    if policy is None or declared is None:
        return _say_unknown(condition)
    back = expect_return(policy, state, absences, now)
    if back.estimate:
        return _describe_estimate(back, back.estimate, condition, now)
    return _describe_deadline(state, declared, back, condition, now)


def read_returns(source: RecordSource, states: Collection[NodeState]) -> dict[str, str]:
    """Return when each node is back, as `describe_return`; "" for one that is well, or whose state no policy has."""
    policies = source.fleet.policy_of_state
    absences = list_fleet_absences(source.fleet.policies.values(), source.read_node_states()) if states else []
    return {
        each.node: describe_return(each, policies[each.state], absences, source.clock.now())
        or (SERVES if each.open_faults else "")
        if each.state in policies
        else ""
        for each in states
    }


def _describe_leaving(
    state: NodeState,
    policy: LifecyclePolicy,
    pending: PendingDecision,
    absences: Collection[ServiceAbsence],
    now: datetime,
) -> str:
    if find_blocker(pending) == "rack":
        return "It takes new jobs again when enough other nodes of its rack are back; when that is, is not known yet."
    if pending.to == state.state:
        return "When it takes new jobs again is not known yet."
    latest = _find_latest_end(pending, now)
    by = f", at {latest} at the latest by their time limits" if latest else ""
    leaves = f"It leaves service when the running jobs have ended{by}"
    back = expect_return(policy, state, absences, now)
    if back.estimate and back.estimate.half:
        return f"{leaves}, and is then out for as long as others: {_describe_cases(back.estimate)}."
    if back.planned:
        condition = IN_TIME if back.has_people else "if its tests pass"
        return f"{leaves}, and is then back within {format_duration(back.planned - now)} {condition}."
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


def _describe_estimate(back: ExpectedReturn, estimate: AbsenceEstimate, condition: str, now: datetime) -> str:
    cases = _describe_cases(estimate)
    sentence = f"{cases[:1].upper()}{cases[1:]}"
    half, most = back.half, back.most
    if most and most <= now:
        return f"{sentence}; this one takes longer. {_say_unknown(condition)}"
    if half and half > now:
        return f"{sentence}: by {format_moment(half)}{f', or {format_moment(most)}' if most else ''}."
    return f"{sentence}: by {format_moment(most)}." if most else f"{sentence}. {_say_unknown(condition)}"


def _describe_deadline(
    state: NodeState, declared: LifecycleState, back: ExpectedReturn, condition: str, now: datetime
) -> str:
    """Return when the policy expects the node back, if every step from here passes."""
    if back.planned is None or declared.deadline is None or state.note:
        return _say_unknown(condition)
    since = parse_time(state.since)
    if since + hours(declared.deadline.hours) <= now:
        return f"It takes longer than planned. {_say_unknown(condition)}"
    if back.has_people:
        return _say_unknown(f"{condition}; by {format_moment(back.planned)} {IN_TIME}")
    soaked = since + hours(declared.soak_hours)
    earliest = f", not before {format_moment(soaked)}" if soaked > now else ""
    return f"It should be back by {format_moment(back.planned)} if its tests pass, else later{earliest}."


def _say_unknown(condition: str) -> str:
    return f"When it is back is not known yet: {condition}."


def format_moment(at: datetime) -> str:
    """Return a time to the minute."""
    return format_minute(format_time(at))
