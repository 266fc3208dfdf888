"""Which limits the change itself would break: then it must be cut smaller, and merging is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from assay.lifecycle.limits import allowance
from assay.model.fleet import Node
from assay.model.spans import counted, nodes
from assay.plan.declared import Declared
from assay.plan.facts import Facts, Standing
from assay.plan.follows import Follows
from assay.plan.job import Job, nodes_of
from assay.plan.nodes import NodeChanges
from assay.plan.work import rack_of

K = TypeVar("K", str, tuple[str, str])


@dataclass(frozen=True, slots=True)
class Refused:
    """The limit by its path in the policy, where it stands, and why it would be broken."""

    limit: str
    where: str
    why: str


@dataclass(frozen=True)
class Case:
    """What a refusal is found in. `standings` hold the nodes of either revision."""

    before: Declared
    after: Declared
    facts: Facts
    nodes: NodeChanges
    cables: tuple[Job, ...]
    standings: Mapping[str, Standing]
    following: tuple[Follows, ...]

    def refused(self, limit: str, why: str) -> Refused:
        """Return a refusal for a limit of the policy."""
        return Refused(limit, self.after.policy_line(limit), why)

    def serving(self, names: Iterable[str]) -> list[Node]:
        """Return those of these nodes that customers use and that are not out already, as they were before."""
        known = self.before.fleet.nodes
        return [known[name] for name in names if name in known and self._serves(name)]

    def _serves(self, name: str) -> bool:
        one = self.standings[name]
        return one.serves and not one.out

    def out(self, declared: Declared) -> list[Node]:
        """Return the nodes of a revision that are out already."""
        return [node for name, node in declared.fleet.nodes.items() if self.standings[name].out]

    def too_many(self, gone: list[Node], what: str, racks: list[Node] | None = None) -> Iterator[Refused]:
        """Yield the pools and racks that lose more nodes at once than their limits allow."""
        yield from self.too_many_of_pools(gone, what)
        yield from self._too_many_of_racks(gone if racks is None else racks, what)

    def too_many_of_pools(self, gone: list[Node], what: str) -> Iterator[Refused]:
        """Yield the pools that lose more nodes at once than may be out."""
        sizes = Counter(node.pool for node in self.before.fleet.nodes.values())
        out = Counter(node.pool for node in self.out(self.before))
        for pool, names in _by(gone, lambda node: node.pool):
            allowed = allowance(sizes[pool], self.after.policy.limits.pool_percent)
            if out[pool] + len(names) > allowed:
                named = nodes(names)
                why = f"pool {pool}: {named} {what}; {_room(allowed, sizes[pool], out[pool])}"
                yield self.refused("limits.pool_percent", why)

    def _too_many_of_racks(self, gone: list[Node], what: str) -> Iterator[Refused]:
        sizes = Counter(rack_of(node) for node in self.before.fleet.nodes.values())
        out = Counter(rack_of(node) for node in self.out(self.before))
        allowed = self.after.policy.limits.rack_concurrent
        for rack, names in _by(gone, rack_of):
            if out[rack] + len(names) > allowed:
                named = nodes(names)
                why = f"rack {rack[1]}: {named} {what}; {_room(allowed, sizes[rack], out[rack])}"
                yield self.refused("limits.rack_concurrent", why)


def _by(some: Iterable[Node], key: Callable[[Node], K]) -> list[tuple[K, list[str]]]:
    """Return the names of nodes by what they share, in its order."""
    found: dict[K, list[str]] = {}
    for node in some:
        found.setdefault(key(node), []).append(node.name)
    return sorted(found.items())


def _room(allowed: int, size: int, out: int) -> str:
    already = f", {out} are out already" if out else ""
    return f"{allowed} of {size} may be out{already}"


def refusals(case: Case) -> tuple[Refused, ...]:
    """Return every limit that the change would break."""
    return tuple(found for finder in FINDERS for found in finder(case))


def taken_away(case: Case) -> Iterator[Refused]:
    """Find nodes in service that one merge takes from their pool: automation would let go of all of them at once."""
    removed = case.serving(node.name for node in case.nodes.removed)
    repooled = case.serving(case.nodes.nodes_with("pool"))
    what = "in service would be removed or put into another pool" if repooled else "in service would be removed"
    yield from case.too_many([*removed, *repooled], what, racks=removed)


def lowered_beneath(case: Case) -> Iterator[Refused]:
    """Find limits that are lowered beneath what is out at present. What is removed is nobody's to count any more."""
    old, new = case.before.policy.limits, case.after.policy.limits
    sizes, left = (Counter(node.pool for node in one.fleet.nodes.values()) for one in (case.before, case.after))
    for pool, out in sorted(Counter(node.pool for node in case.out(case.after)).items()):
        allowed = allowance(left[pool], new.pool_percent)
        if out > allowed < allowance(sizes[pool], old.pool_percent):
            why = f"pool {pool}: {counted(out, 'node')} out at present, {allowed} of {left[pool]} could be"
            yield case.refused("limits.pool_percent", why)
    for rack, out in sorted(Counter(map(rack_of, case.out(case.after))).items()):
        if out > new.rack_concurrent < old.rack_concurrent:
            why = f"rack {rack[1]}: {counted(out, 'node')} out at present, {new.rack_concurrent} could be"
            yield case.refused("limits.rack_concurrent", why)


def acts_at_once(case: Case) -> Iterator[Refused]:
    """Find pools of which the changed specs would take more nodes at the next look than the limits allow."""
    names = {name for one in case.following if one.what == "moves" for name in one.nodes}
    found = case.facts.backtest.found if case.facts.backtest else ()
    names |= {one.node for one in found if one.acts and one.still}
    acted = case.serving(sorted(names))
    what = "would be acted on at the next look"
    limited = list(case.too_many_of_pools(acted, what))
    yield from limited or _trips(case, acted, what)


def _trips(case: Case, acted: list[Node], what: str) -> Iterator[Refused]:
    breaker = case.after.policy.breaker
    served = Counter(node.pool for node in case.serving(case.before.fleet.nodes))
    for pool, names in _by(acted, lambda node: node.pool):
        if len(names) >= breaker.min_nodes and len(names) * 100 >= breaker.percent * served[pool]:
            why = f"pool {pool}: {nodes(names)} {what}; {breaker.percent:g} % of {served[pool]} open the breaker"
            yield case.refused("breaker.percent", why)


def unplugged(case: Case) -> Iterator[Refused]:
    """Find nodes in service that lose links while cables are moved: too many of a pool or a rack for one merge."""
    losing = nodes_of(job for job in case.cables if job.what != "lay")
    removed = {node.name for node in case.nodes.removed}
    yield from case.too_many(case.serving(sorted(losing - removed)), "in service would lose links")


def left_without_a_state(case: Case) -> Iterator[Refused]:
    """Find nodes in a state that the policy no longer has: nothing could be decided about any node."""
    states: dict[str, list[str]] = {}
    for name in case.after.fleet.nodes:
        if (state := case.standings[name].state) not in case.after.policy.states:
            states.setdefault(state, []).append(name)
    for state, names in states.items():
        yield case.refused("states", f"{nodes(names)} in state {state}, which the policy would no longer have")


FINDERS: tuple[Callable[[Case], Iterator[Refused]], ...] = (
    taken_away,
    lowered_beneath,
    acts_at_once,
    unplugged,
    left_without_a_state,
)
