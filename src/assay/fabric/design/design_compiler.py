"""Compiles a FabricDesign for one fleet: every device and every cable that must be there."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, repeat

from assay.fabric.design.adapters import list_adapters
from assay.fabric.design.compiled_topology import CableTable, CompiledTopology
from assay.fabric.design.designed_device import DesignedDevice
from assay.fabric.design.nvlink_cabling import add_nvlinks, list_nvlink_devices
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.fat_tree_wiring_and_numbering import CableBundle, FatTreeWiring
from assay.model.specs.fabric.ports_and_cables import Cable
from assay.model.specs.fabric.switch_settings import SwitchChip, SwitchModel


def list_expected_cables(design: FabricDesign, fleet: Fleet) -> list[Cable]:
    """Return every cable of the design: those of nodes first, then tier by tier. Raises as `compile_topology` does."""
    return list(compile_topology(design, fleet).cables)


def compile_topology(design: FabricDesign, fleet: Fleet) -> CompiledTopology:
    """Compile a design.

    Raises AssayError for a node that the inventory lacks, or whose GUIDs are missing or repeated. Also for a listed
    cable, an override or a spare port whose device or port does not exist, or whose port already has a cable.
    """
    hcas = [hca for name in design.node_names() for hca in _list_hcas(design, _find_node(design, fleet, name), fleet)]
    switches = [_make_switch(design, design.switch, chip) for chip in design.chips() if design.switch]
    nvlink = list_nvlink_devices(design, design.nvlink, fleet) if design.nvlink else []
    devices = _index_by_guid(design, [*hcas, *switches, *nvlink])
    links = CableTable()
    if design.fat_tree:
        for plane in range(design.planes):
            chips = range(len(hcas) + plane, len(hcas) + len(switches), design.planes)
            _add_rule_cables(design, design.fat_tree, links, chips, plane)
    if design.nvlink:
        add_nvlinks(design, design.nvlink, links, len(hcas) + len(switches))
    if not (design.cables or design.devices or design.overrides or design.spares):
        return CompiledTopology(design.name, devices.values(), links)
    from assay.fabric.design.explicit_cabling import ExplicitCabling

    explicit = ExplicitCabling(design, fleet, devices)
    links = explicit.apply_overrides(links)
    explicit.add_listed_cables(links)
    return CompiledTopology(design.name, explicit.devices.values(), links, spare=explicit.list_spare_ports(links))


def _make_switch(design: FabricDesign, model: SwitchModel, chip: SwitchChip) -> DesignedDevice:
    return DesignedDevice(
        chip.guid,
        chip.name,
        "switch",
        model.port_count,
        chip.switch.rack,
        chip.switch.u,
        design.site,
        product=model.product,
        labels=model.port_labelling,
        box=chip.box,
        module=chip.module,
        plane=chip.plane,
    )


def _find_node(design: FabricDesign, fleet: Fleet, name: str) -> Node:
    if name not in fleet.nodes:
        if name in design.adapters:
            return Node(name, "", "", "", 0, "", "", "", tuple(design.adapters[name]))
        raise AssayError(
            f"the design names the node {name}, which the inventory does not have",
            where=fleet.lines.get((f"FabricDesign/{design.name}", "nodes"), f"FabricDesign {design.name}"),
            fix="add the node to inventory/, write its GUIDs in `adapters`, or remove it from `nodes`",
        )
    return fleet.nodes[name]


def _list_hcas(design: FabricDesign, node: Node, fleet: Fleet) -> list[DesignedDevice]:
    if len(node.hca_guids) != (many := design.adapters_per_node):
        of_rails = f"{design.rails} rails" if many == design.rails else f"{many} adapters, with {design.rails} rails"
        raise AssayError(
            f"{node.name} has {len(node.hca_guids)} hca_guids, but the fabric {design.name} has {of_rails}",
            where=f"inventory: {node.name}",
            fix="list the GUID of one adapter per rail, in rail order, in the host's hca_guids",
        )
    return list_adapters(design, node, fleet)


def _add_rule_cables(design: FabricDesign, wiring: FatTreeWiring, links: CableTable, chips: range, plane: int) -> None:
    """Add the cables of the rules in one plane, from 0. The adapters are the first devices.

    `chips` are the numbers of the switches' chips of the plane among the devices, tier by tier.
    """
    lengths, many = design.lengths, len(wiring.leaves.at)
    leaves, spines, cores = chips[:many], chips[many:], chips[many + len(wiring.spines.at) :]
    _add_node_cables(design, wiring, links, leaves, plane)
    links.set_rate_and_length(design.rate_of("node_leaf"), lengths.node_leaf)
    _add_bundles(links, wiring.leaf_spine_bundles(), leaves, spines)
    links.set_rate_and_length(design.rate_of("leaf_spine"), lengths.leaf_spine)
    _add_bundles(links, wiring.spine_core_bundles(), spines, cores)
    links.set_rate_and_length(design.rate_of("spine_core"), lengths.spine_core)


def _add_node_cables(design: FabricDesign, wiring: FatTreeWiring, links: CableTable, leaves: range, plane: int) -> None:
    """Add the nodes' cables in one plane. `leaves` are the numbers of the leaves among the devices.

    The adapters come node by node, and within a node rail by rail; a gap has none.
    """
    down, rails = wiring.leaf_down_ports, wiring.rails
    adapters, ports = zip(*design.rail_ports, strict=True)
    at = [port + plane for port in ports]
    places = (number for number in range(wiring.nodes) if number not in wiring.gaps)
    for first, number in zip(count(0, design.adapters_per_node), places, strict=False):
        unit, place = divmod(number, len(down))
        own = leaves[unit * rails : (unit + 1) * rails]
        links.add([first + adapter for adapter in adapters], at, own, repeat(down[place], rails))


def _add_bundles(links: CableTable, bundles: Iterable[CableBundle], lower: range, upper: range) -> None:
    """Add the cables between two tiers. `lower` and `upper` are the numbers of their switches among the devices."""
    for bundle in bundles:
        many = len(bundle.lower_ports)
        a, b = repeat(lower[bundle.lower], many), repeat(upper[bundle.upper], many)
        links.add(a, bundle.lower_ports, b, bundle.upper_ports)


def _index_by_guid(design: FabricDesign, devices: list[DesignedDevice]) -> dict[str, DesignedDevice]:
    by_guid: dict[str, DesignedDevice] = {}
    for device in devices:
        first = by_guid.setdefault(device.guid, device)
        if first is not device:
            raise AssayError(
                f"{first.name} and {device.name} of the fabric {design.name} have the same GUID {device.guid}",
                where=f"inventory: {device.node or device.name}",
                fix="a GUID belongs to one device; read it from the device's label or from ibstat",
            )
    return by_guid
