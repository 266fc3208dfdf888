"""One device of a design: its name, its place, its ports, and the box that it is a chip of.

The adapters (HCAs) of a node come from the inventory: one per rail, named as the node's spec names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.adapters import count_adapter_ports
from assay.model.specs.fabric.cable import CableEnd, DeviceKind, PortLabelling
from assay.model.specs.fabric.fabric_design import FabricDesign


class DesignedDevice(NamedTuple):
    """One designed device: its name, its place, and how its ports are labelled. `node` is the node of an adapter.

    `box` is the chassis that a chip is in, "" for a device that is a box of its own; `module` its card there. `plane`
    is the plane that it carries, 0 without planes: the chips of the box then share each plug.
    """

    guid: str
    name: str
    kind: DeviceKind
    ports: int
    rack: str
    u: int
    site: str = ""
    node: str = ""
    product: str = ""
    labels: PortLabelling | None = None
    hca_label: str = ""
    box: str = ""
    module: str = ""
    plane: int = 0

    def label(self, port: int) -> str:
        """Return the label that is printed at a port."""
        return self.labels.label(port) if self.labels else self.hca_label

    def end(self, port: int) -> CableEnd:
        """Return one of the device's ports, with the place where a technician finds it."""
        place = (self.rack, self.u, self.site, self.node, self.box, self.plane)
        return CableEnd(self.name, self.guid, port, self.label(port), *place)

    def ports_sharing_plug(self, port: int) -> range:
        """Return the ports whose links go down when the plug of this one is pulled."""
        return self.labels.ports_sharing_cage(port) if self.labels else range(port, port + 1)

    @property
    def description(self) -> str:
        """The NodeDesc that the device announces by default."""
        return f"MF0;{self.name}:{self.product}/U1" if self.product else self.name


def list_adapters(design: FabricDesign, node: Node, fleet: Fleet) -> list[DesignedDevice]:
    """Return a node's adapters in rail order, named as its spec names them."""
    names = list_adapter_names(node, fleet, design.adapter_names)
    ports = count_adapter_ports(design.rail_ports, design.planes)
    return [
        DesignedDevice(
            guid,
            name,
            "hca",
            ports,
            node.rack,
            node.u,
            node.site or design.site,
            node.name,
            hca_label="" if design.adapter_ports else design.label_rail(number),
        )
        for number, (guid, name) in enumerate(zip(node.hca_guids, names, strict=True))
    ]


def list_adapter_names(node: Node, fleet: Fleet, without_spec: Sequence[str] = ()) -> list[str]:
    """Return the names of a node's adapters in rail order, such as `n0001 mlx5_0`.

    `without_spec` are the names of a node that has no spec.
    """
    spec = fleet.node_specs.get(node.spec)
    names = {hca.rail: hca.name for hca in spec.hcas} if spec else dict(enumerate(without_spec))
    return [f"{node.name} {names.get(rail, f'mlx5_{rail}')}" for rail in range(len(node.hca_guids))]


def map_adapter_rails(fleet: Fleet, design: FabricDesign) -> dict[str, int]:
    """Return the rail of each adapter of the design's nodes, by the adapter's GUID: the first rail of several."""
    nodes = (fleet.nodes[name] for name in design.node_names() if name in fleet.nodes)
    rail_of = {adapter: rail for rail, (adapter, _) in reversed([*enumerate(design.rail_ports)])}
    return {guid: rail_of.get(number, number) for node in nodes for number, guid in enumerate(node.hca_guids)}
