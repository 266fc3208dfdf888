"""Builds the map of a fabric from its compiled design, and from the subnet manager's forwarding tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.designed_device import DesignedDevice
from assay.fabric.readers.forwarding_tables import ForwardingTable
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.validate.collectives.fabric_map import FabricMap, FabricNode


def find_nvlink_domains(fleet: Fleet) -> dict[str, str]:
    """Return the NVLink domain of each node whose rack is one machine."""
    domains = {}
    for node in fleet.nodes.values():
        spec = fleet.node_specs.get(node.spec)
        if spec and spec.rack:
            domains[node.name] = " ".join(part for part in node.rack_place if part)
    return domains


def build_fabric_map(topology: CompiledTopology, domains: Mapping[str, str]) -> FabricMap:
    """Return the map of a design: each node's leaf and place by rail, and each leaf's uplinks in port order.

    Traffic of an adapter takes all planes alike, so the first stands for all.
    """
    devices = list(topology)
    ports: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    uplinks: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for a, a_port, b, b_port in topology.links:
        for near, near_port, far, far_port in ((a, a_port, b, b_port), (b, b_port, a, a_port)):
            if max(devices[near].plane, devices[far].plane) > 1:
                continue
            if devices[near].node and not devices[far].node:
                ports[devices[near].node].append((near, far, far_port))
            elif devices[near].kind == devices[far].kind == "switch":
                uplinks[near].append((near_port, far, far_port))
    leaves = {leaf for own in ports.values() for _, leaf, _ in own}
    first = {leaf: min(port for own in ports.values() for _, at, port in own if at == leaf) for leaf in leaves}
    nodes = {
        name: FabricNode(
            name,
            tuple(devices[leaf].name for _, leaf, _ in sorted(own)),
            tuple(port - first[leaf] for _, leaf, port in sorted(own)),
            domains.get(name, ""),
        )
        for name, own in ports.items()
    }
    names = {
        devices[leaf].name: [_format_uplink(devices[leaf], port) for port, *_ in sorted(uplinks[leaf])]
        for leaf in leaves
    }
    return FabricMap(nodes, names)


def add_routes(fabric: FabricMap, topology: CompiledTopology, tables: Iterable[ForwardingTable]) -> FabricMap:
    """Return the map with the uplink of each destination as the subnet manager's tables have it.

    A destination is found by the GUID of its adapter or port, or by the adapter's name. Raises AssayError if the tables
    are not of this fabric.
    """
    adapters: dict[str, tuple[str, int]] = {}
    for name in fabric.nodes:
        ends = [end for cable in topology.cables_of_node(name) for end in cable.ends if end.node == name]
        own = {end.guid: end.device for end in ends}
        for rail, (guid, device) in enumerate(own.items()):
            adapters |= {guid: (name, rail), device: (name, rail)}
    routes = {}
    for table in tables:
        leaf = topology.devices.get(table.switch)
        uplinks = frozenset(fabric.uplinks.get(leaf.name, ())) if leaf else frozenset[str]()
        for entry in table.entries if leaf and uplinks else ():
            destination = adapters.get(entry.guid) or adapters.get(entry.name)
            if destination and _format_uplink(leaf, entry.port) in uplinks:
                routes[leaf.name, *destination] = _format_uplink(leaf, entry.port)
    if not routes:
        fix = "give the output of dump_fts of this fabric: it lists each switch's table with the destinations' names"
        raise AssayError(f"no forwarding table leads from a leaf of {topology.name} to an adapter", fix=fix)
    return FabricMap(fabric.nodes, fabric.uplinks, routes)


def _format_uplink(leaf: DesignedDevice, port: int) -> str:
    """Return an uplink's name, as `assay fabric impact` takes it."""
    return f"{leaf.name}[{port}]"
