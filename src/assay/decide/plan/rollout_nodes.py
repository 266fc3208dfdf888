"""Finds the nodes that must leave service for a change, their ways, and how many the limits allow at a time.

A way leads out of service, through the repair that the change needs, and back, along the policy's edges. The time out
is estimated: as recorded, else as the policy says, else by an assumption that is marked as such.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from assay.decide.plan.inputs import (
    ACTION_HOURS,
    PERSON_HOURS,
    SUITE_HOURS,
    AssumedHours,
    FleetFacts,
    FleetRevision,
    NodeStanding,
)
from assay.decide.plan.inventory_changes import compare_inventories
from assay.decide.plan.setting_routes import IMAGE
from assay.decide.plan.spec_pair_comparison import SpecPair, compare_spec_pairs, spec_pair_key
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
from assay.model.decision import RESTART_ACTIONS
from assay.model.facts import fact, frozen, inline, internal
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.node.declared_settings import SETTING_ROLES
from assay.model.specs.policy_sections import LifecycleState
from assay.model.text.lists import format_count


@fact
class ServiceRoute:
    """A node's way out of service and back."""

    states: tuple[str, ...]
    """The states on the way, to the one where the node serves again; none if the policy has no such way."""
    repair: str = ""
    """The state whose actions apply the change."""

    @property
    def out_of_service(self) -> tuple[str, ...]:
        """The states in which the node does not serve."""
        return self.states[1:-1]


def find_repair_route(policy: LifecyclePolicy, start: str, pair: SpecPair) -> ServiceRoute:
    """Return the way for a pair of specs: through zap, else through a restart if the image that boots brings it all."""
    applied = [setting.field for setting in pair.settings if setting.how == "applied"]
    in_memory = pair.new.host.root == "memory"
    comes_by_image = all(field == IMAGE or (in_memory and SETTING_ROLES[field].home == "disk") for field in applied)
    if pair.moves or pair.is_other_spec or not comes_by_image:
        return find_shortest_route(policy, start, frozenset({"zap"}))
    route = find_shortest_route(policy, start, frozenset({"reboot"}))
    return route if route.states else find_shortest_route(policy, start, frozenset(RESTART_ACTIONS))


def find_shortest_route(policy: LifecyclePolicy, start: str, actions: frozenset[str]) -> ServiceRoute:
    """Return the shortest way from `start` back into service, through a state with one of these entry actions."""
    there = _shortest(policy, start, lambda state: bool(actions & set(state.entry)))
    back = _shortest(policy, there[-1], lambda state: state.in_service) if there else ()
    return ServiceRoute((*there, *back[1:]), there[-1]) if back else ServiceRoute(())


def _shortest(policy: LifecyclePolicy, start: str, reached: Callable[[LifecycleState], bool]) -> tuple[str, ...]:
    """Return the shortest way along the edges; of equal ones, the first in the policy."""
    came: dict[str, str] = {start: ""}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        if here in policy.states and reached(policy.states[here]):
            way = [here]
            while came[way[-1]]:
                way.append(came[way[-1]])
            return tuple(reversed(way))
        for there in policy.edges.get(here, ()):
            if there not in came:
                came[there] = here
                waiting.append(there)
    return ()


EstimateBasis = Literal["recorded", "policy", "assumed"]


@frozen
class StayEstimate:
    """The estimated stay in one state. `sources` name the origin of the number."""

    state: str
    """The state."""
    hours: float
    """How many hours the stay takes."""
    basis: EstimateBasis
    """What the number rests on."""
    sources: tuple[str, ...]


def estimate_stays(policy: LifecyclePolicy, facts: FleetFacts, route: ServiceRoute) -> tuple[StayEstimate, ...]:
    """Return the stays of a node that leaves service on this way."""
    return tuple(_estimate_stay(policy, facts, name) for name in route.out_of_service)


def _estimate_stay(policy: LifecyclePolicy, facts: FleetFacts, name: str) -> StayEstimate:
    state, seen = policy.states[name], facts.stays.get(name)
    if seen and seen.hours >= state.soak_hours:
        return StayEstimate(name, seen.hours, "recorded", (f"median of {seen.count} stays",))
    if state.soak_hours:
        return StayEstimate(name, state.soak_hours, "policy", ("soak_hours",))
    return _sum_parts(facts, name, state)


def _sum_parts(facts: FleetFacts, name: str, state: LifecycleState) -> StayEstimate:
    """Add up the entry actions, the required suites, and the person who certifies."""
    recorded = [(action, facts.actions[action]) for action in state.entry if action in facts.actions]
    assumed: list[tuple[str, AssumedHours]] = [
        (action, ACTION_HOURS[action]) for action in state.entry if action not in facts.actions
    ]
    assumed += [("suites", SUITE_HOURS)] if state.requires else []
    assumed += [("a person", PERSON_HOURS)] if state.certified_to and not state.pass_to else []
    hours = sum(part.hours for _, part in recorded) + sum(part.hours for _, part in assumed)
    texts = [f"{action}: median of {part.count}" for action, part in recorded]
    texts += [f"{title} {part.hours:g} h: {part.source}" for title, part in assumed if part.hours]
    basis: EstimateBasis = "assumed" if any(part.hours for _, part in assumed) else "recorded" if recorded else "policy"
    return StayEstimate(name, hours, basis, tuple(texts))


MAX_ITEMS_SHOWN = 4


@frozen
class ServiceExit:
    """The state that brings the change to a node, "" if the policy has none, and the changed items in one line."""

    to: str
    reason: str


def find_service_exits(before: FleetRevision, after: FleetRevision) -> dict[str, ServiceExit]:
    """Return the nodes of both revisions that must leave service, by name. Those that nobody acts on are left out."""
    kept = compare_inventories(before.fleet, after.fleet).kept
    pairs = compare_spec_pairs(before, after, kept)
    exits = {}
    for key, pair in pairs.items():
        if pair.needs_service_exit:
            items = [*_list_items(pair)]
            more = f" and {len(items) - MAX_ITEMS_SHOWN} more" if len(items) > MAX_ITEMS_SHOWN else ""
            route = find_repair_route(after.policy, after.policy.service_state, pair)
            exits[key] = ServiceExit(route.repair, f"{', '.join(items[:MAX_ITEMS_SHOWN])}{more}")
    keys = ((new, spec_pair_key(old, new)) for old, new in kept)
    return {
        new.name: exits[key] for new, key in keys if key in exits and after.fleet.profiles[new.profile].acts_on_faults
    }


def _list_items(pair: SpecPair) -> Iterator[str]:
    if pair.is_other_spec:
        yield f"spec {pair.old.name} → {pair.new.name}"
    for move in pair.moves:
        yield f"{move.component} {move.old or 'none'} → {move.new}"
    yield from (setting.field for setting in pair.settings)


REBOOTING_RESETS = {"host", "ac"}


@frozen
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
