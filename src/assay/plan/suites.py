"""Which checks have to be run again on which nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from assay.model.policy import LifecyclePolicy
from assay.plan.declared import Declared
from assay.plan.groups import Group
from assay.plan.routes import Route
from assay.plan.stale import Stale, Staleness


@dataclass(frozen=True, slots=True)
class Rerun:
    """Nodes whose passes of `stale` checks no longer count; after a `repair` those of whole phases do not either."""

    nodes: tuple[str, ...]
    stale: tuple[Stale, ...]
    repair: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def phases(self) -> dict[str, tuple[str, ...]]:
        """Every check to run, by phase."""
        found: dict[str, list[str]] = {}
        for one in self.stale:
            for phase in one.phases:
                found.setdefault(phase, []).append(one.check)
        for phase, checks in self.repair:
            found[phase] = list(dict.fromkeys([*found.get(phase, []), *checks]))
        return {phase: tuple(checks) for phase, checks in found.items()}


def reruns(
    groups: Iterable[Group], staleness: Staleness, after: Declared, ways: Mapping[str, Route]
) -> tuple[Rerun, ...]:
    """Return what is to be run again; `ways` holds the way out of service of every node that leaves."""
    found = [
        one for group in groups for one in _of(group, staleness.of(group.key, group.pair, group.said), after, ways)
    ]
    return tuple(found)


def _of(group: Group, stale: tuple[Stale, ...], after: Declared, ways: Mapping[str, Route]) -> Iterator[Rerun]:
    by_way: dict[Route | None, list[str]] = {}
    for name in group.names:
        by_way.setdefault(ways.get(name), []).append(name)
    for route, names in by_way.items():
        repair = tuple(_proofs(after, route)) if route else ()
        if stale or repair:
            yield Rerun(tuple(names), stale, repair)


def _proofs(after: Declared, route: Route) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the phases that must pass anew after the repair, with their checks."""
    for phase in proved_again(after.policy, route):
        yield phase, tuple(check.id for check in after.checks.values() if phase in check.phases)


def proved_again(policy: LifecyclePolicy, route: Route) -> list[str]:
    """Return the phases whose passes must be newer than the repair, in the order in which the way requires them."""
    states = route.states[route.states.index(route.repair) :] if route.repair else ()
    wanted = [want.phase for name in states for want in policy.states[name].requires if want.newer_than_repair]
    return list(dict.fromkeys(wanted))
