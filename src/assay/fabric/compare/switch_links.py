"""The switches at lost cables: how many cables each has, which nodes are below it, and which box it is a part of."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from assay.fabric.compare.discrepancy import BoxPart, CablingDiscrepancy, SwitchLinks
from assay.fabric.compare.shared_plugs import LOST_KINDS
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.designed_device import DesignedDevice
from assay.model.specs.fabric.ports_and_cables import rate_to_gbps


class SwitchLinksFinder:
    """Finds the switches at the cables of discrepancies."""

    def __init__(self, topology: CompiledTopology) -> None:
        self.topology = topology
        self.known: dict[str, SwitchLinks | None] = {}

    def add_switches(self, discrepancy: CablingDiscrepancy) -> CablingDiscrepancy:
        """Return the discrepancy with the switches at its designed cables."""
        cables = (*(pair.expected for pair in discrepancy.cables if pair.expected), *discrepancy.cut_off)
        guids = dict.fromkeys(end.guid for cable in cables for end in cable.ends)
        switches = tuple(switch for guid in guids if (switch := self._find(guid)))
        found = replace(discrepancy, switches=switches) if switches else discrepancy
        return self._add_counts(found) if discrepancy.kind in (*LOST_KINDS, "swap") else found

    def _add_counts(self, one: CablingDiscrepancy) -> CablingDiscrepancy:
        """Add how many cables there are beside the first one: between its two switches, or at its node."""
        cable = one.cables[0].expected
        if not cable:
            return one
        if node := cable.a.node or cable.b.node:
            return replace(one, node_cables=self._cables_of_node[node])
        beside = self.topology.rows.get(cable.a.guid[2:], ())
        return replace(one, bundle=sum(row[1] == cable.b.guid[2:] for row in beside))

    @cached_property
    def _cables_of_node(self) -> Mapping[str, int]:
        count = Counter[str]()
        for device in self.topology:
            if device.node:
                count[device.node] += len(self.topology.rows.get(device.guid[2:], ()))
        return count

    def _find(self, guid: str) -> SwitchLinks | None:
        if guid not in self.known:
            device = self.topology.devices.get(guid)
            self.known[guid] = self._measure(device) if device and device.kind != "hca" else None
        return self.known[guid]

    def _measure(self, device: DesignedDevice) -> SwitchLinks:
        gbps, trunks, nodes = 0, 0, set[str]()
        rows = self.topology.rows.get(device.guid[2:], ())
        for _, far, _, rate in rows:
            other = self.topology.devices[f"0x{far}"]
            if other.kind != "hca":
                gbps, trunks = gbps + int(rate_to_gbps(rate)), trunks + 1
            elif other.node:
                nodes.add(other.node)
        parts = tuple(self._list_parts(device)) if device.box else ()
        return SwitchLinks(device.guid, device.name, gbps, tuple(sorted(nodes)), trunks, len(rows), parts)

    def _list_parts(self, device: DesignedDevice) -> Iterator[BoxPart]:
        """Yield what a chip is a part of, if that has other chips: its box, its card, its plane in all boxes."""
        box, card = device.box, f"{device.box} {device.module}"
        for key, name in (("box", box), ("card", card if device.module else ""), ("plane", str(device.plane or ""))):
            chips = self._chips_of[key, name] if name else []
            if len(chips) > 1:
                yield BoxPart(key, name, len(chips), self._count_cables(chips))

    @cached_property
    def _chips_of(self) -> dict[tuple[str, str], list[str]]:
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for chip in (device for device in self.topology.devices.values() if device.box and device.kind != "hca"):
            found["box", chip.box].append(chip.guid)
            found["card", f"{chip.box} {chip.module}"].append(chip.guid)
            found["plane", str(chip.plane)].append(chip.guid)
        return found

    def _count_cables(self, chips: list[str]) -> int:
        """Return the number of cables at these chips. A cable between two of them counts once."""
        far = [f"0x{row[1]}" for guid in chips for row in self.topology.rows.get(guid[2:], ())]
        own = set(chips)
        return len(far) - sum(guid in own for guid in far) // 2
