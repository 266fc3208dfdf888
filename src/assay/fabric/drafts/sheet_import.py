"""Drafts a design from a point-to-point sheet: names become the inventory's nodes, and switches whose GUID is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from assay.fabric.discovery import FabricDiscovery
from assay.fabric.drafts.design_draft import DesignDraft, DraftCable, DraftDevice, find_most_frequent
from assay.fabric.drafts.point_to_point_sheet import (
    PointToPointSheet,
    PortLabelScheme,
    SheetCable,
    SheetEnd,
    SheetPortLabel,
    parse_port_label,
)
from assay.fabric.topology.adapters import list_adapter_names
from assay.model.fabric.ports_and_cables import DeviceKind
from assay.model.fleet import Fleet
from assay.model.node import Node

PORT_COUNTS = (36, 40, 64, 128, 144)
RATE = "4xNDR"


class SheetPlug(NamedTuple):
    """One end, understood: the device's name in the design, and its port."""

    device: str
    port: int


@dataclass
class SheetImport:
    """A sheet on its way into a design. `mapping` gives the adapter's name for a port that a sheet writes of a node."""

    sheet: PointToPointSheet
    fleet: Fleet
    discovery: FabricDiscovery | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)

    def draft(self, name: str) -> DesignDraft:
        """Return the draft. What cannot be understood is added to the sheet's problems."""
        cables = list(self._cables())
        rate = find_most_frequent(cable.rate for cable in self.sheet.cables if cable.rate)
        review = [] if rate or self._seen_rate else [f"the sheet tells no speed; {RATE} is a guess"]
        rate = rate or self._seen_rate or RATE
        draft = DesignDraft(name, f"Cabling of a point-to-point sheet: {len(cables)} cables", rate)
        draft.review = [*review, *self._guessed()]
        draft.devices = [self._device(name) for name in self._devices if not self._of_inventory(name)]
        draft.switch = self._switch()
        for row, a, b in cables:
            other = row.rate if row.rate and row.rate != rate else ""
            draft.cables.append(DraftCable(f"{a.device}/{a.port}", f"{b.device}/{b.port}", other, row.length_m))
        return draft

    def _cables(self) -> Iterator[tuple[SheetCable, SheetPlug, SheetPlug]]:
        """Yield the cables of which both ends are understood, and no port is taken already."""
        used: dict[SheetPlug, int] = {}
        for row in self.sheet.cables:
            try:
                plugs = [self._plug(end) for end in row.ends]
                for plug in plugs:
                    if plug in used or plugs[0] == plugs[1]:
                        where = f"line {used[plug]}" if plug in used else "its own other end"
                        raise ValueError(f"port {plug.port} of {plug.device} is cabled by {where} already")
            except ValueError as wrong:
                self.sheet.problems.append((row.line, str(wrong)))
                continue
            for plug, end in zip(plugs, row.ends, strict=True):
                used[plug] = row.line
                self._remember(plug, end)
            yield row, plugs[0], plugs[1]

    def _plug(self, end: SheetEnd) -> SheetPlug:
        """Return what an end means. Raises ValueError."""
        node = self._nodes.get(end.name.casefold())
        mapped = self.mapping.get(end.port) if node or not self._is_switch(end.name) else None
        words = parse_port_label(mapped or end.port)
        if words.adapter:
            return SheetPlug(f"{node.name if node else end.name} {words.adapter}", *words.numbers)
        if node:
            return SheetPlug(self._by_place(node, words), 1)
        name = f"{end.name}/{words.part}" if words.part else end.name
        return SheetPlug(name, words.numbers[0] if words.part else self._numbers.find_port_number(words.numbers))

    def _by_place(self, node: Node, words: SheetPortLabel) -> str:
        """Return the adapter at a port that is only counted: 1 is rail 0; 2/1 is the first port of the second cage."""
        place = (
            (words.numbers[0] - 1)
            if len(words.numbers) == 1
            else PortLabelScheme(cages=True).find_port_number(words.numbers[:2]) - 1
        )
        names = self._adapters[node.name]
        if not 0 <= place < len(names):
            raise ValueError(
                f"{node.name} has {len(names)} adapters, and none at port {'/'.join(map(str, words.numbers))}"
            )
        self._by_number.add(node.name)
        return names[place]

    def _is_switch(self, name: str) -> bool:
        return name.casefold() in self._known and self._known[name.casefold()][1] == "switch"

    @cached_property
    def _numbers(self) -> PortLabelScheme:
        """How the sheet labels ports of switches."""
        labels = []
        for end in (end for row in self.sheet.cables for end in row.ends if end.name.casefold() not in self._nodes):
            try:
                words = parse_port_label(end.port)
            except ValueError:
                continue
            if not words.adapter and not words.part:
                labels.append(words.numbers)
        return PortLabelScheme.infer(labels)

    @cached_property
    def _by_number(self) -> set[str]:
        return set()

    @cached_property
    def _devices(self) -> dict[str, tuple[SheetEnd, int]]:
        """Every device of the sheet by its name: where it was named, and its highest port."""
        return {}

    def _remember(self, plug: SheetPlug, end: SheetEnd) -> None:
        first, most = self._devices.get(plug.device, (end, 0))
        better = end if (end.rack or end.guid) and not (first.rack or first.guid) else first
        self._devices[plug.device] = (better, max(most, plug.port))

    @cached_property
    def _nodes(self) -> Mapping[str, Node]:
        return {name.casefold(): node for name, node in self.fleet.nodes.items()}

    @cached_property
    def _adapters(self) -> Mapping[str, list[str]]:
        return {name: list_adapter_names(node, self.fleet) for name, node in self.fleet.nodes.items()}

    def _of_inventory(self, device: str) -> bool:
        """Whether the inventory gives the GUID of a node's adapter."""
        return device in self._adapters.get(device.partition(" ")[0], ())

    @cached_property
    def _known(self) -> Mapping[str, tuple[str, DeviceKind, int]]:
        """GUID, kind and number of ports by name: of the designs that there are, and of what was discovered."""
        known: dict[str, tuple[str, DeviceKind, int]] = {}
        for design in self.fleet.designs.values():
            most = design.switch.port_count if design.switch else 0
            known |= {name.casefold(): (switch.guid, "switch", most) for name, _, _, switch in design.switches()}
        seen: dict[str, list[tuple[str, DeviceKind, int]]] = {}
        for one in self.discovery.devices.values() if self.discovery else ():
            seen.setdefault(one.name.casefold(), []).append((one.guid, one.kind, one.ports))
        return known | {name: every[0] for name, every in seen.items() if len(every) == 1}

    def _device(self, name: str) -> DraftDevice:
        end, most = self._devices[name]
        guid, kind, ports = self._known.get(name.casefold(), ("", "switch", 0))
        if " mlx5_" in name:
            kind = "hca"
        count = 0 if self._modelled(kind) else max(ports, most)
        return DraftDevice(end.guid or guid, name, kind, count if kind != "hca" or count > 1 else 0, end.rack, end.u)

    def _modelled(self, kind: DeviceKind) -> bool:
        return kind == "switch" and self._numbers.cages

    def _switch(self) -> str:
        if not self._numbers.cages:
            return ""
        switches = {name: most for name, (_, most) in self._devices.items() if " mlx5_" not in name}
        known = [self._known[name.casefold()][2] for name in switches if name.casefold() in self._known]
        whole = -(-max([*switches.values(), *known], default=1) // self._numbers.split)
        ports = next((count for count in PORT_COUNTS if count >= whole), whole)
        split = f", split: {self._numbers.split}" if self._numbers.split > 1 else ""
        return (
            f"{{product: switch, ports: {ports}, labels: cage/port{split}}} # review: name the product, check the ports"
        )

    @cached_property
    def _seen_rate(self) -> str:
        return find_most_frequent(cable.rate for cable in self.discovery.cables) if self.discovery else ""

    def _guessed(self) -> Iterator[str]:
        if self._by_number:
            yield f"ports of nodes are numbers ({min(self._by_number)}): 1 was taken for rail 0; see --adapters"
        if self._numbers.asic:
            yield "labels of three numbers were taken for ASIC, cage and port"
        elif self._numbers.split > 1:
            yield "labels of three numbers were taken for cage, port and part of a split port"
