"""When a node will be back, for its customers: from earlier cases, else from the policy's deadlines, else not known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from assay.model.specs.lifecycle_policy import RACK_RULE_PREFIX
from assay.model.timestamps import format_duration, format_minute, format_time, hours, parse_time

if TYPE_CHECKING:
    from assay.decide.state.node_state import PendingDecision
    from assay.decide.state.service_absences import AbsenceEstimate
    from assay.tell.customer.customer_situation import CustomerSituation

_LATEST_END = re.compile(r"until (\d{4}-\d\d-\d\dT\d\d:\d\d[\d:.+Z-]*) at the latest")
"""How a scheduler's adapter writes the latest end of a job in what a decision waits for."""


def describe_return(situation: CustomerSituation, depends_on: str) -> Iterator[str]:
    """Yield when the node will be back. `depends_on` says what must happen first, if nothing supports an estimate."""
    state, hold, policy_state = situation.state, situation.state.hold, situation.policy_state
    if state.pending and situation.in_service:
        yield from _describe_leaving(situation, state.pending)
    elif situation.in_service:
        yield "It is in service."
    elif policy_state and policy_state.final:
        yield "It will not come back."
    elif hold and hold.until and parse_time(hold.until) > situation.now:
        yield f"Not before {format_minute(hold.until)}: our staff hold the node until then."
    elif hold:
        yield _say_unknown("our staff must release the node first")
    elif situation.estimate and situation.absence:
        began = situation.absence.began_at
        yield from _describe_estimate(situation.estimate, began, situation.now, depends_on)
    else:
        yield _describe_deadline(situation, depends_on)


def _describe_leaving(situation: CustomerSituation, pending: PendingDecision) -> Iterator[str]:
    if pending.rule_name.startswith(RACK_RULE_PREFIX):
        yield "It is in service for the jobs that run on it."
        yield "It takes new jobs again when enough other nodes of its rack are back. When that is, is not known yet."
        return
    if pending.to == situation.state.state:
        yield "It is in service for the jobs that run on it. When it takes new jobs again is not known yet."
        return
    latest = _find_latest_end(pending, situation.now)
    by = f", at {latest} at the latest by their time limits" if latest else ""
    yield f"It leaves service when the running jobs have ended{by}."
    if (estimate := situation.estimate) and estimate.half:
        yield f"{_describe_cases(estimate)}."
    elif allowed := _sum_deadlines(situation, pending.to):
        yield f"If its tests pass, it is then back within {format_duration(allowed)}."
    else:
        target = situation.policy.states.get(pending.to) if situation.policy else None
        remark = f": {target.for_customers.back}" if target and target.for_customers.back else ""
        yield f"How long it will then be out is not known yet{remark}."


def _find_latest_end(pending: PendingDecision, now: datetime) -> str:
    """Return when the last awaited job ends at the latest, "" unless that is known of every job."""
    matches = [_LATEST_END.search(blocker) for blocker in pending.blockers]
    ends = [parse_time(match[1]) for match in matches if match]
    known = bool(ends) and len(ends) == len(pending.blockers) and max(ends) > now
    return format_minute(format_time(max(ends))) if known else ""


def _describe_cases(estimate: AbsenceEstimate) -> str:
    half = f"half were back within {format_duration(estimate.half)}" if estimate.half else "fewer than half are back"
    most = f"nine of ten within {format_duration(estimate.most)}" if estimate.most else "some took much longer"
    return f"Of {estimate.cases} earlier cases that began like this one, {half} and {most}"


def _describe_estimate(estimate: AbsenceEstimate, began: datetime, now: datetime, depends_on: str) -> Iterator[str]:
    yield f"{_describe_cases(estimate)}."
    half, most = (began + span if span else None for span in (estimate.half, estimate.most))
    if most and most <= now:
        yield f"This one takes longer than that. {_say_unknown(depends_on)}"
    elif half and half > now:
        by = f", and by {_format(most)} in nine of ten" if most else ""
        yield f"By that, it is back by {_format(half)} in half of such cases{by}."
    elif most:
        yield f"By that, it is back by {_format(most)} in nine of ten such cases."
    else:
        yield _say_unknown(depends_on)


def _describe_deadline(situation: CustomerSituation, depends_on: str) -> str:
    """Return when the policy expects the node back, if every step from here passes."""
    state, policy_state = situation.state, situation.policy_state
    allowed = _sum_deadlines(situation, state.state)
    if allowed is None or policy_state is None or policy_state.deadline is None or state.note:
        return _say_unknown(depends_on)
    since = parse_time(state.since)
    if since + hours(policy_state.deadline.hours) <= situation.now:
        return f"It takes longer than planned. {_say_unknown(depends_on)}"
    soaked = since + hours(policy_state.soak_hours)
    earliest = f" Not before {_format(soaked)}." if soaked > situation.now else ""
    return f"By {_format(since + allowed)}, if its tests pass. If they do not, it takes longer.{earliest}"


def _sum_deadlines(situation: CustomerSituation, first: str) -> timedelta | None:
    """Return the time that the policy allows from `first` to service if everything passes, None if it does not say."""
    states = situation.policy.states if situation.policy else {}
    total, seen, here = timedelta(), set[str](), states.get(first)
    while here and not here.in_service:
        if here.deadline is None or here.pass_to is None or here.pass_to in seen:
            return None
        seen.add(here.pass_to)
        total += hours(here.deadline.hours)
        here = states.get(here.pass_to)
    return total if here else None


def _say_unknown(depends_on: str) -> str:
    return f"Not known yet: {depends_on}." if depends_on else "Not known yet."


def _format(at: datetime) -> str:
    return format_minute(format_time(at))
