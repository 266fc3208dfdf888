"""What a customer is told of a node, in four short texts: what happened, what it means, what is done, when it is back.

The texts hold no ids, no codes, no paths, no names of people and nothing that a person typed. They promise nothing
that the records or the policy do not support. All times are UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from assay.model.decision import ACTIONS, CONFIGURE, DRAIN_ACTIONS, ActionFacts, ActionName
from assay.model.facts import fact
from assay.model.specs.customers import StateCustomerWords
from assay.model.specs.lifecycle_policy import RACK_RULE_PREFIX
from assay.model.timestamps import format_duration, format_minute, format_time, hours, parse_time
from assay.tell.customer.customer_faults import describe_faults, format_consequences, format_faults

if TYPE_CHECKING:
    from assay.decide.state.node_state import EffectRecord, NodeState, PendingDecision
    from assay.decide.state.service_absences import AbsenceEstimate
    from assay.tell.customer.customer_situation import CustomerSituation

PLANNED = "The node will get new firmware or settings, as planned, like the other nodes of its kind."
TURN = "It leaves service for this when its turn comes. Running jobs go on until they end."
PAUSED = "This work is paused at present: the node stays in service meanwhile."
RECENT_DAYS = 7
"""A node that serves again is said to have been out for so long after its return."""
HEADINGS = {
    "happened": "What happened",
    "means": "What it means for you",
    "doing": "What we are doing",
    "back": "When it will be back",
}
GENERAL_WORDS = StateCustomerWords(
    means="The node takes no new jobs.", doing="We work on the node.", back="the work on it must be finished first"
)
SERVING_WORDS = StateCustomerWords(means="The node takes jobs as usual.", doing="Nothing needs to be done.")
"""For states without words of their own."""
CHECKPOINT = "their last checkpoint"
_OBSTACLES = {
    "limit": "The repair waits its turn: only so many nodes may be out of service at once.",
    "breaker": "Many nodes have faults at once. Our staff look whether it is one cause, before anything is changed.",
    "profile": "This node is set up so that we report its faults and do not act on them.",
}


def describe_planned_change(situation: CustomerSituation) -> Iterator[str]:
    """Yield what is planned for a node that waits for its turn, nothing for any other."""
    if situation.in_service and situation.planned_change:
        yield PLANNED
        yield PAUSED if situation.planned_change == "paused" else TURN


@fact
class CustomerExplanation:
    """What a customer is told of a node, in whole sentences."""

    node: str
    """The name of the node."""
    in_service: bool
    """Whether customers can use the node."""
    since: str
    """Since when: ISO 8601 with the offset of UTC."""
    as_of: str
    """When this was said: ISO 8601 with the offset of UTC."""
    happened: str
    """What happened; may have several lines."""
    means: str
    """What it means for the customer."""
    doing: str
    """What is being done."""
    back: str
    """When the node should be back."""


def explain_to_customer(situation: CustomerSituation) -> CustomerExplanation:
    """Return what a customer is told."""
    return CustomerExplanation(
        node=situation.state.node,
        in_service=situation.in_service,
        since=situation.state.since,
        as_of=format_time(situation.now),
        happened="\n".join(_describe_event(situation)),
        means=" ".join(_describe_meaning(situation)),
        doing=" ".join([*_describe_work(situation), *describe_planned_change(situation)]),
        back=" ".join(describe_return(situation, _find_words(situation).back)),
    )


def format_customer_explanation(answer: CustomerExplanation) -> str:
    """Return the texts as paragraphs with headings."""
    paragraphs = [f"{heading}\n{_indent(getattr(answer, name))}" for name, heading in HEADINGS.items()]
    return "\n\n".join([f"{answer.node}, as of {format_minute(answer.as_of)}", *paragraphs])


def _indent(text: str) -> str:
    import textwrap

    lines = [textwrap.wrap(line, 98, subsequent_indent="  " if line[:2].isdigit() else "") for line in text.split("\n")]
    return "\n".join(f"  {line}" for some in lines for line in some)


def _find_words(situation: CustomerSituation) -> StateCustomerWords:
    """Return the words of the node's state; general ones for what it does not say."""
    general = SERVING_WORDS if situation.in_service else GENERAL_WORDS
    own = situation.policy_state.for_customers if situation.policy_state else general
    return StateCustomerWords(
        means=own.means or general.means, doing=own.doing or general.doing, back=own.back or general.back
    )


def is_waiting_for_rack(state: NodeState) -> bool:
    """Whether the node is closed because its rack lacks other nodes."""
    return bool(state.pending and state.pending.rule_name.startswith(RACK_RULE_PREFIX))


def stays_in_service(state: NodeState) -> bool:
    """Whether the node is only closed to new jobs for now: its rack lacks nodes, or many nodes show one fault."""
    return bool(state.pending and state.pending.to == state.state)


def _describe_event(situation: CustomerSituation) -> Iterator[str]:
    state, absence = situation.state, situation.absence
    reasons = list(format_faults(describe_faults(situation.catalog, situation.faults)))
    because = _describe_other_reason(situation)
    if reasons:
        because = " The reason:" if len(reasons) == 1 else " The reasons:"
    if situation.in_service and state.pending:
        rest = " It is to leave service when no job runs on it."
        if stays_in_service(state):
            rest = "" if is_waiting_for_rack(state) else " It is being closed to new jobs."
        yield f"The node is in service.{rest}{because}"
    elif situation.in_service:
        yield f"The node is in service, since {format_minute(state.since)}."
        if absence is None or absence.ended_at is None or (situation.now - absence.ended_at).days >= RECENT_DAYS:
            reasons = []
        else:
            began, ended = (format_minute(format_time(at)) for at in (absence.began_at, absence.ended_at))
            yield f"It was out of service from {began} to {ended}.{because}"
    elif absence:
        yield f"The node left service at {format_minute(format_time(absence.began_at))}.{because}"
    else:
        yield f"The node has not been in service yet. We know it since {format_minute(state.enrolled_at)}."
    if situation.unread_since is not None:
        when = f"since {format_minute(situation.unread_since)}" if situation.unread_since else "yet"
        yield f"We have not read the node {when}, and do not know how it is."
    yield from reasons
    if situation.in_service and (known := describe_faults(situation.catalog, situation.known_faults)):
        yield "Known faults at present:"
        yield from format_faults(known)


def _describe_other_reason(situation: CustomerSituation) -> str:
    """Return why a node left or leaves service where no fault is the reason, with a space before; "" if unknown."""
    if is_waiting_for_rack(situation.state):
        return " Its rack works as one machine, and too many other nodes of the rack are out of service."
    if "rollout" in situation.cause_kinds:
        return " It gets new firmware or settings, as planned, like the other nodes of its kind."
    moved_by_hand = situation.absence and not situation.absence.transitions[0].decision
    if "person" in situation.cause_kinds or moved_by_hand:
        return (
            " Our staff took it out for work on it." if not situation.state.pending else " Our staff plan work on it."
        )
    return ""


def _describe_meaning(situation: CustomerSituation) -> Iterator[str]:
    state, absence = situation.state, situation.absence
    drains = (effect for effect in situation.effects if effect.action in DRAIN_ACTIONS)
    emptied_at = next((drain.at for drain in drains if drain.standing == "verified"), "")
    consequences = list(format_consequences(describe_faults(situation.catalog, situation.faults), emptied_at))
    if not situation.in_service:
        if absence:
            yield from consequences
            yield from _describe_ended_jobs(situation, " ".join(consequences))
        yield _find_words(situation).means
    elif state.pending:
        yield from consequences
        closed = state.find_effect(state.pending.decision, "cordon")
        is_closed = closed is not None and closed.standing == "verified"
        yield "The node takes no new jobs." if is_closed else "The node still takes new jobs."
        yield "Running jobs go on until they end."
    else:
        yield _find_words(situation).means
        present = list(format_consequences(describe_faults(situation.catalog, situation.known_faults)))
        yield from present
        if absence and absence.ended_at and (situation.now - absence.ended_at).days < RECENT_DAYS:
            past = [text for text in consequences if text not in present]
            past += _describe_ended_jobs(situation, " ".join([*present, *past]))
            began = format_minute(format_time(absence.began_at))
            yield from [f"About jobs from before {began}:", *past] if past else []


def _describe_ended_jobs(situation: CustomerSituation, before: str) -> Iterator[str]:
    """Yield what became of jobs that still ran, only where a verified effect says so. `before` is the text before."""
    again = (
        ", and can start again in the same way."
        if CHECKPOINT in before
        else f". They can start again from {CHECKPOINT}."
    )
    for effect in situation.effects:
        if effect.action == "drain-now" and effect.standing == "verified" and effect.id in situation.ended_jobs:
            yield f"Jobs that still ran on it were ended at {format_minute(effect.at)}{again}"


def _describe_work(situation: CustomerSituation) -> Iterator[str]:
    state = situation.state
    if hold := state.hold:
        until = f" until {format_minute(hold.until)}" if hold.until else ""
        yield f"Our staff have stopped all automatic work on the node{until}."
    elif state.pending and situation.in_service:
        yield from _describe_pending_work(situation)
    elif situation.unread_since is not None:
        yield "We try to read it again."
    else:
        yield _find_words(situation).doing
    if situation.in_service:
        yield from _describe_correction(state)
    else:
        yield from _describe_repairs(situation)
    if state.move_request and not state.pending and not state.hold:
        yield "Our staff have planned work on the node."
    if not state.hold and situation.held_back in _OBSTACLES:
        yield _OBSTACLES[situation.held_back]


def _describe_correction(state: NodeState) -> Iterator[str]:
    """Yield how far the last correction got that the node had in this stay."""
    for correction in state.corrections[-1:]:
        effect = state.find_effect(correction.decision, CONFIGURE)
        if effect and correction.stay_id == state.stay_id:
            yield from _describe_repair(effect)


def _describe_repairs(situation: CustomerSituation) -> Iterator[str]:
    """Yield what is done to a node that is out of service."""
    state = situation.state
    for effect in situation.effects:
        if effect.decision == state.decision or effect.standing == "failed":
            yield from _describe_repair(effect)
    yield from _describe_tests(situation)
    if state.note and situation.policy_state and not state.hold and not situation.held_back:
        yield "Our staff have been told that it needs their help."


def _describe_pending_work(situation: CustomerSituation) -> Iterator[str]:
    pending, policy = situation.state.pending, situation.policy
    if is_waiting_for_rack(situation.state):
        yield "We work on the other nodes of the rack."
        return
    if stays_in_service(situation.state):
        yield _OBSTACLES["breaker"]
        return
    yield "We wait until the running jobs have ended."
    target = policy.states.get(pending.to) if pending and policy else None
    if target and target.for_customers.doing:
        yield f"Then: {target.for_customers.doing}"


def _describe_repair(effect: EffectRecord) -> Iterator[str]:
    """Yield how far a restart, an installation or a correction got."""
    facts = ACTIONS.get(effect.action, ActionFacts(0, ""))
    text = {"verified": facts.verified, "failed": facts.failed}.get(effect.standing, facts.under_way)
    if text:
        yield f"{text} {'at ' if effect.standing in ('verified', 'failed') else ''}{format_minute(effect.at)}."


def _describe_tests(situation: CustomerSituation) -> Iterator[str]:
    """Yield how far the required tests are, if everything before them is done."""
    since = _find_tests_start(situation)
    if since and situation.tests and situation.tests[1]:
        passed, total = situation.tests
        yield f"Its tests have run since {format_minute(since)} (passed so far: {passed} of {total})."


def _find_tests_start(situation: CustomerSituation) -> str:
    """Return when the node was ready for its tests (ISO 8601), "" if it is not ready."""
    state, policy_state = situation.state, situation.policy_state
    if policy_state is None:
        return ""
    actions: list[ActionName] = (
        [action for action in policy_state.entry if action != "ticket"] if state.decision else []
    )
    effects = [state.find_effect(state.decision, action) for action in actions]
    if any(effect is None or effect.standing != "verified" for effect in effects):
        return ""
    return max([state.since, *(effect.at for effect in effects if effect)], key=parse_time)


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
