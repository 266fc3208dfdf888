"""Which leaf switches lose cables to other switches, and which nodes are below them: what such a loss costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from assay.fabric.comparison.discrepancy import CablingDiscrepancy, LeafUplinks
from assay.fabric.topology.compiled_topology import CompiledTopology
from assay.model.fabric.ports_and_cables import Cable, rate_to_gbps


class UplinkFinder:
    """Finds the leaf switches of trunks. A leaf is a switch with adapters of nodes."""

    def __init__(self, topology: CompiledTopology) -> None:
        self.topology = topology
        self.known: dict[str, LeafUplinks | None] = {}

    def add_leaves(self, discrepancy: CablingDiscrepancy) -> CablingDiscrepancy:
        """Return the discrepancy with the leaves whose trunks it concerns."""
        cables = (*(pair.expected for pair in discrepancy.cables if pair.expected), *discrepancy.cut_off)
        leaves = tuple(self._list_leaves(cables))
        return replace(discrepancy, leaves=leaves) if leaves else discrepancy

    def _list_leaves(self, cables: Iterable[Cable]) -> Iterable[LeafUplinks]:
        trunks = (cable for cable in cables if not any(self._is_adapter(end.guid) for end in cable.ends))
        guids = dict.fromkeys(end.guid for cable in trunks for end in cable.ends)
        return [leaf for guid in guids if (leaf := self._find_leaf(guid))]

    def _is_adapter(self, guid: str) -> bool:
        device = self.topology.devices.get(guid)
        return device is not None and device.kind == "hca"

    def _find_leaf(self, guid: str) -> LeafUplinks | None:
        if guid not in self.known:
            self.known[guid] = self._measure_leaf(guid)
        return self.known[guid]

    def _measure_leaf(self, guid: str) -> LeafUplinks | None:
        """Return the designed uplinks of a switch, None if it has no nodes."""
        gbps, nodes = 0, set[str]()
        for _, far, _, rate in self.topology.rows.get(guid[2:], ()):
            device = self.topology.devices[f"0x{far}"]
            if device.kind != "hca":
                gbps += int(rate_to_gbps(rate))
            elif device.node:
                nodes.add(device.node)
        return LeafUplinks(guid, gbps, tuple(sorted(nodes))) if nodes else None
