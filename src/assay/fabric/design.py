"""From a design's rules to every cable that must be there."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat

from assay.fabric.planned import Device, Links, Plan
from assay.model.cable import Cable
from assay.model.design import FabricDesign
from assay.model.errors import Trouble
from assay.model.fleet import Fleet, Node
from assay.model.switches import Switch, SwitchModel
from assay.model.wiring import Bundle, Wiring

__all__ = ["Device", "Plan", "adapter_names", "adapters", "expected", "plan"]


def expected(design: FabricDesign, fleet: Fleet) -> list[Cable]:
    """Return every cable of the design: those of nodes first, then tier by tier. Raises Trouble as `plan`."""
    return list(plan(design, fleet).cables)


def plan(design: FabricDesign, fleet: Fleet) -> Plan:
    """Compile a design.

    Raises Trouble for a node that the inventory lacks, or whose GUIDs are missing or repeated, and for a listed cable,
    an override or a spare that leads nowhere, or to a port that has a cable.
    """
    hcas = [hca for name in design.node_names() for hca in _hcas(design, _node(design, fleet, name), fleet)]
    switches = [_switch(design, design.switch, at, name) for name, _, _, at in design.switches() if design.switch]
    devices = _by_guid(design, [*hcas, *switches])
    links = Links()
    if design.wiring:
        _of_rules(design, design.wiring, links, len(hcas))
    if not (design.cables or design.devices or design.overrides or design.spares):
        return Plan(design.name, devices.values(), links)
    from assay.fabric.explicit import Explicit

    explicit = Explicit(design, fleet, devices)
    links = explicit.overridden(links)
    explicit.add(links)
    return Plan(design.name, explicit.devices.values(), links, spare=explicit.spare(links))


def _switch(design: FabricDesign, model: SwitchModel, at: Switch, name: str) -> Device:
    return Device(
        at.guid, name, "switch", model.most, at.rack, at.u, design.site, product=model.product, labels=model.printed
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
    return [
        Device(
            guid, name, "hca", 1, node.rack, node.u, node.site or design.site, node.name,
            hca_label=design.hca_label.format(rail=rail),
        )
        for rail, (guid, name) in enumerate(zip(node.hca_guids, adapter_names(node, fleet), strict=True))
    ]  # fmt: skip


def adapter_names(node: Node, fleet: Fleet) -> list[str]:
    """Return what the node's adapters are called, in rail order: `n0001 mlx5_0`."""
    spec = fleet.node_specs.get(node.spec)
    names = {hca.rail: hca.name for hca in spec.hcas} if spec else {}
    return [f"{node.name} {names.get(rail, f'mlx5_{rail}')}" for rail in range(len(node.hca_guids))]


def _of_rules(design: FabricDesign, wiring: Wiring, links: Links, hcas: int) -> None:
    """Add the cables of the rules. The switches follow the `hcas` adapters, tier by tier."""
    lengths, leaves, spines = design.lengths, len(wiring.leaves.at), len(wiring.spines.at)
    _node_cables(wiring, links, hcas)
    links.alike(design.rate_of("node_leaf"), lengths.node_leaf)
    _bundles(links, wiring.leaf_spine(), hcas, hcas + leaves)
    links.alike(design.rate_of("leaf_spine"), lengths.leaf_spine)
    _bundles(links, wiring.spine_core(), hcas + leaves, hcas + leaves + spines)
    links.alike(design.rate_of("spine_core"), lengths.spine_core)


def _node_cables(wiring: Wiring, links: Links, hcas: int) -> None:
    """Add the nodes' cables: the adapters are numbered nodes first, then rails."""
    down, rails = wiring.down, wiring.rails
    for index, first in enumerate(range(0, hcas, rails)):
        unit, place = divmod(index, len(down))
        leaf = hcas + unit * rails
        links.add(range(first, first + rails), repeat(1, rails), range(leaf, leaf + rails), repeat(down[place], rails))


def _bundles(links: Links, bundles: Iterable[Bundle], lower: int, upper: int) -> None:
    """Add cables between two tiers, whose first switches are the devices `lower` and `upper`."""
    for bundle in bundles:
        many = len(bundle.lower_ports)
        ends = repeat(lower + bundle.lower, many), repeat(upper + bundle.upper, many)
        links.add(ends[0], bundle.lower_ports, ends[1], bundle.upper_ports)


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
