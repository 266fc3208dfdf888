"""On which rail each adapter of a fabric is."""

from __future__ import annotations

from assay.model.fabric.fabric_design import FabricDesign
from assay.model.fleet import Fleet


def map_adapter_rails(fleet: Fleet, design: FabricDesign) -> dict[str, int]:
    """Return the rail of each adapter by its GUID."""
    nodes = (fleet.nodes[name] for name in design.node_names() if name in fleet.nodes)
    return {guid: rail for node in nodes for rail, guid in enumerate(node.hca_guids)}
