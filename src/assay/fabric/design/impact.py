"""What the loss of a node, switch, box, plane or cable costs: who is cut off, what bandwidth and which paths remain.

The designed fabric is a graph of networkx, which nothing needs that only compares cabling. A vertex is a node, by name,
or a switch or lone adapter, by GUID. An edge is all cables between two vertices, with their number and their bandwidth
in Gb/s.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import networkx as nx

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.element_names import find_element
from assay.fabric.design.tiers import describe_capacity_loss, find_device_tiers
from assay.fabric.fabric_answers import BeforeAndAfter, ImpactAnswer
from assay.fabric.link_words import parse_rate
from assay.model.errors import AssayError
from assay.model.specs.fabric.cable import Cable, PortId, rate_to_gbps
from assay.model.specs.fabric.nvlink_domain import find_nvlink_place

if TYPE_CHECKING:
    FabricGraph = nx.Graph[str]  # nx.Graph takes no type argument at run time

GBPS = "gbps"


def build_fabric_graph(
    topology: CompiledTopology, without: Collection[str] = (), unplugged: Collection[PortId] = ()
) -> FabricGraph:
    """Return the designed fabric without some vertices, and without the cables at some ports."""
    graph: FabricGraph = nx.Graph()
    open_ports = frozenset(unplugged)
    vertices = (find_vertex(topology, guid) for guid in topology.devices)
    graph.add_nodes_from(vertex for vertex in vertices if vertex not in without)
    for cable in topology.cables:
        a, b = find_vertex(topology, cable.a.guid), find_vertex(topology, cable.b.guid)
        if a in graph and b in graph and not open_ports & {cable.a.port_id, cable.b.port_id}:
            edge = graph.get_edge_data(a, b, {"cables": 0, GBPS: 0.0})
            graph.add_edge(a, b, cables=edge["cables"] + 1, gbps=edge[GBPS] + find_cable_bandwidth(cable))
    return graph


def find_vertex(topology: CompiledTopology, guid: str) -> str:
    """Return the vertex of a device: its node for an adapter, else its own GUID."""
    return topology.devices[guid].node or guid


def find_cable_bandwidth(cable: Cable) -> float:
    """Return the bandwidth of a cable in Gb/s, 0 where its rate is no rate."""
    return rate_to_gbps(cable.rate) if parse_rate(cable.rate) else 0.0


def find_connected_parts(fabric: FabricGraph) -> list[set[str]]:
    """Return the connected parts, the largest first. A vertex without a cable is a part of its own."""
    return sorted(nx.connected_components(fabric), key=len, reverse=True)


def measure_bandwidth_between(topology: CompiledTopology, fabric: FabricGraph, first: str, second: str) -> float:
    """Return the bandwidth between two switches in Gb/s, over all paths through switches; 0 if one is missing.

    `first` and `second` are GUIDs, or names of boxes, whose chips then count together.
    """
    switches = nx.Graph(_switches(topology, fabric))
    for end in (first, second):
        for chip in topology.chips_of_box.get(end, ()):
            if chip.guid in switches:
                switches.add_edge(end, chip.guid)  # an edge without a capacity has no limit
    if first not in switches or second not in switches:
        return 0.0
    return float(nx.maximum_flow_value(switches, first, second, capacity=GBPS))


def count_disjoint_paths(topology: CompiledTopology, fabric: FabricGraph, first: str, second: str) -> int:
    """Return the number of paths between two switches that share no switch in between; 0 if one is missing.

    A box with several chips is one switch.
    """
    box_of = {device.guid: device.box for device in topology if device.box}
    switches = nx.relabel_nodes(_switches(topology, fabric), box_of)  # chips with one name become one vertex
    first, second = box_of.get(first, first), box_of.get(second, second)
    if first not in switches or second not in switches:
        return 0
    return int(nx.node_connectivity(switches, first, second))


def measure_bisection_bandwidth(topology: CompiledTopology, fabric: FabricGraph) -> float:
    """Return the bandwidth in Gb/s between the first half of the nodes, in the design's order, and the second half."""
    nodes = [node for node in dict.fromkeys(device.node for device in topology.devices.values()) if node]
    half = len(nodes) // 2
    joined = fabric.copy()
    for end, side in (("", nodes[:half]), ("\n", nodes[half:])):
        joined.add_node(end)
        for node in side:
            if node in fabric:
                joined.add_edge(end, node)  # an edge without a capacity has no limit
    return float(nx.maximum_flow_value(joined, "", "\n", capacity=GBPS)) if half else 0.0


def find_mixed_rail_switches(topology: CompiledTopology) -> dict[str, list[int]]:
    """Return, by GUID, the rails that meet on each switch with adapters of several rails. Usually there is none."""
    rails: dict[str, set[int]] = {}
    for node in dict.fromkeys(device.node for device in topology.devices.values() if device.node):
        for rail, cable in enumerate(topology.cables_of_node(node)):
            switch = next((end.guid for end in cable.ends if not end.node), "")
            rails.setdefault(switch, set()).add(rail)
    return {switch: sorted(rails[switch]) for switch in topology.devices if len(rails.get(switch, ())) > 1}


def _switches(topology: CompiledTopology, fabric: FabricGraph) -> FabricGraph:
    devices = topology.devices
    return fabric.subgraph(vertex for vertex in fabric if vertex in devices and devices[vertex].kind != "hca")


@dataclass(frozen=True)
class FailureImpact:
    """The cost of a loss: `lost` names what is lost, `lines` describe the cost.

    `cut_off` are the nodes and switches without a path to the rest. `leaf_pair` are the two leaves whose bandwidth and
    paths the figures give. `figures` has (before, after) by name, in Gb/s or as a number of paths.
    """

    lost: str
    lines: tuple[str, ...]
    cut_off: tuple[str, ...] = ()
    leaf_pair: tuple[str, ...] = ()
    figures: dict[str, tuple[float, float]] = field(default_factory=dict)

    def make_answer(self) -> ImpactAnswer:
        """Return the loss as figures."""
        figures = {name: BeforeAndAfter(*pair) for name, pair in self.figures.items()}
        return ImpactAnswer(self.lost, self.lines, self.cut_off, leaf_pair=self.leaf_pair, **figures)


def assess_failure(topology: CompiledTopology, name: str) -> FailureImpact:
    """Return what the loss of a node, a switch, or the cable at a port costs.

    `name` has any form that `find_element` knows. Raises AssayError for a name that the fabric lacks.
    """
    element = find_element(topology, name)
    if element.kind == "node":
        return _FailureAssessment(topology, element.node, [element.node]).assess()
    if element.kind == "box":
        return _FailureAssessment(topology, name, [chip.guid for chip in element.box]).assess()
    device = element.device
    assert device is not None, "an element that is no node has a device"
    if device.kind == "switch" and element.port is None:
        return _FailureAssessment(topology, device.name, [device.guid]).assess()
    own = topology.cables_of_device(device.guid)
    if element.port is None and len(own) > 1 and all(end.plane for cable in own for end in cable.ends if not end.node):
        return _FailureAssessment(topology, _name_cable(own), cables=own).assess()
    if element.port is None and len(own) > 1:
        raise AssayError(
            f"{device.name} has {device.ports} links",
            fix=f"name one of them, such as {device.name}[1], or {device.node}",
        )
    cable = topology.cable_at(element.port or PortId(device.guid, 1))
    if cable is None:
        raise AssayError(f"no cable is designed at {name}", fix=f"{device.name} has {device.ports} ports")
    links = [topology.cable_at(PortId(chip.guid, element.port.number)) for chip in element.box if element.port]
    cables = [link for link in links if link] or [cable]
    return _FailureAssessment(topology, _name_cable(cables), cables=cables).assess()


def _name_cable(links: Sequence[Cable]) -> str:
    """Return the name of a cable by one of its links, or by those of all planes."""
    if len(links) == 1:
        return f"the cable from {links[0].a} to {links[0].b}"
    ends = (f"{end.box} port {end.label or end.port}" if end.plane else end.device for end in links[0].ends)
    return f"the cable from {' to '.join(ends)}, with {len(links)} planes,"


class _FailureAssessment:
    """The fabric before and after the loss of vertices (`without`), or of `cables`: one, or the links of all planes."""

    def __init__(
        self, topology: CompiledTopology, lost: str, without: Sequence[str] = (), cables: Sequence[Cable] = ()
    ) -> None:
        self.topology = topology
        self.lost = lost
        self.without = without
        self.cables = cables
        self.tiers = find_device_tiers(topology)
        self.before = build_fabric_graph(topology)
        self.after = build_fabric_graph(topology, without, [cable.a.port_id for cable in cables])

    def assess(self) -> FailureImpact:
        cut_off, pair = self._find_cut_off(), self._choose_leaf_pair()
        before, after = (measure_bisection_bandwidth(self.topology, graph) for graph in (self.before, self.after))
        figures = {"bisection_gbps": (before, after)}
        if pair:
            figures["leaf_pair_gbps"] = self._measure_both(measure_bandwidth_between, pair)
            figures["leaf_pair_ways"] = self._measure_both(count_disjoint_paths, pair)
        lines = [self._describe_direct_loss()]
        if cut_off:
            few = ", ".join(cut_off[:4]) + (" …" if len(cut_off) > 4 else "")
            lines.append(f"cut off from the rest: {len(cut_off)} nodes and switches ({few})")
        if pair:
            lines.append(self._describe_leaf_pair(pair, figures))
        if not self.without or self.without[0] in self.topology.devices:  # a lost node takes only its own traffic
            share = _format_share(after, before)
            lines.append(f"between the two halves of the nodes: {after:g} of {before:g} Gb/s{share}")
        mixed = ", ".join(map(self._name, list(find_mixed_rail_switches(self.topology))[:3]))
        if mixed and not any(map(find_nvlink_place, self.topology.devices)):  # an NVLink domain has no rails
            lines.append(f"rails are not kept apart: adapters of several meet on {mixed}")
        return FailureImpact(self.lost, tuple(lines), cut_off, tuple(map(self._name, pair)), figures)

    def _find_cut_off(self) -> tuple[str, ...]:
        """Return what belongs to the largest connected part before the loss, and no longer after it.

        If no two of them are connected after it, that is all of them.
        """
        largest = find_connected_parts(self.before)[0]
        rest = find_connected_parts(self.after)
        remaining = rest[0] if rest and len(rest[0]) > 1 else set()
        gone = largest - remaining - set(self.without)
        whole = {box for box, chips in self.topology.chips_of_box.items() if gone >= {chip.guid for chip in chips}}
        names = {box if (box := self._find_box(vertex)) in whole else self._name(vertex) for vertex in gone}
        return tuple(sorted(names))

    def _find_box(self, vertex: str) -> str:
        device = self.topology.devices.get(vertex)
        return device.box if device else ""

    def _choose_leaf_pair(self) -> tuple[str, ...]:
        """Return two leaves, the farthest apart, between which traffic may use what is lost; none below one leaf."""
        if self.without:
            lost = max(self.without, key=lambda guid: self.tiers.get(guid, 0))
        else:
            lost = max(self.cables[0].ends, key=lambda end: self.tiers.get(end.guid, 0)).guid
        if self.tiers.get(lost, 0) < 2:
            return ()
        below = [lost]
        for tier in range(self.tiers[lost] - 1, 0, -1):
            rows = (row for guid in below for row in self.topology.rows[guid[2:]])
            below = list(dict.fromkeys(f"0x{row[1]}" for row in rows if self.tiers.get(f"0x{row[1]}") == tier))
        if self.cables:
            low = min(self.cables[0].ends, key=lambda end: self.tiers[end.guid]).guid
            below = [low, *(guid for guid in below if guid != low)] if self.tiers[low] == 1 else below
        boxes = list(dict.fromkeys(self._find_box(guid) or guid for guid in below))
        leaves = boxes if len(boxes) > 1 else below  # the line cards of one director are leaves of their own
        return (leaves[0], leaves[-1]) if len(leaves) > 1 else ()

    def _measure_both(self, measure: Any, pair: tuple[str, ...]) -> tuple[float, float]:
        return measure(self.topology, self.before, *pair), measure(self.topology, self.after, *pair)

    def _describe_direct_loss(self) -> str:
        if self.cables:
            return f"{self.lost} carries {self._describe_share()}"
        if self.without[0] in self.topology.devices:
            loss = describe_capacity_loss(self.topology, self.without, self.tiers)
            return f"without {self.lost} {loss or 'nothing below it loses bandwidth'}"
        return f"without {self.lost} no other node loses bandwidth to any other"

    def _describe_share(self) -> str:
        """Return which share of its lower end's bandwidth a cable is."""
        pairs = [sorted(cable.ends, key=lambda end: self.tiers.get(end.guid, 0)) for cable in self.cables]
        (low, high), lost = pairs[0], len(pairs)
        if low.node:
            return f"{lost} of the {len(self.topology.cables_of_node(low.node))} links of {low.node}"
        below, above = ({pair[side].guid for pair in pairs} for side in (0, 1))
        up = []
        for own in (own for guid in below for own in self.topology.cables_of_device(guid)):
            up += [own for end in own.ends if self.tiers.get(end.guid, 0) > self.tiers[low.guid]]
        to_high = [own for own in up if above & {own.a.guid, own.b.guid}]
        a, b = (low.box, high.box) if lost > 1 else (low.device, high.device)
        links = "links" if lost > 1 else "cables"
        return f"{lost} of the {len(up)} {links} up of {a}, {lost} of the {len(to_high)} to {b}"

    def _describe_leaf_pair(self, pair: tuple[str, ...], figures: dict[str, tuple[float, float]]) -> str:
        (gbps, gbps_left), (paths, paths_left) = figures["leaf_pair_gbps"], figures["leaf_pair_ways"]
        a, b = map(self._name, pair)
        return (
            f"between {a} and {b}: {gbps_left:g} of {gbps:g} Gb/s{_format_share(gbps_left, gbps)}, "
            f"over {paths_left:g} of {paths:g} paths that share no switch"
        )

    def _name(self, vertex: str) -> str:
        device = self.topology.devices.get(vertex)
        return device.name if device else vertex


def _format_share(part: float, whole: float) -> str:
    return f" ({part / whole:.1%})" if whole else ""
