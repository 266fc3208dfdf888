"""Which ports the rules of a fat tree join, as numbers: the one place where its geometry is written down."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from assay.model.span import span
from assay.model.tiers import Cores, Leaves, Spines, Tier


class Bundle(NamedTuple):
    """The cables between two switches: either one's number in its tier, and its ports, in the order of each other."""

    lower: int
    lower_ports: range
    upper: int
    upper_ports: range


@dataclass(frozen=True)
class Wiring:
    """The rules of one fabric of `nodes` nodes. Leaves are numbered units first, then rails."""

    nodes: int
    rails: int
    leaves: Leaves
    spines: Spines
    cores: Cores | None = None

    @cached_property
    def down(self) -> range:
        """The leaves' ports for nodes."""
        return span(self.leaves.down)

    @cached_property
    def up(self) -> range:
        """The leaves' ports for spines."""
        return span(self.leaves.up)

    @cached_property
    def units(self) -> int:
        """How many scalable units the nodes fill."""
        return -(-self.nodes // len(self.down))

    @cached_property
    def pod(self) -> int:
        """How many units share a group of spines."""
        return self.spines.pod or max(self.units, 1)

    @cached_property
    def groups(self) -> int:
        """How many groups of spines there are."""
        pods = -(-self.units // self.pod) or 1
        return pods * (self.rails if self.by_rail else 1)

    @cached_property
    def by_rail(self) -> bool:
        """Whether each rail has spines of its own."""
        return self.spines.group == "rail"

    @cached_property
    def in_group(self) -> int:
        """How many leaves a full group has."""
        return min(self.pod, self.units) * (1 if self.by_rail else self.rails)

    @cached_property
    def each(self) -> int:
        """How many spines a group has."""
        return len(self.spines.at) // self.groups

    @cached_property
    def spine_down(self) -> range:
        """The spines' ports for leaves."""
        return span(self.spines.down) if self.spines.down else range(1, self.in_group * self.spines.per_pair + 1)

    @cached_property
    def spine_up(self) -> range:
        """The spines' ports for cores."""
        return span(self.spines.up) if self.spines.up else range(0)

    @cached_property
    def planes(self) -> int:
        """How many planes the cores form."""
        return self.each if self.cores and self.cores.plane == "number" else 1

    @cached_property
    def in_plane(self) -> int:
        """How many spines lead to one core."""
        return len(self.spines.at) // max(self.planes, 1)

    def group_of(self, leaf: int) -> tuple[int, int]:
        """Return a leaf's group of spines, and its number among the leaves of that group."""
        unit, rail = divmod(leaf, self.rails)
        pod, place = divmod(unit, self.pod)
        return (pod * self.rails + rail, place) if self.by_rail else (pod, place * self.rails + rail)

    def leaf_spine(self) -> Iterator[Bundle]:
        """Yield the cables between leaves and spines."""
        per, up, down, each = self.spines.per_pair, self.up, self.spine_down, self.each
        for leaf in range(len(self.leaves.at)):
            group, place = self.group_of(leaf)
            theirs = down[place * per : (place + 1) * per]
            for number in range(each):
                yield Bundle(leaf, up[number * per : (number + 1) * per], group * each + number, theirs)

    def spine_core(self) -> Iterator[Bundle]:
        """Yield the cables between spines and cores."""
        if self.cores is None:
            return
        per, up, cores = self.cores.per_pair, self.spine_up, len(self.cores.at) // self.planes
        for spine in range(len(self.spines.at)):
            plane, place = (spine % self.each, spine // self.each) if self.planes > 1 else (0, spine)
            theirs = range(place * per + 1, (place + 1) * per + 1)
            for number in range(cores):
                yield Bundle(spine, up[number * per : (number + 1) * per], plane * cores + number, theirs)

    def far(self, tier: Tier, number: int, port: int) -> tuple[Tier | Literal["nodes"], int, int] | None:
        """Return the other end of a switch's cable. An adapter is counted nodes first, then rails; its port is 1."""
        if tier == "leaves" and port in self.down:
            unit, rail = divmod(number, self.rails)
            node = unit * len(self.down) + self.down.index(port)
            return ("nodes", node * self.rails + rail, 1) if node < self.nodes else None
        joints: tuple[tuple[Tier, Tier, Iterator[Bundle]], ...] = (
            ("leaves", "spines", self.leaf_spine()),
            ("spines", "cores", self.spine_core()),
        )
        for lower, upper, bundles in joints:
            for bundle in bundles if tier in (lower, upper) else ():
                if (tier, number) == (lower, bundle.lower) and port in bundle.lower_ports:
                    return upper, bundle.upper, bundle.upper_ports[bundle.lower_ports.index(port)]
                if (tier, number) == (upper, bundle.upper) and port in bundle.upper_ports:
                    return lower, bundle.lower, bundle.lower_ports[bundle.upper_ports.index(port)]
        return None

    def used(self, tier: Tier, number: int) -> set[int]:
        """Return the ports of a switch that are cabled."""
        if tier == "leaves":
            filled = max(0, self.nodes - number // self.rails * len(self.down))
            return {*self.down[:filled], *self.up}
        if tier == "spines":
            leaves = self._leaves_of(number // self.each) if self.each else 0
            return {*self.spine_down[: leaves * self.spines.per_pair], *self.spine_up}
        return set(range(1, self.in_plane * self.cores.per_pair + 1)) if self.cores else set()

    def _leaves_of(self, group: int) -> int:
        """Return how many leaves a group really has: the last pod need not be full."""
        pod = group // self.rails if self.by_rail else group
        units = min(self.pod, self.units - pod * self.pod)
        return units * (1 if self.by_rail else self.rails)

    def named(self, tier: Tier, number: int) -> dict[str, int]:
        """Return what the name of a switch may use."""
        if tier == "leaves":
            unit, rail = divmod(number, self.rails)
            return {"unit": unit + 1, "rail": rail}
        if tier == "spines":
            group, place = divmod(number, max(self.each, 1))
            pod, rail = divmod(group, self.rails) if self.by_rail else (group, 0)
            return {"index": number + 1, "pod": pod + 1, "rail": rail, "number": place + 1}
        plane, place = divmod(number, max(len(self.cores.at) // max(self.planes, 1), 1)) if self.cores else (0, 0)
        return {"index": number + 1, "plane": plane + 1, "number": place + 1}

    def rail(self, tier: Tier, number: int) -> int | None:
        """Return the rail that a switch serves; None for one that serves several."""
        if tier == "leaves":
            return number % self.rails
        return number // max(self.each, 1) % self.rails if tier == "spines" and self.by_rail else None
