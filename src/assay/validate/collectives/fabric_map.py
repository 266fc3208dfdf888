"""Which parts of the fabric a pair of nodes uses: the nodes, their adapters, and the uplinks of their leaves.

The map comes from the fabric's compiled design, and from the subnet manager's forwarding tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.devices import DesignedDevice
from assay.fabric.readers.forwarding_tables import ForwardingTable
from assay.model.errors import AssayError
from assay.model.facts import fact
from assay.model.fleet import Fleet

PartKind = Literal["node", "adapter", "nvlink", "uplink"]
KIND_ORDER: Mapping[PartKind, int] = {"node": 0, "adapter": 1, "nvlink": 2, "uplink": 3}
"""Of two parts that explain equally much, the first is taken first."""


@fact
class FabricPart:
    """A part that a pair uses."""

    kind: PartKind
    """The kind of part."""
    name: str
    """The node, `n0001 rail 3`, the NVLink domain, or the uplink's port."""


class FabricNode(NamedTuple):
    """A node with its leaf on each rail, and its place on that leaf. `domain` is its NVLink domain, "" for none."""

    name: str
    leaves: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    domain: str = ""


@dataclass(frozen=True)
class FabricMap:
    """The nodes of one fabric, the uplinks of each leaf in port order, and the uplink of each destination.

    `routes` maps (leaf, node, rail) to an uplink, as the subnet manager's tables do. Where it is empty, the design
    decides: the destination's place on its leaf chooses the uplink, as routing by destination does in a full fat tree.
    """

    nodes: Mapping[str, FabricNode]
    uplinks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    routes: Mapping[tuple[str, str, int], str] = field(default_factory=dict)

    @classmethod
    def without_design(cls, names: Iterable[str]) -> FabricMap:
        """Return a map that knows the nodes only: as if all were under one leaf."""
        return cls({name: FabricNode(name) for name in names})

    @cached_property
    def rails(self) -> int:
        """The most adapters of a node."""
        return max((len(node.leaves) for node in self.nodes.values()), default=0)

    @cached_property
    def units(self) -> Mapping[str, Sequence[str]]:
        """Node names by unit: nodes of a unit have the same leaf on every rail."""
        by_unit: defaultdict[str, list[str]] = defaultdict(list)
        for name, unit in self._unit_names.items():
            by_unit[unit].append(name)
        return by_unit

    def unit_of(self, name: str) -> str:
        """Return the unit of a node."""
        return self._unit_names[name]

    def list_units(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the units of those nodes that the map knows."""
        return tuple({self._unit_names[name]: None for name in names if name in self.nodes})

    @cached_property
    def _unit_names(self) -> Mapping[str, str]:
        return {name: self._name_unit(node.leaves) for name, node in self.nodes.items()}

    def share_domain(self, a: str, b: str) -> bool:
        """Whether two nodes reach each other over NVLink, without the fabric."""
        return bool(self.nodes[a].domain) and self.nodes[a].domain == self.nodes[b].domain

    def find_uplink(self, leaf: str, destination: str, rail: int) -> str:
        """Return the uplink of a leaf towards a node's adapter, "" if it is not known."""
        if self.routes:
            return self.routes.get((leaf, destination, rail), "")
        uplinks = self.uplinks.get(leaf, ())
        return uplinks[self.nodes[destination].places[rail] % len(uplinks)] if uplinks else ""

    def list_uplinks_between(self, a: str, b: str, rail: int) -> list[FabricPart]:
        """Return the uplinks that two nodes use on a rail, one in each direction; none under one leaf."""
        first, second = self.nodes[a], self.nodes[b]
        if rail >= min(len(first.leaves), len(second.leaves)) or first.leaves[rail] == second.leaves[rail]:
            return []
        ways = ((first.leaves[rail], b), (second.leaves[rail], a))
        uplinks = (self.find_uplink(leaf, destination, rail) for leaf, destination in ways)
        return [FabricPart("uplink", uplink) for uplink in uplinks if uplink]

    def list_node_parts(self, a: str, b: str) -> tuple[FabricPart, ...]:
        """Return the parts that all rails of a pair share."""
        nodes = (FabricPart("node", a), FabricPart("node", b))
        return (*nodes, FabricPart("nvlink", self.nodes[a].domain)) if self.share_domain(a, b) else nodes

    def list_rail_parts(self, a: str, b: str, rail: int) -> tuple[FabricPart, ...]:
        """Return the parts of one rail of a pair: both adapters, and the uplinks between them."""
        if self.share_domain(a, b):
            return ()
        adapters = (FabricPart("adapter", format_adapter(name, rail)) for name in (a, b))
        return (*adapters, *self.list_uplinks_between(a, b, rail))

    def list_pair_parts(self, a: str, b: str) -> tuple[FabricPart, ...]:
        """Return the parts of a pair that is measured as a whole: its nodes, and the uplinks of every rail."""
        shared = self.list_node_parts(a, b)
        if self.share_domain(a, b):
            return shared
        return (*shared, *(part for rail in range(self.rails) for part in self.list_uplinks_between(a, b, rail)))

    @staticmethod
    def _name_unit(leaves: tuple[str, ...]) -> str:
        return ", ".join(dict.fromkeys(leaves))


def format_adapter(node: str, rail: int) -> str:
    """Return the name of a node's adapter."""
    return f"{node} rail {rail}"


def find_node(part: FabricPart) -> str:
    """Return the node of a part that is a node or an adapter."""
    return part.name.rpartition(" rail ")[0] if part.kind == "adapter" else part.name


def find_nvlink_domains(fleet: Fleet) -> dict[str, str]:
    """Return the NVLink domain of each node whose rack is one machine."""
    domains = {}
    for node in fleet.nodes.values():
        spec = fleet.node_specs.get(node.spec)
        if spec and spec.rack:
            domains[node.name] = " ".join(part for part in node.rack_place if part)
    return domains


def find_domain_designs(fleet: Fleet) -> dict[str, str]:
    """Return the FabricDesign of each NVLink domain that has one: its scan names trays and switch trays."""
    domains = find_nvlink_domains(fleet)
    described = [(design.name, design.nvlink.node_names) for design in fleet.designs.values() if design.nvlink]
    return {domains[name]: design for design, names in described for name in names if name in domains}


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
        if leaf is None or not uplinks:
            continue
        for entry in table.entries:
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
