"""What a customer is told of a node, in three sentences made from its incidents and its state.

They say what happened, what that means, and what is done until the node is back. They hold no ids, no codes, no paths,
no names of people, nothing that a person typed, and no part that jobs do not use. All times are UTC.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from assay.decide.faults.incidents import Incident, list_incidents, list_open_incidents
from assay.decide.state.node_state import NodeState
from assay.decide.state.service_absences import ServiceAbsence, list_absences
from assay.model.decision import DRAIN_ACTIONS, DecisionCause
from assay.model.entries.effects import EffectIntentEntry
from assay.model.facts import fact, frozen
from assay.model.faults.fault_record import SEVERITIES
from assay.model.specs.customers import SINCE, FaultCustomerWords, StateCustomerWords
from assay.model.specs.fault_relations import FaultRelations
from assay.model.text.lists import format_list
from assay.model.timestamps import format_minute, format_time, parse_time
from assay.tell.views.expected_return import describe_return, format_moment
from assay.tell.views.next_step import find_waiting_decision

if TYPE_CHECKING:
    from assay.model.outcome import RecordedOutcome
    from assay.model.specs.fault_catalog import FaultCatalog
    from assay.model.specs.lifecycle_policy import LifecyclePolicy
    from assay.model.specs.policy_sections import LifecycleState
    from assay.tell.views.records import RecordSource

RECENT = timedelta(days=7)
"""A node that serves again is said to have been out for so long after its return."""
MAX_TOLD = 3
"""Of more incidents than these, the others are only counted."""
UNNAMED_TEST = "A test of the node failed."
UNKNOWN_FAULT = "A fault of the node's hardware or software was reported."
SERVING_WORDS = StateCustomerWords(means="The node takes jobs as usual.", doing="Nothing needs to be done.")
GENERAL_WORDS = StateCustomerWords(means="The node takes no new jobs.", doing="We work on the node.")
"""For states without words of their own."""
IN_SERVICE = "It is in service."
PLANNED = {
    "waiting": "It gets new firmware or settings when its turn comes and its jobs have ended.",
    "paused": "It is to get new firmware or settings; this work is paused at present.",
}
OBSTACLES = {
    "limits": "The repair waits its turn: only so many nodes may be out of service at once.",
    "breaker": "Many nodes have faults at once. Our staff look whether it is one cause, before anything is changed.",
    "profile": "This node is set up so that we report its faults and do not act on them.",
    "rack": "We work on the other nodes of the rack.",
}
_PARTS = (
    (re.compile(r"gpu(\d{1,3})"), "GPU {}"),
    (re.compile(r"(mlx5_\d{1,3}|hca\d{1,3})"), "InfiniBand port {}"),
    (re.compile(r"nvme(\d{1,3})"), "drive {}"),
)
"""The parts that jobs use. Others are none of theirs, and the name of an alert's may be anybody's text."""
_SENTENCE_END = re.compile(r"(?<=\.) ")
_CODE = re.compile(r" ?\((?:S?XIDs? )?[\d, ]+\)| ?\(S?XID[^)]*\)")


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
    """What happened."""
    means: str
    """What it means for the customer."""
    doing: str
    """What is being done."""
    back: str
    """When the node should be back."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What happened, what it means, and what is done until the node is back."""
        return self.happened, self.means, self.doing if self.back == IN_SERVICE else f"{self.doing} {self.back}"


def format_customer_explanation(answer: CustomerExplanation) -> str:
    """Return the answer as three paragraphs."""
    paragraphs = [textwrap.fill(line, 98, initial_indent="  ", subsequent_indent="  ") for line in answer.lines]
    return "\n".join([f"{answer.node}, as of {format_minute(answer.as_of)}", *paragraphs])


@frozen
class CustomerSituation:
    """A node and all that its customers are told of it. `absences` are those of all nodes.

    - `policy`, `catalog`: None if the fleet has none that knows the state, or none at all.
    - `failures`: its failed checks. `ended_jobs`: the effects that ended jobs.
    - `planned`: a rollout will take the node out: it waits for its turn, or is paused; "" without one.
    - `unread_since`: when a node in service was last read, if that is too long ago, "" for never; else None.
    """

    state: NodeState
    absences: Collection[ServiceAbsence]
    policy: LifecyclePolicy | None
    catalog: FaultCatalog | None
    now: datetime
    failures: Sequence[RecordedOutcome] = ()
    ended_jobs: frozenset[str] = frozenset()
    planned: str = ""
    unread_since: str | None = None

    @property
    def declared(self) -> LifecycleState | None:
        """The node's state in the policy, None if the policy does not have it."""
        return self.policy.states.get(self.state.state) if self.policy else None

    @property
    def in_service(self) -> bool:
        """Whether customers use the node."""
        return bool(self.declared and self.declared.in_service)

    @property
    def absence(self) -> ServiceAbsence | None:
        """The present time out of service, or one that ended lately; None without one."""
        absences = list_absences(self.state, self.policy.states_in_service if self.policy else ())
        last = absences[-1] if absences else None
        return None if last and last.ended_at and self.now - last.ended_at >= RECENT else last

    @property
    def words(self) -> StateCustomerWords:
        """The words of the node's state; general ones for what it does not say."""
        general = SERVING_WORDS if self.in_service else GENERAL_WORDS
        own = self.declared.for_customers if self.declared else general
        return StateCustomerWords(means=own.means or general.means, doing=own.doing or general.doing)


def read_customer_situation(
    source: RecordSource, absences: Collection[ServiceAbsence], state: NodeState
) -> CustomerSituation:
    """Return the situation of a node, from the ledger and the specs. `absences` are those of all nodes.

    Specs that cannot be read are left out: the answer is then in general words.
    """
    from assay.tell.views.node_sync import find_node_rollout
    from assay.tell.views.records import find_unread

    ledger, fleet = source.ledger_for_reading, source.fleet
    only = fleet.policy if len(fleet.policies) == 1 else None
    intents = map(EffectIntentEntry.read, ledger.entries(state.node, kinds=[EffectIntentEntry.kind]))
    rollout = find_node_rollout(source, state.node)
    waits = rollout is not None and rollout.progress == "waiting"
    return CustomerSituation(
        state,
        absences,
        fleet.policy_of_state.get(state.state, only),
        fleet.sound_fault_catalog,
        source.clock.now(),
        failures=[recorded for recorded in ledger.latest(state.node) if recorded.outcome.verdict == "fail"],
        ended_jobs=frozenset(each.effect for each in intents if each.action == "drain-now" and each.before.get("jobs")),
        planned="" if not rollout or not waits else "paused" if rollout.status == "paused" else "waiting",
        unread_since=find_unread(source, [state]).get(state.node),
    )


def explain_to_customer(situation: CustomerSituation) -> CustomerExplanation:
    """Return what a customer is told."""
    state = situation.state
    causes = _list_causes(situation)
    incidents = list(_list_told_incidents(situation, causes))
    back = describe_return(state, situation.policy, situation.absences, situation.now)
    return CustomerExplanation(
        node=state.node,
        in_service=situation.in_service,
        since=state.since,
        as_of=format_time(situation.now),
        happened=_describe_event(situation, incidents, causes),
        means=" ".join(dict.fromkeys(_SENTENCE_END.split(" ".join(_describe_meaning(situation, incidents))))),
        doing=" ".join(_describe_work(situation)),
        back=back or IN_SERVICE,
    )


def find_harm(catalog: FaultCatalog | None, state: NodeState) -> list[Incident]:
    """Return the open incidents of a node that may harm jobs by their class, the worst first."""
    opened = list_open_incidents(catalog.fault_relations, state) if catalog else ()
    return [each for each in opened if each.severity != "informational" and _find_words(catalog, each).means]


def _is_harmed(situation: CustomerSituation) -> bool:
    stays = situation.in_service and not situation.state.pending
    return stays and bool(find_harm(situation.catalog, situation.state))


def _list_causes(situation: CustomerSituation) -> list[DecisionCause]:
    """Return why the node left or leaves service; of one that never served, why it is where it is."""
    state, absence = situation.state, situation.absence
    if situation.in_service and state.pending:
        return list(state.pending.because)
    moves = absence.transitions if absence else () if situation.in_service else state.transitions
    decisions = (state.decisions[move.decision] for move in moves if move.decision in state.decisions)
    causes = [cause for decision in decisions for cause in decision.causes]
    return causes if situation.in_service else [*causes, *state.noted_causes]


def _list_told_incidents(situation: CustomerSituation, causes: Iterable[DecisionCause]) -> Iterator[Incident]:
    """Yield the open incidents that harm the jobs of a node that stays in service, else those among the causes.

    The worst comes first.
    """
    state, causes, catalog = situation.state, list(causes), situation.catalog
    if _is_harmed(situation):
        yield from find_harm(catalog, state)
        return
    named = {ident for cause in causes for ident in cause.fault_ids}
    checks = {cause.id.partition("/")[2] for cause in causes if cause.kind == "outcome"}
    failures = [each for each in situation.failures if f"{each.outcome.check}[{each.outcome.subject}]" in checks]
    relations = catalog.fault_relations if catalog else FaultRelations()
    listed = list_incidents(relations, state, failures)
    named |= {failure.id for failure in failures}
    causing = [each for each in listed if any(symptom.id in named for symptom in each.symptoms)]
    yield from sorted(causing, key=lambda incident: (SEVERITIES.index(incident.severity), incident.first_seen))


def _describe_event(
    situation: CustomerSituation, incidents: Sequence[Incident], causes: Iterable[DecisionCause]
) -> str:
    """Return what happened to the node, with the worst of its incidents."""
    state, absence, waits = situation.state, situation.absence, _find_blocker(situation)
    if situation.unread_since is not None:
        when = f"since {format_minute(situation.unread_since)}" if situation.unread_since else "yet"
        return f"We have not read the node {when}, and do not know how it is."
    if not situation.in_service:
        event = f"The node left service at {format_moment(absence.began_at)}" if absence else ""
        event = event or f"The node is new, and known since {format_minute(state.enrolled_at)}"
        if absence and _is_ordered(state, absence):  # what is older did not take it out
            incidents = [each for each in incidents if parse_time(each.first_seen) >= absence.began_at]
        because = _name_incidents(situation, incidents) or _describe_other_reason(situation, causes)
        return f"{event}{because}."
    if waits == "rack":
        return "Its rack works as one machine, and too many other nodes of the rack are out of service."
    if state.pending:
        leaves = "is being closed to new jobs" if state.pending.to == state.state else "is to leave service"
        because = _name_incidents(situation, incidents) or _describe_other_reason(situation, causes)
        return f"The node {leaves}{because}."
    if _is_harmed(situation):
        return f"The node is in service with a fault{_name_incidents(situation, incidents)}."
    if absence and absence.ended_at:
        out = f"it was out of service from {format_moment(absence.began_at)} to {format_moment(absence.ended_at)}"
        return f"The node is in service; {out}{_name_incidents(situation, incidents)}."
    return f"The node is in service, since {format_minute(state.since)}."


def _is_ordered(state: NodeState, absence: ServiceAbsence) -> bool:
    """Whether a person or a rollout took the node out of service."""
    decision = state.decisions.get(absence.transitions[0].decision)
    return decision is None or any(cause.kind in ("person", "rollout") for cause in decision.causes)


def _name_incidents(situation: CustomerSituation, incidents: Sequence[Incident]) -> str:
    """Return the worst incident in a customer's words with its parts, and how many more there are; "" without one."""
    if not incidents:
        return ""
    by_words: dict[str, list[Incident]] = {}
    for incident in incidents:
        by_words.setdefault(_find_words(situation.catalog, incident).happened.rstrip("."), []).append(incident)
    (happened, alike), *rest = by_words.items()
    first = happened.partition(" ")[0]
    if first[1:].islower() or len(first) == 1:
        happened = f"{happened[:1].lower()}{happened[1:]}"
    parts = [name for each in alike for part in each.work_parts if (name := name_part(part))]
    where = f" ({format_list(dict.fromkeys(parts), MAX_TOLD)})" if parts else ""
    more = f", and {len(rest)} more {'fault' if len(rest) == 1 else 'faults'}" if rest else ""
    seen_at, absence = min(parse_time(each.first_seen) for each in alike), situation.absence
    is_new = absence is None or format_moment(absence.began_at) != format_moment(seen_at)
    return f": {happened}{where}{f', first seen at {format_moment(seen_at)}' if is_new else ''}{more}"


def _describe_other_reason(situation: CustomerSituation, causes: Iterable[DecisionCause]) -> str:
    """Return why a node left or leaves service where no fault is the reason; "" if unknown."""
    kinds = {cause.kind for cause in causes}
    if "rollout" in kinds:
        return " for new firmware or settings, as planned, like the other nodes of its kind"
    is_ordered = situation.absence and _is_ordered(situation.state, situation.absence)
    return " for work by our staff" if "person" in kinds or is_ordered else ""


def _describe_meaning(situation: CustomerSituation, incidents: Iterable[Incident]) -> Iterator[str]:
    """Yield what the incidents mean for jobs, what became of those that still ran, and whether the node takes new ones.

    What was first seen after the node was empty harmed no job, unless its class says that it may have before. A node
    that serves again, and is harmed again, was emptied for what is over.
    """
    state, absence = situation.state, situation.absence
    if absence and absence.ended_at and _is_harmed(situation):
        absence = None
    moves = {move.decision for move in absence.transitions} if absence else set()
    drains = [each for each in state.effects if each.action in DRAIN_ACTIONS and each.standing == "verified"]
    drains = [drain for drain in drains if drain.decision in moves]
    emptied_at = min((drain.at for drain in drains), default="")
    for incident in list(incidents)[:MAX_TOLD]:
        words, seen = _find_words(situation.catalog, incident), format_time(parse_time(incident.first_seen))
        is_harm = words.also_before or not emptied_at or seen <= emptied_at
        if words.means and is_harm and (absence or situation.in_service):
            yield words.means.replace(SINCE, format_minute(seen))
    for drain in drains:
        if drain.id in situation.ended_jobs:
            yield f"Jobs that still ran were ended at {format_minute(drain.at)}."
    if situation.in_service and state.pending:
        closed = state.find_effect(state.pending.decision, "cordon")
        is_closed = closed is not None and closed.standing == "verified"
        yield f"The node {'takes no' if is_closed else 'still takes'} new jobs; running jobs go on until they end."
    else:
        is_doubtful = _is_harmed(situation) or situation.unread_since is not None
        yield "The node still takes new jobs." if is_doubtful else situation.words.means


def _describe_work(situation: CustomerSituation) -> Iterator[str]:
    """Yield what is done, and what it waits for."""
    state, waits = situation.state, _find_blocker(situation)
    if hold := state.hold:
        until = f" until {format_minute(hold.until)}" if hold.until else ""
        yield f"Our staff have stopped all automatic work on the node{until}."
        return
    if waits in OBSTACLES:
        yield OBSTACLES[waits]
    elif situation.in_service and state.pending and situation.policy:
        target = situation.policy.states.get(state.pending.to)
        yield f"We wait for running jobs. {target.for_customers.doing if target else ''}".rstrip()
    elif situation.unread_since is not None:
        yield "We try to read it again."
    else:
        yield situation.words.doing
        if state.note and situation.declared and not situation.in_service and not situation.declared.certified_to:
            yield "Our staff have been told that it needs their help."
    if situation.in_service and situation.planned:
        yield PLANNED[situation.planned]


def _find_blocker(situation: CustomerSituation) -> str:
    waiting = find_waiting_decision(situation.state, serves=situation.in_service)
    return waiting.blocker if waiting else ""


def _find_words(catalog: FaultCatalog | None, incident: Incident) -> FaultCustomerWords:
    """Return the words of an incident's cause. What happened is by default the first sentence of its summary."""
    name = incident.work.fault_class
    known = catalog.find_class(name) if catalog else None
    if catalog is None or known is None:
        return FaultCustomerWords(happened=UNNAMED_TEST if "::" in name else UNKNOWN_FAULT)
    if known.for_customers.happened:
        return known.for_customers
    summary = _CODE.sub("", catalog.describe(name)).partition(": ")[0].rstrip(".")
    happened = UNKNOWN_FAULT if "XID" in summary else f"{summary}."
    return known.for_customers.model_copy(update={"happened": happened})


def name_part(part: str) -> str:
    """Return the name of a part, such as `GPU 3` for `gpu3`; "" for a part whose name is not for customers."""
    for pattern, name in _PARTS:
        if match := pattern.fullmatch(part.lower()):
            return name.format(match[1])
    return ""
