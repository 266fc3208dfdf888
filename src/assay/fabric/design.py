"""From a design's rules to every cable that must be there."""

from __future__ import annotations

from itertools import repeat

from assay.fabric.planned import Device, Links, Plan
from assay.model.cable import Cable
from assay.model.design import FabricDesign, Switch
from assay.model.errors import Trouble
from assay.model.fleet import Fleet, Node

__all__ = ["Device", "Plan", "adapters", "expected", "plan"]


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
    hcas = [hca for name in design.node_names() for hca in _hcas(design, _node(design, fleet, name), fleet)]
    devices = _by_guid(design, [*hcas, *leaves, *spines])
    links = Links()
    _node_cables(design, links, len(hcas))
    _spine_cables(design, links, len(hcas), len(leaves))
    if design.cables:
        from assay.fabric.explicit import Explicit

        explicit = Explicit(design, fleet, devices)
        explicit.add(links)
        return Plan(design.name, explicit.devices.values(), links)
    return Plan(design.name, devices.values(), links)


def _switch(design: FabricDesign, at: Switch, name: str) -> Device:
    model = design.switch
    return Device(
        at.guid, name, "switch", model.ports, at.rack, at.u, design.site, product=model.product, labels=model.printed
    )


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


def _node_cables(design: FabricDesign, links: Links, hcas: int) -> None:
    """Add the nodes' cables: adapter `n` of the list belongs to node `n // rails`, leaves follow the adapters."""
    down, rails = design.down, design.rails
    for index, first in enumerate(range(0, hcas, rails)):
        unit, place = divmod(index, len(down))
        leaf = hcas + unit * rails
        links.add(range(first, first + rails), repeat(1, rails), range(leaf, leaf + rails), repeat(down[place], rails))
    links.alike(design.rate, design.lengths.node_leaf)


def _spine_cables(design: FabricDesign, links: Links, first: int, leaves: int) -> None:
    up, each = design.up, design.spines.per_pair
    for ell in range(leaves):
        for s in range(len(design.spines.at)):
            leaf, spine = first + ell, first + leaves + s
            ports = up[s * each : (s + 1) * each], range(ell * each + 1, (ell + 1) * each + 1)
            links.add(repeat(leaf, each), ports[0], repeat(spine, each), ports[1])
    links.alike(design.rate, design.lengths.leaf_spine)


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
