"""What pools deliver of what they declare: who is out, which spare took whose place, when enough nodes are back.

And how it was over some time: how often nodes failed, how long repairs and their stages took, and what cost the hours.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from assay.decide.faults.incidents import Incident, list_incidents
from assay.decide.moves.replacements import judge_pool
from assay.decide.state.node_state import NodeState, TransitionRecord
from assay.decide.state.service_absences import (
    ServiceAbsence,
    Times,
    expect_return,
    list_absences,
    list_fleet_absences,
    list_proven_states,
    list_service_spans,
    list_stays,
)
from assay.ledger.ledger_reader import read_projection
from assay.model.decision import PERSON_RULE, find_rule_name
from assay.model.facts import fact, frozen
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.fault_relations import UNRELATED
from assay.model.timestamps import format_time, parse_time
from assay.tell.views.calendar import SWAPS
from assay.tell.views.records import RecordSource, find_unread

ORDERED, OTHER = "a person's order", "another reason, such as a rollout"
FIRST_PASSES = ("zap", "netboot", "reboot")
HOUR = timedelta(hours=1)
TOO_FEW = "too few nodes have been in service yet"


@fact
class AwayNode:
    """A node of the pool that is out of service."""

    node: str
    """The name of the node."""
    state: str
    """Its state."""
    since: str
    """When it left service: ISO 8601 UTC."""
    expected: str
    """When it should be back: ISO 8601 UTC; "" if nothing tells."""
    place: str
    """What becomes of its place: awaited, overdue (a spare is due) or replaced."""


@fact
class PoolDelivery:
    """What a pool delivers of what the inventory declares."""

    pool: str
    """The name of the pool."""
    declared: int
    """How many nodes it must deliver."""
    delivered: int
    """How many serve, and are known."""
    not_known: int
    """How many more are in service, and are not known: their last reading is too old."""
    declared_spares: int
    """How many spares it should have."""
    spares: int
    """How many spares it has."""
    missing: int
    """How many nodes fewer serve than are declared."""
    lacking: int
    """For how many of these there is no spare, though nobody waits for them."""
    expected: str
    """When enough nodes should be back, if spares are lacking: ISO 8601 UTC; "" if nothing tells, or none lacks."""
    away: tuple[AwayNode, ...]
    """The nodes that are out, those that are overdue first."""
    swaps: tuple[LedgerEntry, ...]
    """The last entries `node.replaced`, the newest first: which spare took whose place, by name and serial number."""

    def describe(self) -> str:
        """Return it in a line for people."""
        line = f"pool {self.pool}: {self.delivered} of {self.declared} nodes serve"
        line += f", {self.not_known} more are not known" if self.not_known else ""
        line += f", {self.spares} of {self.declared_spares} spares are left"
        if not self.lacking:
            return line
        day = f"enough should be back on {self.expected[:10]}" if self.expected else "when enough are back is not known"
        return f"{line}; {self.lacking} lack, without a spare: {day}"


def list_pool_deliveries(source: RecordSource, states: Collection[NodeState]) -> list[PoolDelivery]:
    """Return the pools that declare their capacity. `states`: of all nodes."""
    if not source.fleet.capacities:
        return []
    policy, now, swaps = source.fleet.policy, source.clock.now(), read_projection(source.ledger_for_reading, SWAPS)
    by_pool: dict[str, list[NodeState]] = defaultdict(list)
    for state in states:
        if state.node in source.fleet.nodes and state.state in policy.states:
            by_pool[state.pool].append(state)
    deliveries, absences = [], list_fleet_absences([policy], states)
    for pool, declared in source.fleet.capacities.items():
        standing = judge_pool(policy, pool, declared, by_pool[pool], now)
        not_known = len(find_unread(source, by_pool[pool])) if by_pool[pool] else 0
        expected = standing.expect_enough(policy, states, now) if standing.is_short else None
        places = {"overdue": standing.overdue, "awaited": standing.awaited, "replaced": standing.replaced}
        away = []
        for place, absent in ((place, absent) for place, absentees in places.items() for absent in absentees):
            back = expect_return(policy, absent.state, absences, now).find_next(now)
            words = (absent.state.node, absent.state.state, format_time(absent.since))
            away.append(AwayNode(*words, format_time(back) if back else "", place))
        deliveries.append(
            PoolDelivery(
                pool=pool,
                declared=declared.delivered,
                delivered=standing.delivered - not_known,
                not_known=not_known,
                declared_spares=declared.spares,
                spares=len(standing.spares),
                missing=standing.missing,
                lacking=max(0, standing.wanted - len(standing.spares)),
                expected=format_time(expected) if expected else "",
                away=tuple(away),
                swaps=swaps.get(pool, ()),
            )
        )
    return deliveries


@fact
class StageTime:
    """How long repairs were in one state of the policy."""

    state: str
    """The state."""
    stays: int
    """How many stays in it ended."""
    mean_hours: float | None
    """How long these took, on average; null without one."""
    hours: float
    """The node-hours in it, with those of stays that last."""


@fact
class FirstPass:
    """How often a step of the way into service succeeded when a node first came to it on that way."""

    action: str
    """What is done there: zap, netboot or reboot."""
    tries: int
    """How many first stays in its states ended."""
    passed: int
    """How many of these ended with the next state of the way, or in service."""
    share: float | None
    """Their share, 0 to 1; null without one."""


@fact
class Reliability:
    """How nodes held over some time, each from when it first served. A proven spare counts as up."""

    since: str
    """When this time began: ISO 8601 UTC."""
    up_hours: float
    """Node-hours in service and known."""
    down_hours: float
    """Node-hours out of service."""
    unknown_hours: float
    """Node-hours in service in which nobody knew how the node was. They count in nothing else."""
    failures: int
    """How often a fault took a node out of service."""
    mtbf_hours: float | None
    """The mean time between failures: the hours up for each failure; null without one."""
    repairs: int
    """How many of the times that a fault took a node out ended."""
    mttr_hours: float | None
    """The mean time to repair: how long these lasted; null without one. What still lasts is not in it."""
    in_repair: int
    """How many still last."""
    stages: tuple[StageTime, ...]
    """The time in each state of these repairs, the most first."""
    first_passes: tuple[FirstPass, ...]
    """The share of first passes of zap, netboot and reboot."""
    lost: dict[str, float]
    """The node-hours out of service by cause, the most first: the fault class; a person's order; another reason."""


def list_absences_by_cause(
    fleet: Fleet, state: NodeState, in_service: Collection[str]
) -> Iterator[tuple[str, ServiceAbsence]]:
    """Yield the absences of a node, each with its cause: the fault class of the incident, ORDERED or OTHER."""
    catalog, absences = fleet.sound_fault_catalog, list_absences(state, in_service)
    incidents = list_incidents(catalog.fault_relations if catalog else UNRELATED, state) if absences else ()
    for absence in absences:
        yield find_cause(incidents, absence.transitions[0]), absence


def find_cause(incidents: Sequence[Incident], move: TransitionRecord) -> str:
    """Return the fault class of the incident that took a node out of service, or who did."""
    for incident in incidents:
        if any(symptom.id in move.faults for symptom in incident.symptoms):
            return incident.cause.fault_class
    return ORDERED if move.is_order or find_rule_name(move.rule) == PERSON_RULE else OTHER


@frozen
class NodeReliability:
    """What one node adds to the Reliability of each group that it is in; times are in hours."""

    standings: Mapping[str, float]
    lost: Mapping[str, float]
    stages: Mapping[str, float]
    stays: Sequence[tuple[str, float]]
    repairs: Sequence[float]
    failures: int
    in_repair: int
    passes: Mapping[tuple[str, bool], int]


def measure_node(fleet: Fleet, state: NodeState, begin: datetime, end: datetime, unknown: Times) -> NodeReliability:
    """Return how a node held from `begin` to `end`. `unknown`: as in list_service_spans."""
    proven = list_proven_states(fleet.policies.values())
    standings, lost, stages = (defaultdict[str, float](float) for _ in range(3))
    stays, repairs, failures, in_repair = list[tuple[str, float]](), list[float](), 0, 0
    for span in list_service_spans(state, proven, begin, end, unknown):
        standings[span.standing] += (span.ended_at - span.began_at) / HOUR
    for cause, absence in list_absences_by_cause(fleet, state, proven):
        ended = absence.ended_at or end
        if absence.began_at >= end or ended <= begin:
            continue
        lost[cause] += (min(ended, end) - max(absence.began_at, begin)) / HOUR
        if cause in (ORDERED, OTHER):
            continue
        failures += absence.began_at >= begin
        if absence.ended_at and absence.ended_at <= end:
            repairs.append((absence.ended_at - absence.began_at) / HOUR)
        else:
            in_repair += 1
        for name, began, left in list_stays(state, min(ended, end)):
            if began >= absence.began_at and left > begin:
                stages[name] += (left - max(began, begin)) / HOUR
                if left < end:
                    stays.append((name, (left - began) / HOUR))
    passes = Counter(_list_first_passes(fleet, state, proven, begin, end))
    return NodeReliability(standings, lost, stages, stays, repairs, failures, in_repair, passes)


def sum_reliability(begin: datetime, nodes: Sequence[NodeReliability]) -> Reliability:
    """Return how these nodes held together since `begin`."""
    standings, failures = _add(node.standings for node in nodes), sum(node.failures for node in nodes)
    repairs = [hours for node in nodes for hours in node.repairs]
    stays = defaultdict[str, list[float]](list)
    for name, hours in (stay for node in nodes for stay in node.stays):
        stays[name].append(hours)
    first_passes = []
    for action in FIRST_PASSES:
        passed, missed = (sum(node.passes.get((action, way), 0) for node in nodes) for way in (True, False))
        tries = passed + missed
        first_passes.append(FirstPass(action, tries, passed, round(passed / tries, 4) if tries else None))
    return Reliability(
        since=format_time(begin),
        up_hours=round(standings.get("up", 0.0), 2),
        down_hours=round(standings.get("down", 0.0), 2),
        unknown_hours=round(standings.get("unknown", 0.0), 2),
        failures=failures,
        mtbf_hours=round(standings.get("up", 0.0) / failures, 2) if failures else None,
        repairs=len(repairs),
        mttr_hours=_average(repairs),
        in_repair=sum(node.in_repair for node in nodes),
        stages=tuple(
            StageTime(name, len(stays[name]), _average(stays[name]), round(hours, 2))
            for name, hours in _add(node.stages for node in nodes).items()
        ),
        first_passes=tuple(first_passes),
        lost={cause: round(hours, 2) for cause, hours in _add(node.lost for node in nodes).items()},
    )


def _list_first_passes(
    fleet: Fleet, state: NodeState, proven: Collection[str], begin: datetime, end: datetime
) -> Iterator[tuple[str, bool]]:
    """Yield each action of FIRST_PASSES that a node first came to on a way into service, and whether it passed."""
    tried = set[str]()
    for (name, _, ended), (following, _, _) in pairwise(list_stays(state, end)):
        if name in proven:
            tried.clear()
        if policy := fleet.policy_of_state.get(name):
            declared = policy.states[name]
            first = [action for action in declared.entry if action in FIRST_PASSES and action not in tried]
            tried.update(first)
            if ended > begin:
                yield from ((action, following == declared.pass_to or following in proven) for action in first)


def _add(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sums by name, the greatest first."""
    sums = defaultdict[str, float](float)
    for name, hours in (item for part in parts for item in part.items()):
        sums[name] += hours
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def _average(hours: Sequence[float]) -> float | None:
    return round(sum(hours) / len(hours), 2) if hours else None


@fact
class ServiceLevelRow:
    """What a pool delivered in a month of what its service level declares; or what one cause cost of it."""

    month: str
    """The month, such as 2026-11."""
    pool: str
    """The name of the pool."""
    cause: str
    """The fault class; a person's order; another reason; too few nodes. "" in the row of the whole pool."""
    since: str
    """From when it is measured: the begin of the month, or of the service level. ISO 8601 UTC."""
    until: str
    """Until when: the end of the month, or now. ISO 8601 UTC."""
    declared_hours: float
    """The node-hours that the pool should deliver."""
    delivered_hours: float
    """Of these, those in which a node served and was known."""
    unknown_hours: float
    """Of these, those in which nobody knew: a node in service was silent, or no run judged it; or none was enrolled."""
    lost_hours: float
    """Of these, the rest. Those of one moment are shared evenly by the nodes that are out then."""
    agreed_percent: float
    """The share that is agreed on."""
    percent: float | None
    """The hours delivered, in percent of those delivered and lost; null if neither is known."""
    credit_percent: float | None
    """What is credited for that, in percent of the price; null if it is not known."""
    credit_at_most_percent: float
    """What would be, if all hours that are not known were lost."""
    nodes: tuple[str, ...]
    """The nodes that were out by this cause, while hours were lost."""
    decisions: tuple[str, ...]
    """The decisions by which they left service, as the ledger has them."""


def list_service_levels(
    fleet: Fleet, states: Collection[NodeState], month: datetime, now: datetime, unknown: Mapping[str, Times]
) -> Iterator[ServiceLevelRow]:
    """Yield the rows of the pools that declare a service level: first the whole, then each cause, the most first.

    `unknown`: when nobody knew how a node was, as `read_unknown_times` returns it.
    """
    month_end = min((month + timedelta(days=32)).replace(day=1), now)
    for pool, capacity in fleet.capacities.items():
        agreed = capacity.service_level
        begin = max(month, parse_time(agreed.since)) if agreed else month_end
        if agreed is None or begin >= month_end:
            continue
        summed, lost = defaultdict[str, float](float), defaultdict[str, float](float)
        out = defaultdict[str, set[tuple[str, str]]](set)
        ours = [state for state in states if state.pool == pool and state.node in fleet.nodes]
        for span, serving, dark, away in _sweep(fleet, ours, begin, month_end, unknown, capacity.delivered):
            delivered = min(serving, capacity.delivered)
            not_known = min(dark, capacity.delivered - delivered)
            missing = capacity.delivered - delivered - not_known
            for standing, count in (("delivered", delivered), ("unknown", not_known), ("lost", missing)):
                summed[standing] += count * span
            for cause, node, decision in away if missing else ():
                lost[cause] += missing * span / len(away)
                out[cause].add((node, decision))
            if missing and not away:
                lost[TOO_FEW] += missing * span
        hours = {standing: round(count, 2) for standing, count in summed.items()}
        known, owed = hours["delivered"] + hours["lost"], sum(hours.values())
        percent = round(100 * hours["delivered"] / known, 4) if known else None
        whole = ServiceLevelRow(
            month=f"{month:%Y-%m}",
            pool=pool,
            cause="",
            since=format_time(begin),
            until=format_time(month_end),
            declared_hours=round(owed, 2),
            delivered_hours=hours["delivered"],
            unknown_hours=hours["unknown"],
            lost_hours=hours["lost"],
            agreed_percent=agreed.percent,
            percent=percent,
            credit_percent=None if percent is None else agreed.find_credit(percent),
            credit_at_most_percent=agreed.find_credit(100 * hours["delivered"] / owed) if owed else 0.0,
            nodes=(),
            decisions=(),
        )
        yield whole
        for cause, cost in sorted(lost.items(), key=lambda item: (-item[1], item[0])):
            nodes, decisions = (tuple(sorted({pair[place] for pair in out[cause]} - {""})) for place in (0, 1))
            if cost := round(cost, 2):
                yield replace(whole, cause=cause, lost_hours=cost, nodes=nodes, decisions=decisions)


Away = tuple[str, str, str]
"""A node out of service: the cause, the node, and the decision by which it left."""


def _sweep(
    fleet: Fleet,
    states: Collection[NodeState],
    begin: datetime,
    end: datetime,
    unknown: Mapping[str, Times],
    declared: int,
) -> Iterator[tuple[float, int, int, list[Away]]]:
    """Yield each time in which nothing changes: its hours, how many nodes serve and are known, or not, who is out.

    Before the first of them was enrolled, nothing is known of the `declared` number.
    """
    proven = list_proven_states(fleet.policies.values())
    first = max(begin, min((parse_time(state.enrolled_at) for state in states), default=end))
    nobody = ("", "", "")
    changes: list[tuple[datetime, int, str, Away]] = [(end, 0, "", nobody)]
    changes += [(begin, declared, "unknown", nobody), (min(first, end), -declared, "unknown", nobody)]
    for state in states:
        absences = list(list_absences_by_cause(fleet, state, proven))
        for span in list_service_spans(state, fleet.states_in_service, begin, end, unknown.get(state.node, ())):
            cause, decision = OTHER, ""
            for name, absence in absences:
                if absence.began_at <= span.began_at:
                    cause, decision = name, absence.transitions[0].decision
            kind = "spare" if span.standing == "down" and span.state in proven else span.standing
            node = (cause, state.node, decision)
            changes += [(span.began_at, 1, kind, node), (span.ended_at, -1, kind, node)]
    counts, away, last = Counter[str](), Counter[Away](), begin
    for at, by, standing, node in sorted(changes):
        if at > last:
            yield (at - last) / HOUR, counts["up"], counts["unknown"], [*away]
            last = at
        counts[standing] += by
        if standing == "down":
            away[node] += by
            away += Counter()
