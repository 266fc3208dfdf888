"""The fabric as a graph: what hangs together, over how many ways, and with how much bandwidth.

Vertices are nodes, by name, and switches (and adapters of no node), by GUID; an edge is all cables between two of them,
with their number and their bandwidth in Gb/s. For questions that a person asks; comparing does without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import networkx as nx

from assay.fabric.planned import Plan
from assay.fabric.rate import rate_of
from assay.model.cable import Cable, Port
from assay.model.speed import gbps

if TYPE_CHECKING:
    Fabric = nx.Graph[str]  # at run time it cannot be asked for its vertices' type

GBPS = "gbps"


def graph(plan: Plan, without: Collection[str] = (), unplugged: Collection[Port] = ()) -> Fabric:
    """Return the designed fabric, without some vertices and without the cables at some ports."""
    found: Fabric = nx.Graph()
    free = frozenset(unplugged)
    found.add_nodes_from(vertex(plan, guid) for guid in plan.devices if vertex(plan, guid) not in without)
    for cable in plan.cables:
        a, b = vertex(plan, cable.a.guid), vertex(plan, cable.b.guid)
        if a in found and b in found and not free & {cable.a.at, cable.b.at}:
            edge = found.get_edge_data(a, b, {"cables": 0, GBPS: 0.0})
            found.add_edge(a, b, cables=edge["cables"] + 1, gbps=edge[GBPS] + bandwidth(cable))
    return found


def vertex(plan: Plan, guid: str) -> str:
    """Return a device's vertex: its node's for an adapter."""
    return plan.devices[guid].node or guid


def bandwidth(cable: Cable) -> float:
    """Return what a cable carries in Gb/s, 0 for a rate that is none."""
    return gbps(cable.rate) if rate_of(cable.rate) else 0.0


def parts(fabric: Fabric) -> list[set[str]]:
    """Return what hangs together, the largest part first. A vertex without any cable is a part of its own."""
    return sorted(nx.connected_components(fabric), key=len, reverse=True)


def between(plan: Plan, fabric: Fabric, one: str, other: str) -> float:
    """Return the bandwidth between two switches in Gb/s, over all ways that lead through switches."""
    switches = _switches(plan, fabric)
    if one not in switches or other not in switches:
        return 0.0
    return float(nx.maximum_flow_value(switches, one, other, capacity=GBPS))


def ways(plan: Plan, fabric: Fabric, one: str, other: str) -> int:
    """Return over how many ways two switches are joined that have no switch in common between them."""
    switches = _switches(plan, fabric)
    if one not in switches or other not in switches:
        return 0
    return int(nx.node_connectivity(switches, one, other))


def bisection(plan: Plan, fabric: Fabric) -> float:
    """Return the bandwidth in Gb/s between the first half of the nodes, in the design's order, and the second half."""
    nodes = [one for one in dict.fromkeys(device.node for device in plan.devices.values()) if one]
    half = len(nodes) // 2
    joined = fabric.copy()
    for end, side in (("", nodes[:half]), ("\n", nodes[half:])):
        joined.add_node(end)
        for node in side:
            if node in fabric:
                joined.add_edge(end, node)  # an edge without a capacity carries anything
    return float(nx.maximum_flow_value(joined, "", "\n", capacity=GBPS)) if half else 0.0


def mixed(plan: Plan) -> dict[str, list[int]]:
    """Return the switches, by GUID, on which adapters of different rails meet: none where rails are kept apart."""
    rails: dict[str, set[int]] = {}
    for rail, switch in _rails(plan):
        rails.setdefault(switch, set()).add(rail)
    return {switch: sorted(rails[switch]) for switch in plan.devices if len(rails.get(switch, ())) > 1}


def _rails(plan: Plan) -> Iterator[tuple[int, str]]:
    """Yield the rail of every cable of a node, and the switch it leads to."""
    for node in dict.fromkeys(device.node for device in plan.devices.values() if device.node):
        for rail, cable in enumerate(plan.of_node(node)):
            yield rail, next((end.guid for end in cable.ends if not end.node), "")


def _switches(plan: Plan, fabric: Fabric) -> Fabric:
    return fabric.subgraph(one for one in fabric if one in plan.devices and plan.devices[one].kind != "hca")
