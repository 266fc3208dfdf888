"""Which nodes are like each other: those of one SKU, firmware bundle and driver, as their spec declares them."""

from __future__ import annotations

from typing import NamedTuple

from assay.model.fleet import Fleet


class NodeKind(NamedTuple):
    """What like nodes share: the node spec, the firmware bundle and the driver that it declares."""

    sku: str
    firmware: str
    driver: str

    def __str__(self) -> str:
        return f"{self.sku}, firmware {self.firmware}, driver {self.driver}"


def list_node_kinds(fleet: Fleet) -> dict[str, NodeKind]:
    """Return the kind of each node that has a spec."""
    kinds = {
        name: NodeKind(name, spec.firmware or "not declared", spec.driver) for name, spec in fleet.node_specs.items()
    }
    return {node.name: kinds[node.spec] for node in fleet.nodes.values() if node.spec in kinds}
