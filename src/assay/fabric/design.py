"""From a design's rules to every cable that must be there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.model.cable import Cable, DeviceKind, End, Port
from assay.model.design import FabricDesign, Switch, SwitchModel, span
from assay.model.errors import Trouble
from assay.model.fleet import Fleet, Node


@dataclass(frozen=True, slots=True)
class Device:
    """One designed device: what it is called, where it is, and how its ports are labelled."""

    guid: str
    name: str
    kind: DeviceKind
    ports: int
    rack: str
    u: int
    site: str = ""
    node: str = ""
    product: str = ""
    labels: SwitchModel | None = None
    hca_label: str = ""

    def end(self, port: int) -> End:
        """Return one of the device's ports as hands find it."""
        label = self.labels.label(port) if self.labels else self.hca_label
        return End(self.name, self.guid, port, label, self.rack, self.u, self.site, self.node)

    @property
    def description(self) -> str:
        """The NodeDesc that such a device announces by default."""
        return f"MF0;{self.name}:{self.product}/U1" if self.product else self.name


@dataclass(frozen=True)
class Plan:
    """A design compiled for one fleet: its devices by GUID and every cable."""

    design: FabricDesign
    devices: Mapping[str, Device] = field(default_factory=dict)
    cables: tuple[Cable, ...] = ()

    def of_node(self, node: str) -> list[Cable]:
        """Return the cables that one node hangs on, in rail order."""
        return [cable for cable in self.cables if node in (cable.a.node, cable.b.node)]

    def end(self, port: Port) -> End | None:
        """Return a port of a designed device, None for a device that the design does not know."""
        device = self.devices.get(port.guid)
        return device.end(port.number) if device else None


def expected(design: FabricDesign, fleet: Fleet) -> list[Cable]:
    """Return every cable of the design: nodes to leaves first, then leaves to spines. Raises Trouble as `plan`."""
    return list(plan(design, fleet).cables)


def plan(design: FabricDesign, fleet: Fleet) -> Plan:
    """Compile a design.

    Raises Trouble for a node that the inventory lacks, or whose GUIDs are missing or repeated, and for a listed cable
    that leads nowhere, or to a port that has one.
    """
    switches = [(tier, _switch(design, switch, name)) for name, tier, _, switch in design.switches()]
    leaves = [switch for tier, switch in switches if tier == "leaves"]
    spines = [switch for tier, switch in switches if tier == "spines"]
    hcas = [_hcas(design, _node(design, fleet, name), fleet) for name in design.node_names()]
    devices = _by_guid(design, [*leaves, *spines, *(hca for node in hcas for hca in node)])
    cables = (*_node_cables(design, hcas, leaves), *_spine_cables(design, leaves, spines))
    if design.cables:
        from assay.fabric.explicit import Explicit

        explicit = Explicit(design, fleet, devices)
        more = explicit.cables(cables)
        return Plan(design, explicit.devices, (*cables, *more))
    return Plan(design, devices, cables)


def _switch(design: FabricDesign, at: Switch, name: str) -> Device:
    model = design.switch
    return Device(at.guid, name, "switch", model.ports, at.rack, at.u, design.site, product=model.product, labels=model)


def _node(design: FabricDesign, fleet: Fleet, name: str) -> Node:
    if name not in fleet.nodes:
        raise Trouble(
            f"the design names the node {name}, which the inventory does not have",
            where=fleet.lines.get((f"FabricDesign/{design.name}", "nodes"), f"FabricDesign {design.name}"),
            fix="add the node to inventory/ or take it out of `nodes`",
        )
    return fleet.nodes[name]


def _hcas(design: FabricDesign, node: Node, fleet: Fleet) -> list[Device]:
    if len(node.hca_guids) != design.rails:
        raise Trouble(
            f"{node.name} has {len(node.hca_guids)} hca_guids, but the fabric {design.name} has {design.rails} rails",
            where=f"inventory: {node.name}",
            fix="list the GUID of one adapter per rail, in rail order, in the host's hca_guids",
        )
    return adapters(design, node, fleet)


def adapters(design: FabricDesign, node: Node, fleet: Fleet) -> list[Device]:
    """Return the node's adapters in rail order, named as its spec names them."""
    spec = fleet.node_specs.get(node.spec)
    names = {hca.rail: hca.name for hca in spec.hcas} if spec else {}
    return [
        Device(
            guid, f"{node.name} {names.get(rail, f'mlx5_{rail}')}", "hca", 1, node.rack, node.u,
            node.site or design.site, node.name, hca_label=design.hca_label.format(rail=rail),
        )
        for rail, guid in enumerate(node.hca_guids)
    ]  # fmt: skip


def _node_cables(design: FabricDesign, hcas: list[list[Device]], leaves: list[Device]) -> list[Cable]:
    down = span(design.leaves.down)
    cables = []
    for index, node in enumerate(hcas):
        unit, place = divmod(index, len(down))
        for rail, hca in enumerate(node):
            leaf = leaves[unit * design.rails + rail]
            cables.append(Cable(hca.end(1), leaf.end(down[place]), design.rate, design.lengths.node_leaf))
    return cables


def _spine_cables(design: FabricDesign, leaves: list[Device], spines: list[Device]) -> list[Cable]:
    up, each = span(design.leaves.up), design.spines.per_pair
    return [
        Cable(leaf.end(up[s * each + k]), spine.end(ell * each + k + 1), design.rate, design.lengths.leaf_spine)
        for ell, leaf in enumerate(leaves)
        for s, spine in enumerate(spines)
        for k in range(each)
    ]


def _by_guid(design: FabricDesign, devices: list[Device]) -> dict[str, Device]:
    by_guid: dict[str, Device] = {}
    for device in devices:
        first = by_guid.setdefault(device.guid, device)
        if first is not device:
            raise Trouble(
                f"{first.name} and {device.name} of the fabric {design.name} have the same GUID {device.guid}",
                where=f"inventory: {device.node or device.name}",
                fix="a GUID belongs to one device; read it from the device's label or from ibstat",
            )
    return by_guid
