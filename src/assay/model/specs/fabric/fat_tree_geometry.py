"""The geometry of a fat tree: which ports the rules of a design join, as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from assay.model.specs.fabric.design_parts import parse_port_range
from assay.model.specs.fabric.switches import CoreTier, LeafTier, SpineTier, TierName, fill_pattern


class CableBundle(NamedTuple):
    """The cables between two switches. Each has its number in its tier; the n-th ports of both sides are joined."""

    lower: int
    lower_ports: Sequence[int]
    upper: int
    upper_ports: Sequence[int]


@dataclass(frozen=True)
class FatTreeWiring:
    """The rules of one fabric with places for `nodes` nodes. Leaves are numbered by unit, and within a unit by rail.

    `gaps` are the numbers of places without a node; their leaf ports stay free.
    """

    nodes: int
    rails: int
    leaves: LeafTier
    spines: SpineTier
    cores: CoreTier | None = None
    gaps: frozenset[int] = frozenset()

    @cached_property
    def leaf_down_ports(self) -> Sequence[int]:
        """The leaf ports for nodes."""
        return parse_port_range(self.leaves.down)

    @cached_property
    def leaf_up_ports(self) -> Sequence[int]:
        """The leaf ports for spines."""
        return parse_port_range(self.leaves.up)

    def find_leaf_ports(self, leaf: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return the ports of a leaf for nodes, and those for spines."""
        own = self.leaves.at[leaf]
        down = parse_port_range(own.down) if own.down else self.leaf_down_ports
        return down, parse_port_range(own.up) if own.up else self.leaf_up_ports

    @cached_property
    def unit_count(self) -> int:
        """The number of scalable units that the nodes fill."""
        return -(-self.nodes // len(self.leaf_down_ports))

    @cached_property
    def unit_places(self) -> list[int]:
        """The place of each unit that the nodes fill, counted from 0: the units that are not built keep theirs."""
        return [self.find_unit_place(unit) for unit in range(self.unit_count)]

    def find_unit_place(self, unit: int) -> int:
        """Return the place of the unit with this number among those that are built; both count from 0."""
        place = unit
        for number in sorted(set(self.leaves.absent_units)):
            place += number - 1 <= place
        return place

    @cached_property
    def unit_place_count(self) -> int:
        """The number of places for units, up to the last one that is built."""
        return self.unit_places[-1] + 1 if self.unit_places else 0

    @cached_property
    def units_per_pod(self) -> int:
        """The number of units that share a group of spines."""
        return self.spines.pod or max(self.unit_place_count, 1)

    @cached_property
    def spine_group_count(self) -> int:
        """The number of spine groups."""
        pods = -(-self.unit_place_count // self.units_per_pod) or 1
        return pods * (self.rails if self.has_spines_by_rail else 1)

    @cached_property
    def has_spines_by_rail(self) -> bool:
        """Whether each rail has its own spines."""
        return self.spines.group == "rail"

    @cached_property
    def leaves_per_group(self) -> int:
        """The number of leaves in a full group."""
        return min(self.units_per_pod, self.unit_place_count) * (1 if self.has_spines_by_rail else self.rails)

    @cached_property
    def spines_per_group(self) -> int:
        """The number of spines in a group."""
        return len(self.spines.at) // self.spine_group_count

    @cached_property
    def spine_down_ports(self) -> Sequence[int]:
        """The spine ports for leaves."""
        return (
            parse_port_range(self.spines.down)
            if self.spines.down
            else range(1, self.leaves_per_group * self.spines.per_pair + 1)
        )

    @cached_property
    def spine_up_ports(self) -> Sequence[int]:
        """The spine ports for cores."""
        return parse_port_range(self.spines.up) if self.spines.up else range(0)

    @cached_property
    def plane_count(self) -> int:
        """The number of core planes."""
        return self.spines_per_group if self.cores and self.cores.plane == "number" else 1

    @cached_property
    def spines_per_plane(self) -> int:
        """The number of spines that one core connects."""
        return len(self.spines.at) // max(self.plane_count, 1)

    def find_spine_group(self, leaf: int) -> tuple[int, int]:
        """Return the spine group of a leaf, and the leaf's number in that group."""
        unit, rail = divmod(leaf, self.rails)
        pod, place = divmod(self.find_unit_place(unit), self.units_per_pod)
        return (pod * self.rails + rail, place) if self.has_spines_by_rail else (pod, place * self.rails + rail)

    def leaf_spine_bundles(self) -> Iterator[CableBundle]:
        """Yield the cables between leaves and spines."""
        per, down, each = self.spines.per_pair, self.spine_down_ports, self.spines_per_group
        for leaf in range(len(self.leaves.at)):
            up = self.find_leaf_ports(leaf)[1]
            group, place = self.find_spine_group(leaf)
            theirs = down[place * per : (place + 1) * per]
            for number in range(each):
                ours = up[number::each] if self.spines.trunk == "spread" else up[number * per : (number + 1) * per]
                yield CableBundle(leaf, ours[:per], group * each + number, theirs)

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
        """Return tier, number and port at the other end of a switch's cable, None for a port without cable.

        Adapter numbers go through the rails of the first place, then the second, and so on, gaps included. An adapter's
        port is 1.
        """
        own = self.find_leaf_ports(number)[0] if tier == "leaves" else []
        if port in own:
            unit, rail = divmod(number, self.rails)
            node = unit * len(self.leaf_down_ports) + own.index(port)
            return ("nodes", node * self.rails + rail, 1) if node < self.nodes and node not in self.gaps else None
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
        """Return the cabled ports of a switch."""
        if tier == "leaves":
            first = number // self.rails * len(self.leaf_down_ports)
            places = range(first, min(self.nodes, first + len(self.leaf_down_ports)))
            down, up = self.find_leaf_ports(number)
            return {*(down[place - first] for place in places if place not in self.gaps), *up}
        if tier == "spines":
            return {*self._used_spine_down_ports(number), *self.spine_up_ports}
        return set(range(1, self.spines_per_plane * self.cores.per_pair + 1)) if self.cores else set()

    def _used_spine_down_ports(self, spine: int) -> Iterator[int]:
        """Yield the ports to leaves that are built; a pod may be partly filled."""
        group, per = spine // max(self.spines_per_group, 1), self.spines.per_pair
        pod = group // self.rails if self.has_spines_by_rail else group
        leaves = 1 if self.has_spines_by_rail else self.rails
        for place in (place for place in self.unit_places if place // self.units_per_pod == pod):
            first = place % self.units_per_pod * leaves * per
            yield from self.spine_down_ports[first : first + leaves * per]

    def switch_name_fields(self, tier: TierName, number: int) -> dict[str, int]:
        """Return the values of the placeholders in the name of a switch."""
        if tier == "leaves":
            unit, rail = divmod(number, self.rails)
            place = self.find_unit_place(unit)
            return {"unit": place + 1, "rail": rail, "index": place * self.rails + rail + 1}
        if tier == "spines":
            group, place = divmod(number, max(self.spines_per_group, 1))
            pod, rail = divmod(group, self.rails) if self.has_spines_by_rail else (group, 0)
            return {"index": number + 1, "pod": pod + 1, "rail": rail, "number": place + 1}
        plane, place = divmod(number, max(len(self.cores.at) // max(self.plane_count, 1), 1)) if self.cores else (0, 0)
        return {"index": number + 1, "plane": plane + 1, "number": place + 1}

    def name_switch(self, pattern: str, tier: TierName, number: int) -> str:
        """Return the name that a tier's pattern gives a switch."""
        return fill_pattern(pattern, self.switch_name_fields(tier, number))

    def rail_of_switch(self, tier: TierName, number: int) -> int | None:
        """Return the rail that a switch serves, None if it serves several."""
        if tier == "leaves":
            return number % self.rails
        return (
            number // max(self.spines_per_group, 1) % self.rails
            if tier == "spines" and self.has_spines_by_rail
            else None
        )
