"""Finds the limits that the change itself would break. Then the merge is refused, and the change must be smaller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from assay.decide.plan.cable_moves_and_adapter_replacements import CablingJob, nodes_losing_links
from assay.decide.plan.current_fleet_state import FleetFacts, NodeStanding
from assay.decide.plan.design_gaps import find_missing_gaps
from assay.decide.plan.drift_response import DriftResponse
from assay.decide.plan.fleet_revision import FleetRevision
from assay.decide.plan.inventory_changes import InventoryChanges
from assay.decide.rollouts.rollout_waves import rack_key
from assay.model.node import Node
from assay.model.specs.policy_sections import count_allowed_out
from assay.model.text.text_lists import format_count, format_nodes

K = TypeVar("K", str, tuple[str, str])


@dataclass(frozen=True, slots=True)
class PlanRefusal:
    """The limit by its path in the policy, its file and line, and why it would be broken."""

    limit: str
    """The limit, by its path in the policy."""
    where: str
    """Its file and line."""
    why: str
    """Why it would be broken."""


@dataclass(frozen=True)
class RefusalCase:
    """The input for finding refusals. `standings` hold the nodes of either revision."""

    before: FleetRevision
    after: FleetRevision
    facts: FleetFacts
    nodes: InventoryChanges
    cables: tuple[CablingJob, ...]
    standings: Mapping[str, NodeStanding]
    following: tuple[DriftResponse, ...]

    def make_refusal(self, limit: str, why: str) -> PlanRefusal:
        """Return a refusal for a limit of the policy."""
        return PlanRefusal(limit, self.after.policy_line(limit), why)

    def select_serving(self, names: Iterable[str]) -> list[Node]:
        """Return the nodes that customers use and that were not out before."""
        known = self.before.fleet.nodes
        return [known[name] for name in names if name in known and self._serves(name)]

    def _serves(self, name: str) -> bool:
        one = self.standings[name]
        return one.is_in_service and not one.is_out

    def select_out(self, declared: FleetRevision) -> list[Node]:
        """Return the nodes of a revision that are out already."""
        return [node for name, node in declared.fleet.nodes.items() if self.standings[name].is_out]

    def select_meant_to_serve(self, declared: FleetRevision) -> list[Node]:
        """Return the nodes of a revision that make up the size of their pools."""
        return [node for name, node in declared.fleet.nodes.items() if self.standings[name].is_meant_to_serve]

    def find_overruns(self, gone: list[Node], what: str, racks: list[Node] | None = None) -> Iterator[PlanRefusal]:
        """Yield the pools and racks that lose more nodes at once than their limits allow."""
        yield from self.find_pool_overruns(gone, what)
        yield from self._find_rack_overruns(gone if racks is None else racks, what)

    def find_pool_overruns(self, gone: list[Node], what: str) -> Iterator[PlanRefusal]:
        """Yield the pools that lose more nodes at once than the limit of nodes out allows."""
        sizes = Counter(node.pool for node in self.select_meant_to_serve(self.before))
        out = Counter(node.pool for node in self.select_out(self.before))
        for pool, names in _group_names(gone, lambda node: node.pool):
            allowed = count_allowed_out(sizes[pool], self.after.policy.limits.pool_percent)
            if out[pool] + len(names) > allowed:
                named = format_nodes(names)
                why = f"pool {pool}: {named} {what}; {_format_allowance(allowed, sizes[pool], out[pool])}"
                yield self.make_refusal("limits.pool_percent", why)

    def _find_rack_overruns(self, gone: list[Node], what: str) -> Iterator[PlanRefusal]:
        sizes = Counter(rack_key(node) for node in self.before.fleet.nodes.values())
        out = Counter(rack_key(node) for node in self.select_out(self.before))
        allowed = self.after.policy.limits.rack_concurrent
        for rack, names in _group_names(gone, rack_key):
            if out[rack] + len(names) > allowed:
                named = format_nodes(names)
                why = f"rack {rack[1]}: {named} {what}; {_format_allowance(allowed, sizes[rack], out[rack])}"
                yield self.make_refusal("limits.rack_concurrent", why)


def _group_names(some: Iterable[Node], key: Callable[[Node], K]) -> list[tuple[K, list[str]]]:
    """Return the names of nodes by a shared value, in the order of these values."""
    found: dict[K, list[str]] = {}
    for node in some:
        found.setdefault(key(node), []).append(node.name)
    return sorted(found.items())


def _format_allowance(allowed: int, size: int, out: int) -> str:
    already = f", {out} are out already" if out else ""
    return f"{allowed} of {size} may be out{already}"


def find_refusals(case: RefusalCase) -> tuple[PlanRefusal, ...]:
    """Return every limit that the change would break."""
    return tuple(found for finder in REFUSAL_FINDERS for found in finder(case))


def find_removed_nodes(case: RefusalCase) -> Iterator[PlanRefusal]:
    """Find nodes in service that the merge removes from the inventory: automation would stop managing all at once."""
    removed = case.select_serving(node.name for node in case.nodes.removed)
    repooled = case.select_serving(case.nodes.nodes_with("pool"))
    what = "in service would be removed or put into another pool" if repooled else "in service would be removed"
    yield from case.find_overruns([*removed, *repooled], what, racks=removed)


def find_lowered_limits(case: RefusalCase) -> Iterator[PlanRefusal]:
    """Find limits that are lowered below the number of nodes out now. Removed nodes do not count."""
    old, new = case.before.policy.limits, case.after.policy.limits
    sizes, left = (Counter(node.pool for node in case.select_meant_to_serve(one)) for one in (case.before, case.after))
    for pool, out in sorted(Counter(node.pool for node in case.select_out(case.after)).items()):
        allowed = count_allowed_out(left[pool], new.pool_percent)
        if out > allowed < count_allowed_out(sizes[pool], old.pool_percent):
            why = f"pool {pool}: {format_count(out, 'node')} out at present, {allowed} of {left[pool]} could be"
            yield case.make_refusal("limits.pool_percent", why)
    for rack, out in sorted(Counter(map(rack_key, case.select_out(case.after))).items()):
        if out > new.rack_concurrent < old.rack_concurrent:
            why = f"rack {rack[1]}: {format_count(out, 'node')} out at present, {new.rack_concurrent} could be"
            yield case.make_refusal("limits.rack_concurrent", why)


def find_mass_actions(case: RefusalCase) -> Iterator[PlanRefusal]:
    """Find pools from which the changed specs would take more nodes at the next pass than the limits allow."""
    names = {name for one in case.following if one.what == "moves" for name in one.nodes}
    found = case.facts.backtest.differences if case.facts.backtest else ()
    names |= {one.node for one in found if one.acts and one.still_holds}
    acted = case.select_serving(sorted(names))
    what = "would be acted on at the next look"
    limited = list(case.find_pool_overruns(acted, what))
    yield from limited or _find_breaker_trips(case, acted, what)


def _find_breaker_trips(case: RefusalCase, acted: list[Node], what: str) -> Iterator[PlanRefusal]:
    breaker = case.after.policy.breaker
    served = Counter(node.pool for node in case.select_serving(case.before.fleet.nodes))
    for pool, names in _group_names(acted, lambda node: node.pool):
        if len(names) >= breaker.min_nodes and len(names) * 100 >= breaker.percent * served[pool]:
            why = f"pool {pool}: {format_nodes(names)} {what}; {breaker.percent:g} % of {served[pool]} open the breaker"
            yield case.make_refusal("breaker.percent", why)


def find_unplugged_nodes(case: RefusalCase) -> Iterator[PlanRefusal]:
    """Find nodes in service that lose links during cable work: too many of a pool or a rack for one merge."""
    losing = nodes_losing_links(job for job in case.cables if job.what != "lay")
    removed = {node.name for node in case.nodes.removed}
    yield from case.find_overruns(case.select_serving(sorted(losing - removed)), "in service would lose links")


def find_missing_states(case: RefusalCase) -> Iterator[PlanRefusal]:
    """Find nodes in a state that the policy no longer has: assay could then decide about no node."""
    states: dict[str, list[str]] = {}
    for name in case.after.fleet.nodes:
        if (state := case.standings[name].state) not in case.after.policy.states:
            states.setdefault(state, []).append(name)
    for state, names in states.items():
        yield case.make_refusal(
            "states", f"{format_nodes(names)} in state {state}, which the policy would no longer have"
        )


def find_shifted_cables(case: RefusalCase) -> Iterator[PlanRefusal]:
    """Find removed nodes without a gap in their fabric design: every later node would be cabled otherwise."""
    new_names = {old.name: new.name for old, new in case.nodes.renamed}
    for design, line, why in find_missing_gaps(case.before, case.after, new_names):
        yield PlanRefusal(f"gaps of {design}", line, why)


REFUSAL_FINDERS: tuple[Callable[[RefusalCase], Iterator[PlanRefusal]], ...] = (
    find_shifted_cables,
    find_removed_nodes,
    find_lowered_limits,
    find_mass_actions,
    find_unplugged_nodes,
    find_missing_states,
)
