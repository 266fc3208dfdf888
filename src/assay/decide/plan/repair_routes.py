"""Finds a node's way out of service, through the repair that a change needs, and back, along the policy's edges.

The time out is estimated: as recorded, else as the policy says, else by an assumption that is marked as such.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from assay.decide.plan.inputs import ACTION_HOURS, PERSON_HOURS, SUITE_HOURS, AssumedHours, FleetFacts, FleetRevision
from assay.decide.plan.inventory_changes import compare_inventories
from assay.decide.plan.spec_pair_comparison import IMAGE, SpecPair, compare_spec_pairs, spec_pair_key
from assay.model.decision import RESTART_ACTIONS
from assay.model.facts import fact
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.node.declared_settings import SETTING_ROLES
from assay.model.specs.policy_sections import LifecycleState


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
            return _trace_back(came, here)
        for there in policy.edges.get(here, ()):
            if there not in came:
                came[there] = here
                waiting.append(there)
    return ()


def _trace_back(came: dict[str, str], end: str) -> tuple[str, ...]:
    way = [end]
    while came[way[-1]]:
        way.append(came[way[-1]])
    return tuple(reversed(way))


EstimateBasis = Literal["recorded", "policy", "assumed"]


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
