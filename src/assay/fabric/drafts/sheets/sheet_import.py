"""Drafts a design from a point-to-point sheet. Names become nodes of the inventory, and switches with known GUIDs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from assay.fabric.discovery import FabricDiscovery
from assay.fabric.drafts.design_draft import DesignDraft, DraftCable, DraftDevice
from assay.fabric.drafts.majority_votes import find_most_frequent
from assay.fabric.drafts.sheets.point_to_point_sheet import (
    PointToPointSheet,
    SheetCable,
    SheetEnd,
)
from assay.fabric.drafts.sheets.sheet_port_labels import (
    PortLabelScheme,
    SheetPortLabel,
    parse_port_label,
    read_adapter_name,
)
from assay.fabric.topology.adapters import list_adapter_names
from assay.model.fabric.ports_and_cables import DeviceKind
from assay.model.fleet import Fleet
from assay.model.node import Node

PORT_COUNTS = (36, 40, 64, 128, 144)
RATE = "4xNDR"


class SheetPlug(NamedTuple):
    """One end of a cable: the device's name in the design, and its port."""

    device: str
    port: int


@dataclass
class SheetImport:
    """Makes a design of a sheet. `mapping` has the adapter's name for each port text of a node in the sheet.

    `discovery` adds the GUIDs, port counts and rate of devices that announce the sheet's names.
    """

    sheet: PointToPointSheet
    fleet: Fleet
    discovery: FabricDiscovery | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    _nodes_with_numbers: set[str] = field(default_factory=set, init=False)
    _plugged_devices: dict[str, tuple[SheetEnd, int]] = field(default_factory=dict, init=False)
    """Every device of the sheet by its name: the end that describes it best, and its highest port."""
    _adapters: set[str] = field(default_factory=set, init=False)
    """The names of devices that the sheet names as adapters."""

    def draft(self, name: str) -> DesignDraft:
        """Return the draft. Lines that cannot be resolved are added to the sheet's problems."""
        cables = list(self._list_cables())
        rate = find_most_frequent(cable.rate for cable in self.sheet.cables if cable.rate)
        review = [] if rate or self._discovered_rate else [f"the sheet has no speed; {RATE} is a guess"]
        rate = rate or self._discovered_rate or RATE
        draft = DesignDraft(name, f"Cabling of a point-to-point sheet: {len(cables)} cables", rate)
        draft.review = [*self.sheet.remarks, *review, *self._list_guesses()]
        draft.devices = [
            self._draft_device(name) for name in self._plugged_devices if not self._is_inventory_adapter(name)
        ]
        draft.switch = self._draft_switch()
        for row, a, b in cables:
            other_rate = row.rate if row.rate and row.rate != rate else ""
            draft.cables.append(DraftCable(f"{a.device}/{a.port}", f"{b.device}/{b.port}", other_rate, row.length_m))
        return draft

    def _list_cables(self) -> Iterator[tuple[SheetCable, SheetPlug, SheetPlug]]:
        """Yield the cables whose ends can be resolved to ports that no other cable uses."""
        used: dict[SheetPlug, int] = {}
        for row in self.sheet.cables:
            try:
                plugs = [self._resolve_plug(end) for end in row.ends]
                for plug in plugs:
                    if plug in used:
                        raise ValueError(f"port {plug.port} of {plug.device} has a cable already: line {used[plug]}")
                if plugs[0] == plugs[1]:
                    raise ValueError(f"port {plugs[0].port} of {plugs[0].device} is at both ends")
            except ValueError as error:
                self.sheet.problems.append((row.line, str(error)))
                continue
            for plug, end in zip(plugs, row.ends, strict=True):
                used[plug] = row.line
                self._record_device(plug, end)
            yield row, plugs[0], plugs[1]

    def _resolve_plug(self, end: SheetEnd) -> SheetPlug:
        """Return the device and port of an end. Raises ValueError if it has none."""
        node = self._nodes_by_name.get(end.name.casefold())
        mapped = self.mapping.get(end.port) if node or not self._is_switch(end.name) else None
        label = parse_port_label(mapped or end.port)
        if label.adapter:
            self._check_adapter(node, label.adapter)
            name = f"{node.name if node else end.name} {label.adapter}"
            name = name if node else self._announced_adapters.get(name.casefold(), name)
            self._adapters.add(name)
            return SheetPlug(name, *label.numbers)
        if node:
            return SheetPlug(self._find_adapter_by_number(node, label), 1)
        name = f"{end.name}/{label.part}" if label.part else end.name
        return SheetPlug(name, label.numbers[0] if label.part else self._label_scheme.find_port_number(label.numbers))

    def _check_adapter(self, node: Node | None, adapter: str) -> None:
        """Raise ValueError if a node of the inventory has no adapter of this name, such as a network device."""
        if node and f"{node.name} {adapter}" not in self._adapters_by_node[node.name]:
            known = ", ".join(name.partition(" ")[2] for name in self._adapters_by_node[node.name])
            raise ValueError(
                f"{node.name} has no adapter {adapter}, only {known}: map it with --adapters ({adapter},…)"
            )

    def _find_adapter_by_number(self, node: Node, label: SheetPortLabel) -> str:
        """Return the adapter at a numbered port of a node: 1 is rail 0; 2/1 is the first port of the second cage."""
        if len(label.numbers) == 1:
            rail = label.numbers[0] - 1
        else:
            rail = PortLabelScheme(cages=True).find_port_number(label.numbers[:2]) - 1
        names = self._adapters_by_node[node.name]
        if not 0 <= rail < len(names):
            raise ValueError(
                f"{node.name} has {len(names)} adapters, and none at port {'/'.join(map(str, label.numbers))}"
            )
        self._nodes_with_numbers.add(node.name)
        return names[rail]

    def _is_switch(self, name: str) -> bool:
        return name.casefold() in self._known_devices and self._known_devices[name.casefold()][1] == "switch"

    @cached_property
    def _label_scheme(self) -> PortLabelScheme:
        """How the sheet labels the ports of switches."""
        labels = []
        ends = (end for row in self.sheet.cables for end in row.ends)
        for end in (end for end in ends if end.name.casefold() not in self._nodes_by_name):
            try:
                label = parse_port_label(end.port)
            except ValueError:
                continue
            if not label.adapter and not label.part:
                labels.append(label.numbers)
        return PortLabelScheme.infer(labels)

    def _record_device(self, plug: SheetPlug, end: SheetEnd) -> None:
        first, highest = self._plugged_devices.get(plug.device, (end, 0))
        better = end if (end.rack or end.guid) and not (first.rack or first.guid) else first
        self._plugged_devices[plug.device] = (better, max(highest, plug.port))

    @cached_property
    def _nodes_by_name(self) -> Mapping[str, Node]:
        return {name.casefold(): node for name, node in self.fleet.nodes.items()}

    @cached_property
    def _adapters_by_node(self) -> Mapping[str, list[str]]:
        return {name: list_adapter_names(node, self.fleet) for name, node in self.fleet.nodes.items()}

    def _is_inventory_adapter(self, device: str) -> bool:
        """Return whether the device is an adapter of the inventory, which has its GUID."""
        return device in self._adapters_by_node.get(device.partition(" ")[0], ())

    @cached_property
    def _known_devices(self) -> Mapping[str, tuple[str, DeviceKind, int]]:
        """GUID, kind and number of ports by name, from the fleet's designs and from the discovery."""
        known: dict[str, tuple[str, DeviceKind, int]] = {}
        for design in self.fleet.designs.values():
            highest = design.switch.port_count if design.switch else 0
            known |= {name.casefold(): (switch.guid, "switch", highest) for name, _, _, switch in design.switches()}
        announced: dict[str, list[tuple[str, DeviceKind, int]]] = {}
        for device in self.discovery.devices.values() if self.discovery else ():
            announced.setdefault(device.name.casefold(), []).append((device.guid, device.kind, device.ports))
        return known | {name: devices[0] for name, devices in announced.items() if len(devices) == 1}

    @cached_property
    def _announced_adapters(self) -> Mapping[str, str]:
        """The names of adapters as they announce them (`dgx001 HCA-1`), by that with the kernel's name (mlx5_0)."""
        found: dict[str, list[str]] = {}
        for device in self.discovery.devices.values() if self.discovery else ():
            host, _, own = device.name.rpartition(" ")
            adapter = read_adapter_name(own) if host and device.kind == "hca" else ""
            if adapter:
                found.setdefault(f"{host} {adapter}".casefold(), []).append(device.name)
        return {name: announced[0] for name, announced in found.items() if len(announced) == 1}

    def _draft_device(self, name: str) -> DraftDevice:
        end, highest = self._plugged_devices[name]
        guid, kind, ports = self._known_devices.get(name.casefold(), ("", "switch", 0))
        if name in self._adapters:
            kind = "hca"
        count = 0 if self._has_switch_model(kind) else max(ports, highest)
        return DraftDevice(end.guid or guid, name, kind, count if kind != "hca" or count > 1 else 0, end.rack, end.u)

    def _has_switch_model(self, kind: DeviceKind) -> bool:
        return kind == "switch" and self._label_scheme.cages

    def _draft_switch(self) -> str:
        if not self._label_scheme.cages:
            return ""
        switches = {name: highest for name, (_, highest) in self._plugged_devices.items() if name not in self._adapters}
        known = [self._known_devices[name.casefold()][2] for name in switches if name.casefold() in self._known_devices]
        whole = -(-max([*switches.values(), *known], default=1) // self._label_scheme.split)
        ports = next((count for count in PORT_COUNTS if count >= whole), whole)
        split = f", split: {self._label_scheme.split}" if self._label_scheme.split > 1 else ""
        return (
            f"{{product: switch, ports: {ports}, labels: cage/port{split}}} # review: name the product, check the ports"
        )

    @cached_property
    def _discovered_rate(self) -> str:
        return find_most_frequent(cable.rate for cable in self.discovery.cables) if self.discovery else ""

    def _list_guesses(self) -> Iterator[str]:
        if self._nodes_with_numbers:
            node = min(self._nodes_with_numbers)
            yield f"ports of nodes are numbers ({node}): 1 is read as rail 0; use --adapters to say otherwise"
        if self._label_scheme.asic:
            yield "labels of three numbers are read as ASIC, cage and port"
        elif self._label_scheme.split > 1:
            yield "labels of three numbers are read as cage, port and part of a split port"
