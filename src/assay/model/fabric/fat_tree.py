"""Which ports the rules of a fat tree join, as numbers: the one place where its geometry is written down."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from assay.model.fabric.design_cables_and_partitions import parse_port_range
from assay.model.fabric.switch_tiers import CoreTier, LeafTier, SpineTier, TierName


class CableBundle(NamedTuple):
    """The cables between two switches: either one's number in its tier, and its ports, in the order of each other."""

    lower: int
    lower_ports: range
    upper: int
    upper_ports: range


@dataclass(frozen=True)
class FatTreeWiring:
    """The rules of one fabric of `nodes` nodes. Leaves are numbered units first, then rails."""

    nodes: int
    rails: int
    leaves: LeafTier
    spines: SpineTier
    cores: CoreTier | None = None

    @cached_property
    def leaf_down_ports(self) -> range:
        """The leaves' ports for nodes."""
        return parse_port_range(self.leaves.down)

    @cached_property
    def leaf_up_ports(self) -> range:
        """The leaves' ports for spines."""
        return parse_port_range(self.leaves.up)

    @cached_property
    def unit_count(self) -> int:
        """How many scalable units the nodes fill."""
        return -(-self.nodes // len(self.leaf_down_ports))

    @cached_property
    def units_per_pod(self) -> int:
        """How many units share a group of spines."""
        return self.spines.pod or max(self.unit_count, 1)

    @cached_property
    def spine_group_count(self) -> int:
        """How many groups of spines there are."""
        pods = -(-self.unit_count // self.units_per_pod) or 1
        return pods * (self.rails if self.has_spines_by_rail else 1)

    @cached_property
    def has_spines_by_rail(self) -> bool:
        """Whether each rail has spines of its own."""
        return self.spines.group == "rail"

    @cached_property
    def leaves_per_group(self) -> int:
        """How many leaves a full group has."""
        return min(self.units_per_pod, self.unit_count) * (1 if self.has_spines_by_rail else self.rails)

    @cached_property
    def spines_per_group(self) -> int:
        """How many spines a group has."""
        return len(self.spines.at) // self.spine_group_count

    @cached_property
    def spine_down_ports(self) -> range:
        """The spines' ports for leaves."""
        return (
            parse_port_range(self.spines.down)
            if self.spines.down
            else range(1, self.leaves_per_group * self.spines.per_pair + 1)
        )

    @cached_property
    def spine_up_ports(self) -> range:
        """The spines' ports for cores."""
        return parse_port_range(self.spines.up) if self.spines.up else range(0)

    @cached_property
    def plane_count(self) -> int:
        """How many planes the cores form."""
        return self.spines_per_group if self.cores and self.cores.plane == "number" else 1

    @cached_property
    def spines_per_plane(self) -> int:
        """How many spines lead to one core."""
        return len(self.spines.at) // max(self.plane_count, 1)

    def find_spine_group(self, leaf: int) -> tuple[int, int]:
        """Return a leaf's group of spines, and its number among the leaves of that group."""
        unit, rail = divmod(leaf, self.rails)
        pod, place = divmod(unit, self.units_per_pod)
        return (pod * self.rails + rail, place) if self.has_spines_by_rail else (pod, place * self.rails + rail)

    def leaf_spine_bundles(self) -> Iterator[CableBundle]:
        """Yield the cables between leaves and spines."""
        per, up, down, each = self.spines.per_pair, self.leaf_up_ports, self.spine_down_ports, self.spines_per_group
        for leaf in range(len(self.leaves.at)):
            group, place = self.find_spine_group(leaf)
            theirs = down[place * per : (place + 1) * per]
            for number in range(each):
                yield CableBundle(leaf, up[number * per : (number + 1) * per], group * each + number, theirs)

    def spine_core_bundles(self) -> Iterator[CableBundle]:
        """Yield the cables between spines and cores."""
        if self.cores is None:
            return
        per, up, cores = self.cores.per_pair, self.spine_up_ports, len(self.cores.at) // self.plane_count
        for spine in range(len(self.spines.at)):
            plane, place = (
                (spine % self.spines_per_group, spine // self.spines_per_group) if self.plane_count > 1 else (0, spine)
            )
            theirs = range(place * per + 1, (place + 1) * per + 1)
            for number in range(cores):
                yield CableBundle(spine, up[number * per : (number + 1) * per], plane * cores + number, theirs)

    def find_far_end(
        self, tier: TierName, number: int, port: int
    ) -> tuple[TierName | Literal["nodes"], int, int] | None:
        """Return the other end of a switch's cable. An adapter is counted nodes first, then rails; its port is 1."""
        if tier == "leaves" and port in self.leaf_down_ports:
            unit, rail = divmod(number, self.rails)
            node = unit * len(self.leaf_down_ports) + self.leaf_down_ports.index(port)
            return ("nodes", node * self.rails + rail, 1) if node < self.nodes else None
        joints: tuple[tuple[TierName, TierName, Iterator[CableBundle]], ...] = (
            ("leaves", "spines", self.leaf_spine_bundles()),
            ("spines", "cores", self.spine_core_bundles()),
        )
        for lower, upper, bundles in joints:
            for bundle in bundles if tier in (lower, upper) else ():
                if (tier, number) == (lower, bundle.lower) and port in bundle.lower_ports:
                    return upper, bundle.upper, bundle.upper_ports[bundle.lower_ports.index(port)]
                if (tier, number) == (upper, bundle.upper) and port in bundle.upper_ports:
                    return lower, bundle.lower, bundle.lower_ports[bundle.upper_ports.index(port)]
        return None

    def used_ports(self, tier: TierName, number: int) -> set[int]:
        """Return the ports of a switch that are cabled."""
        if tier == "leaves":
            filled = max(0, self.nodes - number // self.rails * len(self.leaf_down_ports))
            return {*self.leaf_down_ports[:filled], *self.leaf_up_ports}
        if tier == "spines":
            leaves = self._leaves_of(number // self.spines_per_group) if self.spines_per_group else 0
            return {*self.spine_down_ports[: leaves * self.spines.per_pair], *self.spine_up_ports}
        return set(range(1, self.spines_per_plane * self.cores.per_pair + 1)) if self.cores else set()

    def _leaves_of(self, group: int) -> int:
        """Return how many leaves a group really has: the last pod need not be full."""
        pod = group // self.rails if self.has_spines_by_rail else group
        units = min(self.units_per_pod, self.unit_count - pod * self.units_per_pod)
        return units * (1 if self.has_spines_by_rail else self.rails)

    def switch_name_fields(self, tier: TierName, number: int) -> dict[str, int]:
        """Return what the name of a switch may use."""
        if tier == "leaves":
            unit, rail = divmod(number, self.rails)
            return {"unit": unit + 1, "rail": rail}
        if tier == "spines":
            group, place = divmod(number, max(self.spines_per_group, 1))
            pod, rail = divmod(group, self.rails) if self.has_spines_by_rail else (group, 0)
            return {"index": number + 1, "pod": pod + 1, "rail": rail, "number": place + 1}
        plane, place = divmod(number, max(len(self.cores.at) // max(self.plane_count, 1), 1)) if self.cores else (0, 0)
        return {"index": number + 1, "plane": plane + 1, "number": place + 1}

    def rail_of_switch(self, tier: TierName, number: int) -> int | None:
        """Return the rail that a switch serves; None for one that serves several."""
        if tier == "leaves":
            return number % self.rails
        return (
            number // max(self.spines_per_group, 1) % self.rails
            if tier == "spines" and self.has_spines_by_rail
            else None
        )
