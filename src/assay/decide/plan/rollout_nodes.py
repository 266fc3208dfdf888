"""Finds the nodes that must leave service for a change, and how many the limits allow at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from assay.decide.plan.inputs import FleetFacts, FleetRevision, NodeStanding
from assay.decide.plan.repair_routes import ServiceRoute, StayEstimate, estimate_stays, find_repair_route
from assay.decide.plan.spec_pair_comparison import SpecPair
from assay.decide.rollouts.rollout_waves import (
    BlockedNodes,
    RolloutCandidate,
    RolloutCapacity,
    WaveSchedule,
    make_schedule,
    measure_capacity,
    rack_key,
    schedule_waves,
)
from assay.model.facts import fact, inline, internal
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.text.lists import format_count

REBOOTING_RESETS = {"host", "ac"}


@dataclass(frozen=True, slots=True)
class NodeRollout:
    """A node of both revisions, its pair of specs, and its standing."""

    old: Node
    new: Node
    pair: SpecPair
    standing: NodeStanding
    acts: bool


@fact
class RolloutRoute:
    """A way out of service and back."""

    route: ServiceRoute = inline()
    stages: tuple[StayEstimate, ...]
    """The stay in each state."""
    hours: float
    """How many hours a node needs."""
    restarts: bool
    """Whether it restarts a host, which counts against the fleet's limit of restarts per hour."""
    nodes: int = 0
    """How many nodes go this way."""


@fact
class RolloutPlan:
    """How nodes leave service for the change, and which take it without that."""

    schedule: WaveSchedule = inline()
    ways: tuple[RolloutRoute, ...]
    """The ways that nodes go."""
    under_way: tuple[str, ...]
    """The nodes that are out of service or not yet in it: they take the change on their way."""
    left_alone: tuple[str, ...]
    """The nodes whose profile does not act on faults."""
    routes: Mapping[str, ServiceRoute] = internal()
    """The way of each node that leaves."""


def plan_rollout(
    policy: LifecyclePolicy, facts: FleetFacts, changes: Iterable[NodeRollout], room: RolloutCapacity
) -> RolloutPlan:
    """Schedule the nodes whose pair of specs makes them leave service."""
    leaving = list(changes)
    serving = [
        change for change in leaving if change.acts and change.standing.is_in_service and not change.standing.is_out
    ]
    ways = _RouteCache(policy, facts)
    going = [(change, ways.find(change)) for change in serving if not change.standing.hold_reason]
    able, routes = [], {}
    for node, way in ((change.new, way) for change, way in going if way.route.states):
        able.append(RolloutCandidate(node.name, node.pool, rack_key(node), node.spec, way.hours, way.restarts))
        routes[node.name] = way.route
    planned = schedule_waves(able, room, policy.rollouts.canaries)
    waiting = (*planned.waiting, *_list_held(serving), *_list_without_route(going))
    return RolloutPlan(
        schedule=make_schedule(planned.waves, waiting),
        ways=ways.count_nodes([way for _, way in going if way.route.states]),
        under_way=tuple(
            change.new.name
            for change in leaving
            if change.acts and (change.standing.is_out or not change.standing.is_in_service)
        ),
        left_alone=tuple(change.new.name for change in leaving if not change.acts),
        routes=routes,
    )


class _RouteCache:
    """Ways by state and need, each computed once."""

    def __init__(self, policy: LifecyclePolicy, facts: FleetFacts) -> None:
        self._policy, self._facts = policy, facts
        self._known: dict[tuple[str, int], RolloutRoute] = {}

    def find(self, change: NodeRollout) -> RolloutRoute:
        key = change.standing.state, id(change.pair)
        if key not in self._known:
            route = find_repair_route(self._policy, change.standing.state, change.pair)
            stays = estimate_stays(self._policy, self._facts, route)
            hours, restarts = sum(stay.hours for stay in stays), change.pair.reset in REBOOTING_RESETS
            self._known[key] = RolloutRoute(route, stays, hours, restarts)
        return self._known[key]

    def count_nodes(self, ways: Sequence[RolloutRoute]) -> tuple[RolloutRoute, ...]:
        counts = Counter(id(way) for way in ways)
        return tuple(replace(way, nodes=counts[id(way)]) for way in {id(way): way for way in ways}.values())


def compute_rollout_capacity(
    policy: LifecyclePolicy, fleet: Fleet, standings: Mapping[str, NodeStanding]
) -> RolloutCapacity:
    """Return how many more nodes may leave service, counted as decisions count them."""
    serving = [node for name, node in fleet.nodes.items() if standings[name].is_meant_to_serve]
    out = [fleet.nodes[name] for name, standing in standings.items() if standing.is_out and name in fleet.nodes]
    return measure_capacity(policy.limits, fleet.nodes.values(), serving, out)


def _list_held(serving: Iterable[NodeRollout]) -> list[BlockedNodes]:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for change in serving:
        if change.standing.hold_reason:
            by_reason[change.standing.hold_reason].append(change.new.name)
    return [BlockedNodes(tuple(nodes), reason) for reason, nodes in by_reason.items()]


def _list_without_route(going: Iterable[tuple[NodeRollout, RolloutRoute]]) -> list[BlockedNodes]:
    lost: dict[str, list[str]] = defaultdict(list)
    for change, way in going:
        if not way.route.states:
            reason = f"the policy draws no way from {change.standing.state} through a repair and back into service"
            lost[reason].append(change.new.name)
    return [BlockedNodes(tuple(nodes), reason) for reason, nodes in lost.items()]


def note_mixed_racks(after: FleetRevision, schedule: WaveSchedule) -> Iterator[str]:
    """Yield a note on each rack that is one machine: it runs two versions while its nodes leave in turn."""
    fleet, waves = after.fleet, schedule.waves
    turns = Counter({(rack_key(fleet.nodes[name]), wave.number) for wave in waves for name in wave.nodes})
    racks = Counter(rack for rack, _ in turns)
    machines = {rack_key(node): node.spec for node in fleet.nodes.values() if fleet.node_specs[node.spec].rack}
    mixed = [rack for rack, count in racks.items() if count > 1 and rack in machines]
    if mixed:
        most = max(racks[rack] for rack in mixed)
        kinds = ", ".join(sorted({machines[rack] for rack in mixed}))
        limit = after.policy_line("limits.rack_concurrent")
        cause = f"rack_concurrent lets so few nodes of a rack go at once ({limit})"
        machines_text = f"{format_count(len(mixed), 'rack')} ({kinds}), each one machine"
        yield f"{machines_text}, will run mixed over {most} waves: {cause}"
