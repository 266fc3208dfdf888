"""Who has to leave service for a change, and the room that the limits leave for that."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from assay.lifecycle.limits import allowance
from assay.model.fleet import Fleet, Node
from assay.model.policy import LifecyclePolicy
from assay.plan.estimate import Stage, stages
from assay.plan.facts import Facts, Standing
from assay.plan.pairs import Pair
from assay.plan.routes import Route, route_for
from assay.plan.waves import Candidate, Rack, Room, Schedule, Waiting, schedule

REBOOTING = {"host", "ac"}


@dataclass(frozen=True, slots=True)
class Change:
    """A node of both revisions, its pair of specs, and where it stands."""

    old: Node
    new: Node
    pair: Pair
    standing: Standing
    acts: bool


@dataclass(frozen=True, slots=True)
class Way:
    """One way out of service and back, with its stays and their sum, and how many nodes go it.

    `restarts`: a host restarts on it, which counts against the fleet's restarts of an hour.
    """

    route: Route
    stages: tuple[Stage, ...]
    hours: float
    restarts: bool
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """The schedule, the ways that its nodes go, and nodes that take the change without leaving service for it.

    `under_way`: out or not yet in service, they take it on their way. `left_alone`: their profile is not acted on.
    `routes` holds the way of each node that leaves.
    """

    schedule: Schedule
    ways: tuple[Way, ...]
    under_way: tuple[str, ...]
    left_alone: tuple[str, ...]
    routes: Mapping[str, Route]


def work(policy: LifecyclePolicy, facts: Facts, changes: Iterable[Change], room: Room) -> Work:
    """Share out the nodes whose pair of specs makes them leave service."""
    leaving = list(changes)
    serving = [change for change in leaving if change.acts and change.standing.serves and not change.standing.out]
    ways = _Ways(policy, facts)
    going = [(change, ways.of(change)) for change in serving if not change.standing.held]
    able = [_candidate(change, way) for change, way in going if way.route.states]
    routes = {change.new.name: way.route for change, way in going if way.route.states}
    planned = schedule(able, room)
    waiting = (*planned.waiting, *_held(serving), *_without_a_way(going))
    return Work(
        schedule=Schedule(planned.waves, waiting),
        ways=ways.gone([way for _, way in going if way.route.states]),
        under_way=tuple(one.new.name for one in leaving if one.acts and (one.standing.out or not one.standing.serves)),
        left_alone=tuple(one.new.name for one in leaving if not one.acts),
        routes=routes,
    )


class _Ways:
    """Ways by state and need, each worked out once."""

    def __init__(self, policy: LifecyclePolicy, facts: Facts) -> None:
        self._policy, self._facts = policy, facts
        self._known: dict[tuple[str, int], Way] = {}

    def of(self, change: Change) -> Way:
        key = change.standing.state, id(change.pair)
        if key not in self._known:
            route = route_for(self._policy, change.standing.state, change.pair)
            stays = stages(self._policy, self._facts, route)
            hours, restarts = sum(stay.hours for stay in stays), change.pair.reset in REBOOTING
            self._known[key] = Way(route, stays, hours, restarts)
        return self._known[key]

    def gone(self, ways: Sequence[Way]) -> tuple[Way, ...]:
        counts = Counter(id(way) for way in ways)
        return tuple(replace(way, nodes=counts[id(way)]) for way in {id(way): way for way in ways}.values())


def room_of(policy: LifecyclePolicy, fleet: Fleet, standings: Mapping[str, Standing]) -> Room:
    """Return how many more nodes may leave service, as deciding counts it."""
    sizes = Counter(node.pool for node in fleet.nodes.values())
    racks = {rack_of(node) for node in fleet.nodes.values()}
    out = [fleet.nodes[name] for name, one in standings.items() if one.out and name in fleet.nodes]
    out_of_pool, out_of_rack = Counter(node.pool for node in out), Counter(rack_of(node) for node in out)
    limits = policy.limits
    return Room(
        pools={pool: allowance(size, limits.pool_percent) - out_of_pool[pool] for pool, size in sizes.items()},
        racks={rack: limits.rack_concurrent - out_of_rack[rack] for rack in racks},
        restarts_per_hour=limits.reboots_per_hour,
    )


def rack_of(node: Node) -> Rack:
    """Return what counts as one rack."""
    return node.site, node.rack


def _candidate(change: Change, way: Way) -> Candidate:
    node = change.new
    return Candidate(node.name, node.pool, rack_of(node), node.spec, way.hours, way.restarts)


def _held(serving: Iterable[Change]) -> list[Waiting]:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for change in serving:
        if change.standing.held:
            by_reason[change.standing.held].append(change.new.name)
    return [Waiting(tuple(nodes), why) for why, nodes in by_reason.items()]


def _without_a_way(going: Iterable[tuple[Change, Way]]) -> list[Waiting]:
    lost: dict[str, list[str]] = defaultdict(list)
    for change, way in going:
        if not way.route.states:
            why = f"the policy draws no way from {change.standing.state} through a repair and back into service"
            lost[why].append(change.new.name)
    return [Waiting(tuple(nodes), why) for why, nodes in lost.items()]
