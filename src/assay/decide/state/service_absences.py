"""When nodes were in service, out of it or not known, and how long an absence takes by earlier ones. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Literal

from assay.decide.state.node_state import NodeState, TransitionRecord
from assay.model.facts import frozen
from assay.model.outcome import SuiteRun
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import hours, parse_time

MIN_RETURNS = 5
"""An estimate needs at least so many nodes that came back."""


@frozen
class ServiceSpan:
    """A time of a node in one state. `unknown`: it was in service, and nobody knew how it was."""

    standing: Literal["up", "down", "unknown"]
    state: str
    began_at: datetime
    ended_at: datetime


@frozen
class ServiceAbsence:
    """One time out of service, with the transitions out of service and on. `ended_at` is None while it lasts."""

    began_at: datetime
    transitions: tuple[TransitionRecord, ...]
    ended_at: datetime | None

    @property
    def first_state(self) -> str:
        """The state that the node left service for."""
        return self.transitions[0].target

    @property
    def states(self) -> frozenset[str]:
        """Every state that the node went through."""
        return frozenset(move.target for move in self.transitions)


@frozen
class AbsenceEstimate:
    """How long absences took: half of `cases` at most `half`, nine of ten at most `most`.

    Both are None if too few have come back to say so.
    """

    cases: int
    half: timedelta | None
    most: timedelta | None


@frozen
class ExpectedReturn:
    """When a node should be back: by what earlier absences took, else by the policy's deadlines if each step passes.

    The times are None where nothing tells. They may have passed: then this absence takes longer. `has_people`: people
    take a step of what is planned.
    """

    estimate: AbsenceEstimate | None
    half: datetime | None
    most: datetime | None
    planned: datetime | None
    has_people: bool

    def find_next(self, now: datetime) -> datetime | None:
        """Return the first of these times that has not passed."""
        return next((at for at in (self.half, self.most, self.planned) if at and at > now), None)


def list_stays(state: NodeState, until: datetime) -> Iterator[tuple[str, datetime, datetime]]:
    """Yield each stay of a node that began before a time: the state, its begin, and its end or that time."""
    moves = state.transitions
    names = [moves[0].origin if moves else state.state, *(move.target for move in moves)]
    begins = [parse_time(state.enrolled_at), *(parse_time(move.at) for move in moves)]
    for name, began, ended in zip(names, begins, [*begins[1:], until], strict=True):
        if began < until:
            yield name, began, min(ended, until)


Times = Sequence[tuple[datetime, datetime]]
"""Times with begin and end, oldest first."""


class JudgedTimes:
    """When each node was judged by no run for longer than `longest`, as while a controller stands still.

    Runs are added as they come, oldest first; none is needed that began before `since`, and none counts twice.
    """

    def __init__(self, since: datetime, longest: timedelta) -> None:
        self.since, self.longest = since, longest
        self._last: dict[str, datetime] = {}
        self._gaps = defaultdict[str, list[tuple[datetime, datetime]]](list)

    def add(self, run: SuiteRun, nodes: Iterable[str]) -> None:
        """Add a run. `nodes` are those that there are: one that names none judged all."""
        at, longest, last = parse_time(run.at), self.longest, self._last
        for node in run.nodes or nodes:
            before = last.get(node, self.since)
            if at - before > longest:
                self._gaps[node].append((before, at))
            last[node] = max(before, at)

    def list_gaps(self, state: NodeState, now: datetime) -> Times:
        """Return these times of a node until now."""
        enrolled = parse_time(state.enrolled_at)
        gaps = [*self._gaps.get(state.node, ()), (self._last.get(state.node, self.since), now)]
        later = [(max(began, enrolled), ended) for began, ended in gaps]
        return [(began, ended) for began, ended in later if ended - began > self.longest]


def list_service_spans(
    state: NodeState,
    in_service: Collection[str],
    begin: datetime,
    end: datetime,
    unknown: Times = (),
) -> Iterator[ServiceSpan]:
    """Yield the times of a node from `begin` to `end`, from when it first served.

    `unknown`: when nobody knew how it was, beside the silences that the ledger has.
    """
    silences, has_served = sorted([*_list_silences(state, end), *unknown]), False
    for name, stay_began, ended in list_stays(state, end):
        has_served |= name in in_service
        began = max(stay_began, begin)
        if not has_served or began >= ended:
            continue
        if name not in in_service:
            yield ServiceSpan("down", name, began, ended)
            continue
        for silence_began, silence_ended in silences:
            first, last = max(silence_began, began), min(silence_ended, ended)
            if first < last:
                if began < first:
                    yield ServiceSpan("up", name, began, first)
                yield ServiceSpan("unknown", name, first, last)
                began = last
        if began < ended:
            yield ServiceSpan("up", name, began, ended)


def _list_silences(state: NodeState, end: datetime) -> list[tuple[datetime, datetime]]:
    """Return when a node was not known: its probe was silent, or both its agent and its BMC."""
    silences = defaultdict[str, list[tuple[datetime, datetime]]](list)
    for fault in state.faults:
        if "silence" in fault.marks:
            ended = parse_time(fault.cleared_at) if fault.cleared_at else end
            silences[fault.subject.rpartition("/")[2]].append((parse_time(fault.first_seen), ended))
    pairs = product(silences["agent"], silences["bmc"])
    both = [(max(agent[0], bmc[0]), min(agent[1], bmc[1])) for agent, bmc in pairs]
    return [*silences["probe"], *both]


def list_absences(node_state: NodeState, in_service: Collection[str]) -> list[ServiceAbsence]:
    """Return when a node was out of service, oldest first. A time before it first served does not count."""
    absences: list[ServiceAbsence] = []
    moves: list[TransitionRecord] = []
    for move in node_state.transitions:
        if moves and move.target in in_service:
            absences.append(ServiceAbsence(parse_time(moves[0].at), tuple(moves), parse_time(move.at)))
            moves = []
        elif moves or (move.origin in in_service and move.target not in in_service):
            moves.append(move)
    if moves:
        absences.append(ServiceAbsence(parse_time(moves[0].at), tuple(moves), None))
    return absences


def list_fleet_absences(policies: Collection[LifecyclePolicy], states: Iterable[NodeState]) -> list[ServiceAbsence]:
    """Return the absences of all nodes. A spare could serve: it is back."""
    proven = list_proven_states(policies)
    return [past for state in states for past in list_absences(state, proven)]


def list_proven_states(policies: Collection[LifecyclePolicy]) -> set[str]:
    """Return the states of nodes that serve, or could: those of spares."""
    return {name for policy in policies for name in (*policy.states_in_service, policy.spare_state)}


def expect_return(
    policy: LifecyclePolicy, state: NodeState, absences: Iterable[ServiceAbsence], now: datetime
) -> ExpectedReturn:
    """Return when a node should be back that is out, or about to leave. `absences`: those of all nodes."""
    last = next(iter(list_absences(state, policy.states_in_service | {policy.spare_state})[-1:]), None)
    own = last if last and not last.ended_at else None
    to = state.pending.to if state.pending and policy.is_in_service(state.state) else ""
    estimate, here, since = None, to or state.state, now if to else parse_time(state.since)
    if own or to:
        gone = {name for name, declared in policy.states.items() if declared.final}
        others = (past for past in absences if past != own)
        estimate = estimate_absence(others, own.first_state if own else to, here, gone, now)
    began, spans = own.began_at if own else since, (estimate.half, estimate.most) if estimate else (None, None)
    half, most = (began + span if span else None for span in spans)
    allowed, has_people = _sum_deadlines(policy, here)
    return ExpectedReturn(estimate, half, most, since + allowed if allowed is not None else None, has_people)


def _sum_deadlines(policy: LifecyclePolicy, first: str) -> tuple[timedelta | None, bool]:
    """Return the time from `first` to service by the policy's deadlines, None if it does not say.

    And whether people take a step of it: then a deadline is a reminder.
    """
    total, seen, here, has_people = timedelta(), {""}, first, False
    while not policy.is_in_service(here):
        declared = policy.states.get(here)
        if here in seen or declared is None or declared.deadline is None:
            return None, has_people
        seen.add(here)
        total += hours(declared.deadline.hours)
        has_people |= not declared.pass_to
        here = declared.pass_to or declared.certified_to or ""
    return total, has_people


def estimate_absence(
    others: Iterable[ServiceAbsence], first_state: str, present_state: str, gone: Collection[str], now: datetime
) -> AbsenceEstimate | None:
    """Return how long absences took that began in `first_state` and came to `present_state`.

    Absences that still last count until `now` (the estimator of Kaplan and Meier), so that slow repairs are not
    forgotten. Nodes in a state of `gone` never come back. None if fewer than MIN_RETURNS have come back.
    """
    alike = [absence for absence in others if absence.first_state == first_state and present_state in absence.states]
    spans = sorted((_measure(absence, gone, now), absence.ended_at is None) for absence in alike)
    if sum(not lasts for _, lasts in spans) < MIN_RETURNS:
        return None
    return AbsenceEstimate(len(spans), _find_quantile(spans, 0.5), _find_quantile(spans, 0.9))


def _measure(absence: ServiceAbsence, gone: Collection[str], now: datetime) -> timedelta:
    if absence.ended_at is None and absence.transitions[-1].target in gone:
        return timedelta.max
    return (absence.ended_at or now) - absence.began_at


def _find_quantile(spans: list[tuple[timedelta, bool]], share: float) -> timedelta | None:
    """Return the time in which this share came back. `spans`: each with whether it still lasts, the shortest first."""
    still_out = 1.0
    for number, (span, lasts) in enumerate(spans):
        if not lasts:
            still_out *= 1 - 1 / (len(spans) - number)
        if still_out <= 1 - share + 1e-9:
            return span
    return None
