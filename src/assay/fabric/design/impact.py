"""What the loss of a node, switch, box, plane or cable costs: who loses links, and who is cut off.

The designed fabric is a graph of networkx, which nothing needs that only compares cabling. A vertex is a node, by name,
or a switch or lone adapter, by GUID. An edge is all cables between two vertices.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import networkx as nx

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.element_names import find_element
from assay.fabric.design.tiers import describe_capacity_loss, find_device_tiers
from assay.fabric.fabric_answers import ImpactAnswer
from assay.model.errors import AssayError
from assay.model.specs.fabric.cable import Cable, PortId

if TYPE_CHECKING:
    FabricGraph = nx.Graph[str]  # nx.Graph takes no type argument at run time


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
            graph.add_edge(a, b)
    return graph


def find_vertex(topology: CompiledTopology, guid: str) -> str:
    """Return the vertex of a device: its node for an adapter, else its own GUID."""
    return topology.devices[guid].node or guid


def find_connected_parts(fabric: FabricGraph) -> list[set[str]]:
    """Return the connected parts, the largest first. A vertex without a cable is a part of its own."""
    return sorted(nx.connected_components(fabric), key=len, reverse=True)


def assess_failure(topology: CompiledTopology, name: str) -> ImpactAnswer:
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

    def assess(self) -> ImpactAnswer:
        cut_off = self._find_cut_off()
        lines = [self._describe_direct_loss()]
        if cut_off:
            few = ", ".join(cut_off[:4]) + (" …" if len(cut_off) > 4 else "")
            lines.append(f"cut off from the rest: {len(cut_off)} nodes and switches ({few})")
        return ImpactAnswer(self.lost, tuple(lines), cut_off)

    def _find_cut_off(self) -> tuple[str, ...]:
        """Return what belongs to the largest connected part before the loss, and no longer after it.

        If no two of them are connected after it, that is all of them.
        """
        largest = find_connected_parts(self.before)[0]
        rest = find_connected_parts(self.after)
        remaining = rest[0] if rest and len(rest[0]) > 1 else set()
        gone = largest - remaining - set(self.without)
        whole = {box for box, chips in self.topology.chips_of_box.items() if gone >= {chip.guid for chip in chips}}
        names = set()
        for vertex in gone:
            device = self.topology.devices.get(vertex)
            names.add(vertex if device is None else device.box if device.box in whole else device.name)
        return tuple(sorted(names))

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
