"""Reads a node's setup: place, spec and delivery as declared, models and versions as its evidence has them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from assay.decide.state.node_setup import NodeSetup
from assay.model.faults.sightings import map_parts_by_pci
from assay.observe.serial_numbers import find_part_serials

if TYPE_CHECKING:
    from assay.model.evidence import EvidenceDocument
    from assay.model.fleet import Fleet

COMPONENT_READINGS = {
    "driver": ("probe", "gpu", "driver"),
    "bios": ("bmc", "system", "bios_version"),
    "bmc": ("bmc", "manager", "version"),
    "kernel": ("probe", "host", "kernel"),
}
"""Where the evidence has the version of each component of a node."""


class SetupReader:
    """Reads the setups of the nodes of a fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def read(self, name: str, evidence: EvidenceDocument) -> NodeSetup:
        """Return the setup of a node. What the evidence does not say is missing."""
        node = self._fleet.nodes[name]
        said = {component: evidence.read(*path) for component, path in COMPONENT_READINGS.items()}
        versions = {component: str(one.value) for component, one in said.items() if one.kind == "value"}
        parts = find_part_serials(evidence, map_parts_by_pci(self._fleet.spec_of(node.name)))
        versions |= {part.place: part.firmware for part in parts if part.firmware}
        models = {part.place: part.model for part in parts if part.model}
        batch = self._deliveries.get(node.serial, "")
        return NodeSetup("/".join(node.rack_place), node.u, node.spec, batch, versions, models)

    @cached_property
    def _deliveries(self) -> dict[str, str]:
        """The name of the delivery of each machine, by its serial number."""
        deliveries = self._fleet.deliveries.values()
        return {machine.serial_number: one.name for one in deliveries for machine in one.machines}
