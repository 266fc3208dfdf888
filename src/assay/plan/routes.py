"""The way of a node out of service, through the repair that a change needs, and back: read off the policy's edges."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from assay.model.action import RESTARTS
from assay.model.policy import LifecyclePolicy, State
from assay.plan.pairs import Pair


@dataclass(frozen=True, slots=True)
class Route:
    """`states` from the first to the one where the node serves again; empty where the policy draws no such way.

    `repair` is the state whose actions bring the change.
    """

    states: tuple[str, ...]
    repair: str = ""

    @property
    def out(self) -> tuple[str, ...]:
        """The states in which the node does not serve."""
        return self.states[1:-1]


def route_for(policy: LifecyclePolicy, start: str, pair: Pair) -> Route:
    """Return the way for what a pair of specs needs: zap for firmware or another kind of node, else a restart."""
    if pair.moves or pair.respecced:
        return route(policy, start, frozenset({"zap"}))
    wanted = frozenset({"powercycle"}) if pair.reset == "ac" else frozenset({"reboot"})
    found = route(policy, start, wanted)
    return found if found.states else route(policy, start, frozenset(RESTARTS))


def route(policy: LifecyclePolicy, start: str, actions: frozenset[str]) -> Route:
    """Return the shortest way from `start` through a state with one of these actions on arrival, back into service."""
    there = _shortest(policy, start, lambda state: bool(actions & set(state.entry)))
    back = _shortest(policy, there[-1], lambda state: state.in_service) if there else ()
    return Route((*there, *back[1:]), there[-1]) if back else Route(())


def _shortest(policy: LifecyclePolicy, start: str, reached: Callable[[State], bool]) -> tuple[str, ...]:
    """Return the shortest way along the edges, of equal ones the one that the policy draws first."""
    came: dict[str, str] = {start: ""}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        if here in policy.states and reached(policy.states[here]):
            return _way(came, here)
        for there in policy.edges.get(here, ()):
            if there not in came:
                came[there] = here
                waiting.append(there)
    return ()


def _way(came: dict[str, str], end: str) -> tuple[str, ...]:
    way = [end]
    while came[way[-1]]:
        way.append(came[way[-1]])
    return tuple(reversed(way))
