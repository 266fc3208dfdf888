"""The fleet in this week beside the week before: states, service, what took nodes out, tickets by age. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import comb
from types import MappingProxyType

from assay.decide.faults.incidents import list_incidents
from assay.decide.state.node_state import NodeState
from assay.decide.state.service_absences import Times, list_absences, list_stays
from assay.model.facts import frozen
from assay.model.faults.fault_record import SEVERITIES
from assay.model.fleet import Fleet
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.fault_relations import UNRELATED
from assay.model.ticket import TicketRecord
from assay.model.timestamps import parse_time
from assay.tell.customer.view import measure_availability
from assay.tell.views.incident_groups import name_kind
from assay.tell.views.node_status import count_service
from assay.tell.views.pool_delivery import find_cause

WEEK = timedelta(days=7)
MAX_ROWS = 10
SURE = 0.05
"""Numbers of incidents that are less likely than this, if nothing has changed, are said to be more than chance."""
TICKET_AGES = (timedelta(days=1), timedelta(days=7), timedelta.max)
Pair = tuple[int, int]
"""A number of this week, and that of the week before."""


@frozen
class ServiceLevel:
    """The nodes of a pool or customer: how many serve, in which share of each week (None: none), and are not known."""

    name: str
    serving: int
    nodes: int
    shares: tuple[float | None, float | None]
    unread: int = 0


@frozen
class LossCause:
    """What took nodes out of service: its incidents, and the node-hours that it cost, of both weeks."""

    title: str
    incidents: Pair
    hours: tuple[float, float]
    next_step: str

    @property
    def is_sure(self) -> bool:
        """Whether its incidents became more or fewer by more than chance: the exact binomial test."""
        this, both = self.incidents[0], sum(self.incidents)
        as_unlike = sum(comb(both, count) for count in range(both + 1) if abs(2 * count - both) >= abs(2 * this - both))
        return as_unlike / (1 << both) < SURE


@frozen
class FleetWeek:
    """Both weeks. `states`: nodes by state, the most first. `tickets`: open ones by severity, up to each age.

    `closed` are nodes that took no further job because of a fault, as read back from the scheduler. `more_causes` are
    left out, which cost the least.
    """

    until: datetime
    states: tuple[tuple[str, Pair], ...]
    pools: tuple[ServiceLevel, ...]
    customers: tuple[ServiceLevel, ...]
    causes: tuple[LossCause, ...]
    more_causes: int
    tickets: tuple[tuple[str, tuple[int, ...]], ...]
    opened: Pair
    done: Pair
    closed: Pair


def build_fleet_week(
    fleet: Fleet,
    states: Mapping[str, NodeState],
    tickets: Collection[TicketRecord],
    until: datetime,
    unknown: Mapping[str, Times] = MappingProxyType({}),
) -> FleetWeek:
    """Return both weeks of the nodes of the inventory. `states`: of all. `unknown`: as in measure_availability."""
    known = [states[name] for name in fleet.nodes if name in states]
    serving = fleet.states_in_service
    before = until - WEEK
    counts = [
        Counter(stays[-1][0] for state in known if (stays := list(list_stays(state, at)))) for at in (until, before)
    ]
    causes = _list_causes(fleet.sound_fault_catalog, known, serving, until)
    effects = [effect for state in known for effect in state.effects if effect.answers_fault]
    cordons = [effect.at for effect in effects if (effect.action, effect.standing) == ("cordon", "verified")]
    events = [(event.what, event.at) for record in tickets for event in record.history]
    return FleetWeek(
        until=until,
        states=tuple(
            (name, (count, counts[1][name])) for name, count in (counts[0] | counts[1] - counts[0]).most_common()
        ),
        pools=tuple(
            _measure(pool, [state for state in known if state.pool == pool], serving, until, unknown)
            for pool in dict.fromkeys(node.pool for node in fleet.nodes.values())
        ),
        customers=tuple(
            _measure(name, [state for state in known if state.pool in visitor.pools], serving, until, unknown)
            for policy in fleet.policies.values()
            for name, visitor in (policy.access.visitors.items() if policy.access else ())
            if visitor.role == "customer"
        ),
        causes=tuple(causes[:MAX_ROWS]),
        more_causes=len(causes[MAX_ROWS:]),
        tickets=tuple(_count_by_age(tickets, until)),
        opened=_count([at for event, at in events if event in ("opened", "reopened")], until),
        done=_count([at for event, at in events if event == "closed"], until),
        closed=_count(cordons, until),
    )


def _measure(
    name: str, states: Sequence[NodeState], serving: Collection[str], until: datetime, unknown: Mapping[str, Times]
) -> ServiceLevel:
    levels = [measure_availability(states, serving, end - WEEK, end, unknown) for end in (until, until - WEEK)]
    this, before = (level.share if level else None for level in levels)
    dark = {node for node, times in unknown.items() if any(ended >= until for _, ended in times)}
    count = count_service((state.state in serving, state.node in dark) for state in states)
    return ServiceLevel(name, count.serving, len(states), (this, before), count.not_known)


def _list_causes(
    catalog: FaultCatalog | None, states: Sequence[NodeState], serving: Collection[str], until: datetime
) -> list[LossCause]:
    """Return what took nodes out or was an incident in either week, what cost the most this week first."""
    hours, began = defaultdict[str, list[float]](lambda: [0.0, 0.0]), defaultdict[str, list[str]](list)
    relations = catalog.fault_relations if catalog else UNRELATED
    for state in states:
        incidents = list_incidents(relations, state) if state.faults else ()
        for incident in incidents:
            if incident.severity != "informational":
                began[incident.cause.fault_class].append(incident.first_seen)
        for absence in list_absences(state, serving):
            of_cause = hours[find_cause(incidents, absence.transitions[0])]
            for week, end in enumerate((until, until - WEEK)):
                lost = min(absence.ended_at or end, end) - max(absence.began_at, end - WEEK)
                of_cause[week] += max(lost, timedelta()) / timedelta(hours=1)
    causes = []
    for kind in {*hours, *began}:
        count, (this, before) = _count(began[kind], until), hours[kind]
        fault = catalog.find_class(kind) if catalog else None
        if any((*count, this, before)):
            step = fault.investigate.partition(". ")[0] if fault else ""
            causes.append(LossCause(name_kind(catalog, kind), count, (this, before), step[:1].upper() + step[1:]))
    return sorted(causes, key=lambda cause: (-cause.hours[0], -cause.incidents[0], -cause.hours[1], cause.title))


def _count(times: Collection[str], until: datetime) -> Pair:
    """Return how many of these times are in either week."""
    ages = [until - parse_time(at) for at in times]
    return sum(timedelta() <= age < WEEK for age in ages), sum(WEEK <= age < 2 * WEEK for age in ages)


def _count_by_age(tickets: Collection[TicketRecord], until: datetime) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the severities with open tickets: how many are up to each age and older than the one before."""
    opened = [record for record in tickets if not record.closed_at]
    for severity in (*SEVERITIES, ""):
        ages = [until - parse_time(record.opened_at) for record in opened if record.ticket.severity == severity]
        if ages:
            up_to = [sum(age <= limit for age in ages) for limit in TICKET_AGES]
            yield severity, tuple(count - fewer for count, fewer in zip(up_to, [0, *up_to], strict=False))
