"""What a picture of a part of a fabric shows: which devices and cables, and what of them is not as designed. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from assay.fabric.compare.discrepancy import CablingDiscrepancy
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.devices import DesignedDevice
from assay.fabric.design.element_names import find_element
from assay.fabric.design.tiers import find_device_tiers
from assay.model.specs.fabric.cable import Cable, CableEnd

Vertex = str
"""A node or a box with planes, by its name, or another device, by its GUID."""
MAX_PER_TIER = 12
"""More boxes side by side cannot be read; of the others the picture says how many there are."""


class Bundle(NamedTuple):
    """All cables between two vertices: how many are designed, and of these not in place; how many are seen instead."""

    designed: int
    wrong: int
    instead: int


@dataclass(frozen=True)
class FabricPicture:
    """What is drawn: a design, what differs from it, and around which element; "" is around all that differs.

    `remarks` stand below the picture: what could not be read, so that it is not seen here.
    """

    topology: CompiledTopology
    discrepancies: Sequence[CablingDiscrepancy] = ()
    around: str = ""
    remarks: Sequence[str] = ()

    @cached_property
    def tiers(self) -> dict[Vertex, int]:
        """The tier of each vertex, 0 for nodes, and for what the design lacks."""
        by_guid = find_device_tiers(self.topology)
        return {self._vertex_of(guid): by_guid.get(guid, 1) for guid in self.topology.devices}

    @cached_property
    def bundles(self) -> dict[tuple[Vertex, Vertex], Bundle]:
        """The cables between each two vertices that any cable joins."""
        designed = Counter(map(self._key, self.topology.cables))
        wrong, instead = Counter[tuple[Vertex, Vertex]](), Counter[tuple[Vertex, Vertex]]()
        for pair in (pair for discrepancy in self.discrepancies for pair in discrepancy.cables):
            if pair.expected:
                wrong[self._key(pair.expected)] += 1
            if pair.observed:
                instead[self._key(pair.observed)] += 1
        keys = designed | wrong | instead
        return {key: Bundle(designed[key], wrong[key], instead[key]) for key in keys}

    @cached_property
    def neighbours(self) -> Mapping[Vertex, set[Vertex]]:
        """The vertices that a cable joins to each vertex, by design or as seen."""
        neighbours: dict[Vertex, set[Vertex]] = defaultdict(set)
        for a, b in self.bundles:
            neighbours[a].add(b)
            neighbours[b].add(a)
        return neighbours

    @cached_property
    def shown(self) -> list[list[Vertex]]:
        """The vertices in the picture, tier by tier from the nodes up. The most concerned come first where many are."""
        centre = self._find_centre()
        near = {far for vertex in centre for far in self.neighbours[vertex]} | centre
        above = {far for vertex in near for far in self.neighbours[vertex] if self._tier(far) > self._tier(vertex)}
        every = near | above if centre else set(self.tiers)
        rows: list[list[Vertex]] = [[] for _ in range(max(map(self._tier, every), default=0) + 1)]
        for vertex in sorted(
            every, key=lambda vertex: (vertex not in centre, vertex not in self._broken, self._order(vertex))
        ):
            rows[self._tier(vertex)].append(vertex)
        return [sorted(row[:MAX_PER_TIER], key=self._order) for row in rows]

    def count_left_out(self, tier: int) -> int:
        """Return how many vertices of a tier are not shown."""
        return sum(own_tier == tier for own_tier in self.tiers.values()) - sum(
            vertex in self.tiers for vertex in self.shown[tier]
        )

    def name(self, vertex: Vertex) -> str:
        """Return the name of a vertex."""
        device = self.topology.devices.get(vertex)
        is_box = vertex in self.topology.chips_of_box
        return device.name if device else vertex if is_box else self._names_of_others.get(vertex, vertex)

    def list_missing_planes(self, vertex: Vertex) -> list[int]:
        """Return the planes whose chips a box lacks."""
        chips = self.topology.chips_of_box.get(vertex, ())
        return [chip.plane for chip in chips if chip.plane and chip.name in self._missing]

    def find_device(self, vertex: Vertex) -> DesignedDevice | None:
        """Return the device of a vertex, the first of a node's or a box's, or None for what the design lacks."""
        own = self._adapters.get(vertex) or [chip.guid for chip in self.topology.chips_of_box.get(vertex, ())]
        return self.topology.devices.get(own[0] if own else vertex)

    def is_broken(self, vertex: Vertex) -> bool:
        """Return whether the whole vertex is missing, or is not in the design."""
        return vertex in self._whole or vertex not in self.tiers

    def rail(self, a: Vertex, b: Vertex) -> int | None:
        """Return the rail of the cables between a node and a switch, None for other cables."""
        nodes = [vertex for vertex in (a, b) if vertex in self._adapters]
        if not nodes:
            return None
        far = b if nodes[0] == a else a
        for rail, guid in enumerate(self._adapters[nodes[0]]):
            if far in {self._vertex_of(f"0x{row[1]}") for row in self.topology.rows[guid[2:]]}:
                return rail
        return None

    def _find_centre(self) -> set[Vertex]:
        if not self.around:
            return set(self._broken)
        element = find_element(self.topology, self.around)
        if element.node:
            return {element.node}
        if element.kind == "box":
            return {self._vertex_of(chip.guid) for chip in element.box}
        assert element.device is not None, "an element that is no node has a device"
        centre = {self._vertex_of(element.device.guid)}
        if element.port and (far := self.topology.peer_ports.get(element.port)):
            centre.add(self._vertex_of(far.guid))
        return centre

    @cached_property
    def _broken(self) -> set[Vertex]:
        return {vertex for key, bundle in self.bundles.items() if bundle.wrong or bundle.instead for vertex in key}

    @cached_property
    def _whole(self) -> set[str]:
        """The vertices that are missing as a whole."""
        boxes = {
            box for box, chips in self.topology.chips_of_box.items() if len(self.list_missing_planes(box)) == len(chips)
        }
        return {vertex for vertex in self.tiers if self.name(vertex) in self._missing} | boxes

    @cached_property
    def _missing(self) -> set[str]:
        return {discrepancy.device for discrepancy in self.discrepancies if discrepancy.kind == "device-missing"}

    @cached_property
    def _adapters(self) -> Mapping[Vertex, list[str]]:
        adapters: dict[Vertex, list[str]] = defaultdict(list)
        for guid, device in self.topology.devices.items():
            if device.node:
                adapters[device.node].append(guid)
        return adapters

    @cached_property
    def _names_of_others(self) -> dict[Vertex, str]:
        cables = (pair.observed for discrepancy in self.discrepancies for pair in discrepancy.cables if pair.observed)
        return {self._vertex(end): end.node or end.device for cable in cables for end in cable.ends}

    @cached_property
    def _positions(self) -> dict[Vertex, int]:
        return {vertex: number for number, vertex in enumerate(self.tiers)}

    def _order(self, vertex: Vertex) -> tuple[int, str]:
        return self._positions.get(vertex, len(self.tiers)), vertex

    def _tier(self, vertex: Vertex) -> int:
        return self.tiers.get(vertex, 0)

    def _vertex_of(self, guid: str) -> Vertex:
        device = self.topology.devices.get(guid)
        return device.node or (device.box if device.plane else guid) if device else guid

    def _vertex(self, end: CableEnd) -> Vertex:
        return self._vertex_of(end.guid)

    def _key(self, cable: Cable) -> tuple[Vertex, Vertex]:
        first, second = sorted((self._vertex(cable.a), self._vertex(cable.b)))
        return first, second
