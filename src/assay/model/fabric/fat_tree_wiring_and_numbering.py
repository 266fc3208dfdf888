"""The geometry of a fat tree: which ports the rules of a design join, as numbers, and where the rules do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from assay.model.errors import FieldConflict
from assay.model.fabric.design_cables_and_partitions import parse_port_range
from assay.model.fabric.switch_settings import CoreTier, LeafTier, SpineTier, SwitchModel, TierName


class CableBundle(NamedTuple):
    """The cables between two switches. Each has its number in its tier; the n-th ports of both sides are joined."""

    lower: int
    lower_ports: range
    upper: int
    upper_ports: range


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
    def leaf_down_ports(self) -> range:
        """The leaf ports for nodes."""
        return parse_port_range(self.leaves.down)

    @cached_property
    def leaf_up_ports(self) -> range:
        """The leaf ports for spines."""
        return parse_port_range(self.leaves.up)

    @cached_property
    def unit_count(self) -> int:
        """The number of scalable units that the nodes fill."""
        return -(-self.nodes // len(self.leaf_down_ports))

    @cached_property
    def units_per_pod(self) -> int:
        """The number of units that share a group of spines."""
        return self.spines.pod or max(self.unit_count, 1)

    @cached_property
    def spine_group_count(self) -> int:
        """The number of spine groups."""
        pods = -(-self.unit_count // self.units_per_pod) or 1
        return pods * (self.rails if self.has_spines_by_rail else 1)

    @cached_property
    def has_spines_by_rail(self) -> bool:
        """Whether each rail has its own spines."""
        return self.spines.group == "rail"

    @cached_property
    def leaves_per_group(self) -> int:
        """The number of leaves in a full group."""
        return min(self.units_per_pod, self.unit_count) * (1 if self.has_spines_by_rail else self.rails)

    @cached_property
    def spines_per_group(self) -> int:
        """The number of spines in a group."""
        return len(self.spines.at) // self.spine_group_count

    @cached_property
    def spine_down_ports(self) -> range:
        """The spine ports for leaves."""
        return (
            parse_port_range(self.spines.down)
            if self.spines.down
            else range(1, self.leaves_per_group * self.spines.per_pair + 1)
        )

    @cached_property
    def spine_up_ports(self) -> range:
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
        """Return tier, number and port at the other end of a switch's cable, None for a port without cable.

        Adapter numbers go through the rails of the first place, then the second, and so on, gaps included. An adapter's
        port is 1.
        """
        if tier == "leaves" and port in self.leaf_down_ports:
            unit, rail = divmod(number, self.rails)
            node = unit * len(self.leaf_down_ports) + self.leaf_down_ports.index(port)
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
            filled = {self.leaf_down_ports[place - first] for place in places if place not in self.gaps}
            return {*filled, *self.leaf_up_ports}
        if tier == "spines":
            leaves = self._leaves_of(number // self.spines_per_group) if self.spines_per_group else 0
            return {*self.spine_down_ports[: leaves * self.spines.per_pair], *self.spine_up_ports}
        return set(range(1, self.spines_per_plane * self.cores.per_pair + 1)) if self.cores else set()

    def _leaves_of(self, group: int) -> int:
        """Return the number of leaves in a group; the last pod may be partly filled."""
        pod = group // self.rails if self.has_spines_by_rail else group
        units = min(self.units_per_pod, self.unit_count - pod * self.units_per_pod)
        return units * (1 if self.has_spines_by_rail else self.rails)

    def switch_name_fields(self, tier: TierName, number: int) -> dict[str, int]:
        """Return the values of the placeholders in the name of a switch."""
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
        """Return the rail that a switch serves, None if it serves several."""
        if tier == "leaves":
            return number % self.rails
        return (
            number // max(self.spines_per_group, 1) % self.rails
            if tier == "spines" and self.has_spines_by_rail
            else None
        )


def find_wiring_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> list[FieldConflict]:
    """Return where the rules need a port or switch that is not there, or one port twice."""
    return [*_leaf_conflicts(wiring, model), *_spine_conflicts(wiring, model), *_core_conflicts(wiring, model)]


def _leaf_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> Iterator[FieldConflict]:
    down, up = wiring.leaf_down_ports, wiring.leaf_up_ports
    if max(down[0], up[0]) <= min(down[-1], up[-1]):
        message = "leaves: the ports of `down` and `up` overlap: some would take a node's cable and a spine's"
        yield FieldConflict("ASY0080", ("leaves", "up"), message, f"begin `up` after port {down[-1]}")
    for tier, ports in (("down", down), ("up", up)):
        if ports[-1] > model.port_count:
            message = f"leaves: a {model.product} has {model.port_count} ports, `{tier}` ends at {ports[-1]}"
            yield FieldConflict("ASY0081", ("leaves", tier), message, f"end it at port {model.port_count} or before")
    yield from _leaf_count_conflicts(wiring)


def _leaf_count_conflicts(wiring: FatTreeWiring) -> Iterator[FieldConflict]:
    given, needed = len(wiring.leaves.at), wiring.unit_count * wiring.rails
    if given != needed:
        nodes = f"{wiring.nodes} nodes at {len(wiring.leaf_down_ports)} a leaf"
        message = f"{wiring.unit_count} units × {wiring.rails} rails need {needed} leaves, not {given} ({nodes})"
        code, fix = ("ASY0081", "add the leaves of another unit") if given < needed else ("ASY0084", "leave them out")
        yield FieldConflict(code, ("leaves", "at"), message, f"{fix}, or correct `nodes`, `rails` or `down`")


def _spine_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> Iterator[FieldConflict]:
    groups, per, up, spines = (
        wiring.spine_group_count,
        wiring.spines.per_pair,
        len(wiring.leaf_up_ports),
        len(wiring.spines.at),
    )
    if spines % groups:
        message = f"{spines} spines do not make {groups} equal groups"
        yield FieldConflict(
            "ASY0084", ("spines", "at"), message, "let every group have as many spines, or correct `pod`"
        )
        return
    if wiring.spines_per_group * per != up:
        message = f"{wiring.spines_per_group} spines × {per} cables do not use the leaves' {up} up ports"
        code = "ASY0081" if wiring.spines_per_group * per > up else "ASY0084"
        yield FieldConflict(code, ("spines", "per_pair"), message, "let spines × per_pair be the number of `up` ports")
    needed, down = wiring.leaves_per_group * per, wiring.spine_down_ports
    if needed > model.port_count:
        needs = f"{wiring.leaves_per_group} leaves × {per} cables"
        message = f"spines: {needs} exceed {model.port_count} ports of a {model.product}"
        yield FieldConflict("ASY0081", ("spines", "per_pair"), message, "take more spines with fewer cables a pair")
    elif needed > len(down):
        message = f"spines: {wiring.leaves_per_group} leaves × {per} cables exceed the {len(down)} ports of `down`"
        yield FieldConflict(
            "ASY0081", ("spines", "down"), message, "widen `down`, or take more spines with fewer cables a pair"
        )
    for name, ports in (("down", down if wiring.spines.down else range(0)), ("up", wiring.spine_up_ports)):
        if ports and ports[-1] > model.port_count:
            message = f"spines: a {model.product} has {model.port_count} ports, `{name}` ends at {ports[-1]}"
            yield FieldConflict("ASY0081", ("spines", name), message, f"end it at port {model.port_count} or before")


def _core_conflicts(wiring: FatTreeWiring, model: SwitchModel) -> Iterator[FieldConflict]:
    cores, up, down = wiring.cores, wiring.spine_up_ports, wiring.spine_down_ports
    if cores is None:
        if up:
            message = "spines have `up` ports and there are no cores"
            yield FieldConflict("ASY0084", ("spines", "up"), message, "leave `up` out, or add `cores`")
        return
    if not up:
        yield FieldConflict("ASY0084", ("spines", "up"), "cores need the spines' `up` ports", "write `up` as 33..64")
        return
    if down and max(down[0], up[0]) <= min(down[-1], up[-1]):
        message = "spines: the ports of `down` and `up` overlap: some would take a leaf's cable and a core's"
        yield FieldConflict("ASY0080", ("spines", "up"), message, f"begin `up` after port {down[-1]}")
    if len(wiring.spines.at) % wiring.spine_group_count:
        return
    yield from _plane_conflicts(wiring, len(cores.at), cores.per_pair, model)


def _plane_conflicts(wiring: FatTreeWiring, cores: int, per: int, model: SwitchModel) -> Iterator[FieldConflict]:
    up = len(wiring.spine_up_ports)
    if not wiring.plane_count or cores % wiring.plane_count:
        message = f"{cores} cores do not make {wiring.plane_count} equal planes, one for each spine of a group"
        yield FieldConflict("ASY0084", ("cores", "at"), message, "let every plane have as many cores")
        return
    if cores // wiring.plane_count * per != up:
        message = f"{cores // wiring.plane_count} cores a plane × {per} cables do not use the spines' {up} up ports"
        code = "ASY0081" if cores // wiring.plane_count * per > up else "ASY0084"
        yield FieldConflict(
            code, ("cores", "per_pair"), message, "let a plane's cores × per_pair be the number of `up` ports"
        )
    if wiring.spines_per_plane * per > model.port_count:
        needs = f"{wiring.spines_per_plane} spines × {per} cables"
        message = f"cores: {needs} exceed {model.port_count} ports of a {model.product}"
        yield FieldConflict("ASY0081", ("cores", "per_pair"), message, "take more cores with fewer cables a pair")
