"""The designed fabric as a graph: connected parts, bandwidth and paths between two switches. Uses networkx.

A vertex is a node, by name, or a switch or lone adapter, by GUID. An edge is all cables between two vertices, with
their number and their bandwidth in Gb/s.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import networkx as nx

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.link_rates_and_states import parse_rate
from assay.model.specs.fabric.ports_and_cables import Cable, PortId, rate_to_gbps

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


def measure_bandwidth_between(topology: CompiledTopology, fabric: FabricGraph, one: str, other: str) -> float:
    """Return the bandwidth between two switches in Gb/s, over all paths through switches; 0 if one is missing.

    `one` and `other` are GUIDs, or names of boxes, whose chips then count together.
    """
    switches = nx.Graph(_switches(topology, fabric))
    for end in (one, other):
        for chip in topology.chips_of_box.get(end, ()):
            if chip.guid in switches:
                switches.add_edge(end, chip.guid)  # an edge without a capacity has no limit
    if one not in switches or other not in switches:
        return 0.0
    return float(nx.maximum_flow_value(switches, one, other, capacity=GBPS))


def count_disjoint_paths(topology: CompiledTopology, fabric: FabricGraph, one: str, other: str) -> int:
    """Return the number of paths between two switches that share no switch in between; 0 if one is missing.

    A box with several chips is one switch.
    """
    box_of = {device.guid: device.box for device in topology if device.box}
    switches = nx.relabel_nodes(_switches(topology, fabric), box_of)  # chips with one name become one vertex
    one, other = box_of.get(one, one), box_of.get(other, other)
    if one not in switches or other not in switches:
        return 0
    return int(nx.node_connectivity(switches, one, other))


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
    for rail, switch in _cable_rails(topology):
        rails.setdefault(switch, set()).add(rail)
    return {switch: sorted(rails[switch]) for switch in topology.devices if len(rails.get(switch, ())) > 1}


def _cable_rails(topology: CompiledTopology) -> Iterator[tuple[int, str]]:
    """Yield the rail of every cable of a node, and the GUID of the switch that it leads to."""
    for node in dict.fromkeys(device.node for device in topology.devices.values() if device.node):
        for rail, cable in enumerate(topology.cables_of_node(node)):
            yield rail, next((end.guid for end in cable.ends if not end.node), "")


def _switches(topology: CompiledTopology, fabric: FabricGraph) -> FabricGraph:
    devices = topology.devices
    return fabric.subgraph(vertex for vertex in fabric if vertex in devices and devices[vertex].kind != "hca")
