"""What the loss of one device or cable costs: who is cut off, who has less bandwidth, how many ways are left.

The fabric as a graph: what hangs together, over how many ways, and with how much bandwidth.

Vertices are nodes, by name, and switches (and adapters of no node), by GUID; an edge is all cables between two of them,
with their number and their bandwidth in Gb/s. For questions that a person asks; comparing does without.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import networkx as nx

from assay.fabric.link_rates_and_states import parse_rate
from assay.fabric.topology.blast_radius import describe_capacity_loss, find_device_tiers
from assay.fabric.topology.compiled_topology import CompiledTopology
from assay.model.errors import AssayError
from assay.model.fabric.ports_and_cables import Cable, PortId, rate_to_gbps

if TYPE_CHECKING:
    FabricGraph = nx.Graph[str]  # at run time it cannot be asked for its vertices' type

GBPS = "gbps"


def build_fabric_graph(
    plan: CompiledTopology, without: Collection[str] = (), unplugged: Collection[PortId] = ()
) -> FabricGraph:
    """Return the designed fabric, without some vertices and without the cables at some ports."""
    found: FabricGraph = nx.Graph()
    free = frozenset(unplugged)
    found.add_nodes_from(find_vertex(plan, guid) for guid in plan.devices if find_vertex(plan, guid) not in without)
    for cable in plan.cables:
        a, b = find_vertex(plan, cable.a.guid), find_vertex(plan, cable.b.guid)
        if a in found and b in found and not free & {cable.a.port_id, cable.b.port_id}:
            edge = found.get_edge_data(a, b, {"cables": 0, GBPS: 0.0})
            found.add_edge(a, b, cables=edge["cables"] + 1, gbps=edge[GBPS] + find_cable_bandwidth(cable))
    return found


def find_vertex(plan: CompiledTopology, guid: str) -> str:
    """Return a device's vertex: its node's for an adapter."""
    return plan.devices[guid].node or guid


def find_cable_bandwidth(cable: Cable) -> float:
    """Return what a cable carries in Gb/s, 0 for a rate that is none."""
    return rate_to_gbps(cable.rate) if parse_rate(cable.rate) else 0.0


def find_connected_parts(fabric: FabricGraph) -> list[set[str]]:
    """Return what hangs together, the largest part first. A vertex without any cable is a part of its own."""
    return sorted(nx.connected_components(fabric), key=len, reverse=True)


def measure_bandwidth_between(plan: CompiledTopology, fabric: FabricGraph, one: str, other: str) -> float:
    """Return the bandwidth between two switches in Gb/s, over all ways that lead through switches."""
    switches = _switches(plan, fabric)
    if one not in switches or other not in switches:
        return 0.0
    return float(nx.maximum_flow_value(switches, one, other, capacity=GBPS))


def count_disjoint_paths(plan: CompiledTopology, fabric: FabricGraph, one: str, other: str) -> int:
    """Return over how many ways two switches are joined that have no switch in common between them."""
    switches = _switches(plan, fabric)
    if one not in switches or other not in switches:
        return 0
    return int(nx.node_connectivity(switches, one, other))


def measure_bisection_bandwidth(plan: CompiledTopology, fabric: FabricGraph) -> float:
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


def find_mixed_rail_switches(plan: CompiledTopology) -> dict[str, list[int]]:
    """Return the switches, by GUID, on which adapters of different rails meet: none where rails are kept apart."""
    rails: dict[str, set[int]] = {}
    for rail, switch in _cable_rails(plan):
        rails.setdefault(switch, set()).add(rail)
    return {switch: sorted(rails[switch]) for switch in plan.devices if len(rails.get(switch, ())) > 1}


def _cable_rails(plan: CompiledTopology) -> Iterator[tuple[int, str]]:
    """Yield the rail of every cable of a node, and the switch it leads to."""
    for node in dict.fromkeys(device.node for device in plan.devices.values() if device.node):
        for rail, cable in enumerate(plan.cables_of_node(node)):
            yield rail, next((end.guid for end in cable.ends if not end.node), "")


def _switches(plan: CompiledTopology, fabric: FabricGraph) -> FabricGraph:
    return fabric.subgraph(one for one in fabric if one in plan.devices and plan.devices[one].kind != "hca")


@dataclass(frozen=True)
class FailureImpact:
    """What is told of a loss: `lost` names it, `lines` say it; the figures are Gb/s and ways, before and after."""

    lost: str
    lines: tuple[str, ...]
    cut_off: tuple[str, ...] = ()
    leaf_pair: tuple[str, ...] = ()
    figures: dict[str, tuple[float, float]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        figures = {name: {"before": before, "after": after} for name, (before, after) in self.figures.items()}
        plain = {"lost": self.lost, "lines": list(self.lines), "cut_off": list(self.cut_off)}
        return plain | ({"leaf_pair": list(self.leaf_pair)} if self.leaf_pair else {}) | figures


def assess_failure(plan: CompiledTopology, what: str) -> FailureImpact:
    """Return what the loss of a node, a switch, or the cable at a port costs. Raises Trouble for a name that is none.

    A port is written `leaf-su01-r0[33]` or `n0005/mlx5_3`.
    """
    name, _, port = what.removesuffix("]").partition("[")
    if name and any(device.node == name for device in plan.devices.values()):
        return _FailureAssessment(plan, name, without=(name,)).assess()
    device = next((one for one in plan.devices.values() if name.replace("/", " ") in (one.name, one.guid)), None)
    if device is None:
        raise AssayError(
            f"the fabric {plan.name} has no {what!r}",
            fix="name a node, a switch, or a port: leaf-su01-r0[33], n0005/mlx5_3",
        )
    if device.kind == "switch" and not port:
        return _FailureAssessment(plan, device.name, without=(device.guid,)).assess()
    number = int(port) if re.fullmatch(r"\d{1,5}", port) else 1
    cable = plan.cable_at(PortId(device.guid, number))
    if cable is None or (port and not port.isdecimal()):
        raise AssayError(f"no cable is designed at {what}", fix=f"{device.name} has {device.ports} ports")
    return _FailureAssessment(plan, f"the cable from {cable.a} to {cable.b}", cable=cable).assess()


class _FailureAssessment:
    def __init__(
        self, plan: CompiledTopology, lost: str, without: tuple[str, ...] = (), cable: Cable | None = None
    ) -> None:
        self.plan, self.lost, self.without, self.cable = plan, lost, without, cable
        self.level = find_device_tiers(plan)
        self.before = build_fabric_graph(plan)
        self.after = build_fabric_graph(plan, without, [cable.a.port_id] if cable else ())

    def assess(self) -> FailureImpact:
        cut_off = self._cut_off()
        pair = self._pair()
        figures = {
            "bisection_gbps": (
                measure_bisection_bandwidth(self.plan, self.before),
                measure_bisection_bandwidth(self.plan, self.after),
            )
        }
        if pair:
            figures["leaf_pair_gbps"] = self._both(measure_bandwidth_between, pair)
            figures["leaf_pair_ways"] = self._both(count_disjoint_paths, pair)
        lines = (
            self._loses(),
            *self._cut(cut_off),
            *self._pair_line(pair, figures),
            self._half(figures),
            *self._rails(),
        )
        return FailureImpact(
            self.lost, tuple(line for line in lines if line), cut_off, tuple(map(self._name, pair)), figures
        )

    def _loses(self) -> str:
        if self.cable:
            return f"{self.lost} carries {self._own(self.cable)}"
        if self.without[0] in self.plan.devices:
            said = describe_capacity_loss(self.plan, self.without[0], self.level)
            return f"without {self.lost} {said}" if said else f"without {self.lost} nothing below it loses bandwidth"
        return f"without {self.lost} no other node loses bandwidth to any other"

    def _own(self, cable: Cable) -> str:
        """Say what share of its lower end's bandwidth a cable is."""
        low, high = sorted(cable.ends, key=lambda end: self.level.get(end.guid, 0))
        if low.node:
            return f"1 of the {len(self.plan.cables_of_node(low.node))} links of {low.node}"
        own = self.plan.cables_of_device(low.guid)
        up = [one for one in own for end in one.ends if self.level.get(end.guid, 0) > self.level[low.guid]]
        both = [one for one in up if high.guid in (one.a.guid, one.b.guid)]
        return f"1 of the {len(up)} cables up of {low.device}, 1 of the {len(both)} to {high.device}"

    def _cut_off(self) -> tuple[str, ...]:
        """Return what hangs together with the rest before, and not after."""
        largest = find_connected_parts(self.before)[0]
        rest = find_connected_parts(self.after)
        gone = largest - rest[0] - set(self.without) if rest else set()
        return tuple(sorted(map(self._name, gone)))

    def _cut(self, cut_off: tuple[str, ...]) -> Iterator[str]:
        if cut_off:
            few = ", ".join(cut_off[:4]) + (" …" if len(cut_off) > 4 else "")
            yield f"cut off from the rest: {len(cut_off)} of nodes and switches ({few})"

    def _pair(self) -> tuple[str, ...]:
        """Return two leaves between which traffic may go over what is lost: the farthest apart of those below it."""
        lost = self.without[0] if self.without else self._upper()
        if self.level.get(lost, 0) < 2:
            return ()
        below = [lost]
        for step in range(self.level[lost] - 1, 0, -1):
            rows = (row for guid in below for row in self.plan.rows[guid[2:]])
            below = list(dict.fromkeys(f"0x{row[1]}" for row in rows if self.level.get(f"0x{row[1]}") == step))
        if self.cable:
            low = min(self.cable.ends, key=lambda end: self.level[end.guid]).guid
            below = [low, *(one for one in below if one != low)] if self.level[low] == 1 else below
        return (below[0], below[-1]) if len(below) > 1 else ()

    def _upper(self) -> str:
        assert self.cable is not None, "either a device or a cable is lost"
        return max(self.cable.ends, key=lambda end: self.level.get(end.guid, 0)).guid

    def _both(self, measure: Any, pair: tuple[str, ...]) -> tuple[float, float]:
        return measure(self.plan, self.before, *pair), measure(self.plan, self.after, *pair)

    def _pair_line(self, pair: tuple[str, ...], figures: dict[str, tuple[float, float]]) -> Iterator[str]:
        if pair:
            (gbps, left), (many, fewer) = figures["leaf_pair_gbps"], figures["leaf_pair_ways"]
            one, other = map(self._name, pair)
            yield (
                f"between {one} and {other}: {left:g} of {gbps:g} Gb/s{_share(left, gbps)}, "
                f"over {fewer:g} of {many:g} ways that share no switch"
            )

    def _half(self, figures: dict[str, tuple[float, float]]) -> str:
        """Say it of the fabric as a whole; a lost node only takes its own traffic with it."""
        if self.without and self.without[0] not in self.plan.devices:
            return ""
        before, after = figures["bisection_gbps"]
        return f"between the two halves of the nodes: {after:g} of {before:g} Gb/s{_share(after, before)}"

    def _rails(self) -> Iterator[str]:
        if odd := find_mixed_rail_switches(self.plan):
            few = ", ".join(map(self._name, list(odd)[:3]))
            yield f"rails are not kept apart: adapters of several meet on {few}"

    def _name(self, vertex: str) -> str:
        device = self.plan.devices.get(vertex)
        return device.name if device else vertex


def _share(left: float, of: float) -> str:
    return f" ({left / of:.1%})" if of else ""
