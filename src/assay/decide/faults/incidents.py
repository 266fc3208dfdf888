"""Groups the faults and failed checks of a node into incidents: one for each physical event. Pure.

What follows from what is data (`FaultRelation`). A symptom that no relation explains is an incident of its own, so each
is in exactly one. An incident is named after the first fault that was recorded of it: later evidence, another judgement
of the same evidence, and another name of the node change nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from assay.decide.state.node_state import NodeState
from assay.model.facts import extend, fact, internal, shown
from assay.model.faults.fault_record import SEVERITIES, FaultBlame, FaultRecord, FaultSeverity, rank_severity
from assay.model.faults.sightings import PART_NAME, UNKNOWN_PART
from assay.model.ledger_entry import derive_id
from assay.model.outcome import RecordedOutcome, read_part
from assay.model.specs.fault_relations import FaultRelation, FaultRelations, matches
from assay.model.timestamps import format_duration, format_time, parse_time

MAX_CAUSES_READ = 64
"""Of the causes of one class, so many are compared with a symptom, the newest first."""
_KIND = re.compile(r"[0-9_.:-]*$")
_WORDS = re.compile(r"\w+")


@fact
class Symptom:
    """One fault or failed check of an incident."""

    id: str
    """The id of the fault, or of the outcome of the check."""
    fault_class: str = shown("class")
    """The fault class; of a check without one, the check."""
    subject: str
    """The node or the part."""
    severity: FaultSeverity
    """How serious it is."""
    blame: FaultBlame
    """What is to blame."""
    detail: str
    """What was read."""
    first_seen: str
    """When it was first seen: ISO 8601 UTC."""
    last_seen: str
    """When it was last seen: ISO 8601 UTC."""
    ended_at: str
    """When it ended: ISO 8601 UTC; "" while it is open."""
    recorded_at: str = internal()
    is_proved_over: bool = internal(default=False)
    """Whether checks proved a repair of it: what is seen later is another event."""

    @property
    def part(self) -> str:
        """The part of the node, "" for the whole node."""
        return read_part(self.subject)

    @property
    def named_part(self) -> str:
        """The part, or else the one that its text names by our name: a check of a node may judge all its parts."""
        named = {*PART_NAME.findall(self.detail)} if not self.part else {self.part}
        return named.pop() if len(named) == 1 else ""

    @property
    def rank(self) -> tuple[int, str, str]:
        """Sorts the worst first, then the earliest."""
        return SEVERITIES.index(self.severity), self.first_seen, self.id


@fact
class Incident:
    """One physical event on a node, with all that it shows itself by."""

    id: str
    """Its id, which stays the same as long as it is known."""
    node: str
    """The node."""
    serial: str
    """The serial number of the machine; "" if it is not known."""
    symptoms: tuple[Symptom, ...]
    """Its faults and failed checks: first the cause, then what follows from it."""
    earlier: tuple[str, ...]
    """The ids of earlier incidents of the same kind on the same part, oldest first."""
    former_end: str
    """When the last of them ended: ISO 8601 UTC; "" without one."""
    split_from: str = internal(default="")
    """The id of the incident that it was a part of, until that was proved over and this was seen again."""

    @property
    def first(self) -> str:
        """The id of the first incident of its kind on its part: all of them have one ticket, which opens again."""
        return self.earlier[0] if self.earlier else self.id

    @property
    def cause(self) -> Symptom:
        """What the others follow from."""
        return self.symptoms[0]

    @property
    def severity(self) -> FaultSeverity:
        """The worst of its open symptoms; of all, once it has ended."""
        return self.lead.severity

    @property
    def open_symptoms(self) -> tuple[Symptom, ...]:
        """Those that have not ended."""
        return tuple(symptom for symptom in self.symptoms if not symptom.ended_at)

    @property
    def is_open(self) -> bool:
        """Whether anything of it has not ended."""
        return any(not symptom.ended_at for symptom in self.symptoms)

    @property
    def lead(self) -> Symptom:
        """What decides: the worst of what is open, and of like ones the cause."""
        present = self.open_symptoms or self.symptoms
        return min(present, key=lambda symptom: (SEVERITIES.index(symptom.severity), self.symptoms.index(symptom)))

    @property
    def work(self) -> Symptom:
        """What people work on: the cause while it is open, else the worst of what is left."""
        return self.lead if self.cause.ended_at else self.cause

    @property
    def work_parts(self) -> list[str]:
        """Our names of the parts that show what people work on; none for the whole node."""
        alike = [each for each in self.open_symptoms if each.fault_class == self.work.fault_class]
        return sorted({each.named_part for each in (self.work, *alike)} - {""})

    @property
    def first_seen(self) -> str:
        """When it was first seen: ISO 8601 UTC."""
        return min(symptom.first_seen for symptom in self.symptoms)

    @property
    def last_seen(self) -> str:
        """When it was last seen: ISO 8601 UTC."""
        return max(symptom.last_seen for symptom in self.symptoms)

    def describe_return(self) -> str:
        """Return that it came back, as the end of a sentence: `, again, 3 d after it was over`; "" the first time."""
        if not self.former_end:
            return ", again" if self.earlier else ""
        span = format_duration(max(parse_time(self.first_seen) - parse_time(self.former_end), timedelta()))
        times = f", and {len(self.earlier)} times before" if len(self.earlier) > 1 else ""
        return f", again, {span} after it was over{times}"


def list_incidents(
    relations: FaultRelations, node_state: NodeState, failures: Iterable[RecordedOutcome] = ()
) -> tuple[Incident, ...]:
    """Return every incident of a node, oldest first. A failed check among `failures` that is no fault counts too."""
    faults = [make_symptom(fault) for fault in node_state.faults]
    open_faults = {(symptom.fault_class, symptom.subject) for symptom in faults if not symptom.ended_at}
    checks = [make_check_symptom(recorded) for recorded in failures if recorded.outcome.verdict == "fail"]
    symptoms = faults + [check for check in checks if (check.fault_class, check.subject) not in open_faults]
    incidents: list[Incident] = []
    known: defaultdict[tuple[str, str], list[Incident]] = defaultdict(list)
    grouping = _Grouping(relations, symptoms)
    for members in grouping.list_groups():
        first = min(members, key=lambda member: (member.recorded_at, member.id))
        kind, former = (members[0].fault_class, members[0].part), grouping.find_former(members[0])
        origin = known[former.fault_class, former.part] if former else []
        is_split = former is not None and members[0].first_seen <= former.ended_at
        earlier = known[kind] if is_split else origin or known[kind]
        incident = Incident(
            id=name_incident(first.id),
            node=node_state.node,
            serial=node_state.serial,
            symptoms=tuple(members),
            earlier=tuple(each.id for each in earlier),
            former_end=max((symptom.ended_at for each in earlier[-1:] for symptom in each.symptoms), default=""),
            split_from=origin[-1].id if is_split and origin else "",
        )
        incidents.append(incident)
        known[kind] = [*earlier, incident]
    return tuple(incidents)


def list_open_incidents(
    relations: FaultRelations, node_state: NodeState, failures: Collection[RecordedOutcome] = ()
) -> list[Incident]:
    """Return the open incidents of a node, the worst first. `failures`: failed checks that are signs, or incidents.

    What a repair has answered waits for its proof only, and comes last.
    """
    is_any_open = failures or any(fault.is_open for fault in node_state.faults)
    listed = list_incidents(relations, node_state, failures) if is_any_open else ()
    return sorted(
        (each for each in listed if each.is_open),
        key=lambda each: (is_answered(node_state, each), rank_severity(each.severity), each.first_seen),
    )


def is_answered(node_state: NodeState, incident: Incident) -> bool:
    """Whether repairs have answered all that is open of an incident, so that only its proof is missing."""
    faults = {fault.id: fault for fault in node_state.faults}
    known = [faults.get(symptom.id) for symptom in incident.open_symptoms]
    return all(fault is not None and node_state.is_repaired(fault) for fault in known)


def find_causing_checks(node_state: NodeState) -> set[str]:
    """Return the checks on subjects that last took a node out of service or kept it out, since it was certified last.

    Each is `check[subject]`. A check of a part that was exchanged since is none.
    """
    certified_at = max((repair.at for repair in node_state.repairs if repair.kind == "certified"), default="")
    for move in reversed(node_state.transitions):
        decision = node_state.decisions.get(move.decision)
        if move.at < certified_at:
            break
        if (
            named := {cause.id.partition("/")[2] for cause in decision.causes if cause.kind == "outcome"}
            if decision
            else ()
        ):
            exchanged = {part for part, at in node_state.exchanged.items() if at > move.at}
            return {each for each in named if read_part(each.partition("[")[2].rstrip("]")) not in exchanged}
    return set()


def list_causing_failures(node_state: NodeState, latest: Iterable[RecordedOutcome]) -> list[RecordedOutcome]:
    """Return the failures of these checks among a node's newest outcomes."""
    checks = find_causing_checks(node_state)
    failed = (recorded for recorded in latest if recorded.outcome.verdict == "fail") if checks else ()
    return [each for each in failed if f"{each.outcome.check}[{each.outcome.subject}]" in checks]


def group_symptoms(relations: FaultRelations, symptoms: Sequence[Symptom]) -> list[list[Symptom]]:
    """Return the symptoms of one node in groups, one for each physical event, by when each began: the cause first."""
    return _Grouping(relations, symptoms).list_groups()


def name_incident(first: str) -> str:
    """Return the id of the incident whose first fault has this id."""
    return derive_id("incident", first)


def make_symptom(fault: FaultRecord) -> Symptom:
    """Return a fault as a symptom."""
    return extend(
        Symptom,
        fault,
        ended_at=fault.cleared_at,
        recorded_at=fault.arrived_at or fault.first_seen,
        is_proved_over=fault.response == "acted" and not fault.is_open,
    )


def make_check_symptom(recorded: RecordedOutcome) -> Symptom:
    """Return a failed check as a symptom. It is as severe as its class says once it is a fault."""
    outcome, at = recorded.outcome, format_time(recorded.measured_at)
    return Symptom(
        id=recorded.id,
        fault_class=outcome.fault or outcome.check,
        subject=outcome.subject,
        severity="degraded",
        blame="hardware",
        detail=outcome.reason,
        first_seen=at,
        last_seen=at,
        ended_at="",
        recorded_at=at,
    )


@dataclass(slots=True, eq=False)
class _Member:
    """A symptom, with its times in seconds and the one that it follows from."""

    symptom: Symptom
    start: float
    end: float
    part: str
    """The part that it names, by its subject or in its text; "" for none."""
    cause: _Member | None = None
    former: _Member | None = None
    """What it would follow from, had not checks proved a repair in between."""

    def find_root(self) -> _Member:
        """Return what it follows from in the end."""
        member = self
        while member.cause is not None:
            member = member.cause
        return member


class _Grouping:
    """The symptoms of one node, and which of them follow from which."""

    def __init__(self, relations: FaultRelations, symptoms: Sequence[Symptom]) -> None:
        self._relations = relations
        self._members = sorted(
            (
                _Member(
                    each, _seconds(each.first_seen), _seconds(each.ended_at) if each.ended_at else 1e18, each.named_part
                )
                for each in symptoms
            ),
            key=lambda member: (member.start, member.symptom.id),
        )

    @cached_property
    def _of_class(self) -> dict[str, list[_Member]]:
        by_class: dict[str, list[_Member]] = defaultdict(list)
        for member in self._members:
            by_class[member.symptom.fault_class].append(member)
        return by_class

    def list_groups(self) -> list[list[Symptom]]:
        """Return the symptoms in groups, by when each began; in each the cause comes first."""
        for member in self._members:
            self._find_cause(member)
        groups: dict[int, list[Symptom]] = {}
        for member in self._members:
            groups.setdefault(id(member.find_root()), []).append(member.symptom)
        roots = {id(member): member.symptom for member in self._members if member.cause is None}
        return [
            [roots[ident], *(symptom for symptom in group if symptom is not roots[ident])]
            for ident, group in groups.items()
        ]

    def find_former(self, cause: Symptom) -> Symptom | None:
        """Return the cause of the incident which this one would be a part of, had not checks proved it over."""
        formers = (member.former for member in self._members if member.symptom is cause)
        return next((former.find_root().symptom for former in formers if former), None)

    def _find_cause(self, member: _Member) -> None:
        """Set what a symptom follows from: on its own part before others, by the first relation, nearest in time."""
        symptom = member.symptom
        causes = [
            (cause.part != member.part, rank, abs(member.start - cause.start), cause.symptom.id, relation, cause)
            for rank, relation in self._relations.find_causes(symptom.fault_class)
            if relation.where != "kind" or self._count_parts(member, relation) >= relation.parts
            for cause in self._list_causes(member, relation)
            if cause.find_root() is not member
        ]
        for *_, relation, cause in sorted(causes, key=lambda each: each[:-2]):
            # what is seen beyond the relation's minutes after a proved repair did not follow from what was repaired
            is_left = not symptom.ended_at and _seconds(symptom.last_seen) > cause.end + relation.minutes * 60
            if not (cause.symptom.is_proved_over and (cause.end < member.start or is_left)):
                member.cause = cause
                break
            member.former = member.former or cause

    def _list_causes(self, member: _Member, relation: FaultRelation) -> Iterator[_Member]:
        symptom, latest = member.symptom, member.start + relation.before_minutes * 60
        for name, causes in self._of_class.items():
            if not matches(relation.cause, name):
                continue
            both_ways = matches(relation.symptoms, name) and matches(relation.cause, symptom.fault_class)
            place = bisect_right(causes, latest, key=lambda cause: cause.start)
            for cause in causes[max(0, place - MAX_CAUSES_READ) : place]:
                is_late = member.start > (cause.start if both_ways else cause.end) + relation.minutes * 60
                is_cause = not both_ways or cause.symptom.rank < symptom.rank
                if is_cause and not is_late and _is_there(relation, cause, member):
                    yield cause

    def _count_parts(self, member: _Member, relation: FaultRelation) -> int:
        """Return how many parts of the symptom's kind show the cause within the relation's minutes."""
        kind, seconds, parts = _KIND.sub("", member.part), relation.minutes * 60, set[str]()
        for name, causes in self._of_class.items():
            if matches(relation.cause, name):
                first = bisect_left(causes, member.start - seconds, key=lambda cause: cause.start)
                last = bisect_right(causes, member.start + seconds, key=lambda cause: cause.start)
                parts |= {cause.part for cause in causes[first : min(last, first + MAX_CAUSES_READ)]}
        return sum(_KIND.sub("", part) == kind for part in parts)


def _is_there(relation: FaultRelation, cause: _Member, member: _Member) -> bool:
    """Whether the cause is where the relation asks for it. A part that is not named may be any."""
    parts = [part for part in (cause.part, member.part) if part not in ("", UNKNOWN_PART)]
    if relation.where == "same-part" and cause.symptom.part and not member.symptom.part:
        return cause.symptom.part in _WORDS.findall(member.symptom.detail)
    if relation.where == "anywhere" or len(parts) < 2:
        return relation.where != "same-part"
    if relation.where == "kind":
        return _KIND.sub("", parts[0]) == _KIND.sub("", parts[1])
    own, other = sorted(parts, key=len)
    return own == other or other.startswith(f"{own}/")


def _seconds(at: str) -> float:
    return parse_time(at).timestamp()
