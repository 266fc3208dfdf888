"""Checks how switches route: destinations that some switch cannot reach, and loops in which packets may block.

A credit loop is a cycle of links, each of which waits for buffer space behind the next. It blocks the fabric for ever
once all of its links are full. It is found as a cycle of the channel dependency graph, over all routes between adapters
(Dally and Seitz, Deadlock-Free Message Routing in Multiprocessor Interconnection Networks). That supposes one virtual
lane: routing that separates layers by service level (LASH, Torus-2QoS) may have such a cycle and not block.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import networkx as nx

from assay.fabric.discovery import FabricDiscovery
from assay.fabric.readers.forwarding_tables import ForwardingTable
from assay.fabric.readers.lid_addresses import LidAddresses
from assay.model.fabric.ports_and_cables import PortId


@dataclass(frozen=True, slots=True)
class UnreachableDestination:
    """A destination that `switches` cannot reach, by GUID, and why the first of them cannot."""

    guid: str
    switches: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class RoutingReport:
    """What is wrong with the routes. `credit_loop` has the ports of one loop in order, none without a loop.

    `unread` are the switches of the discovery without a table: what they do is not known.
    """

    destinations: int
    unreachable: tuple[UnreachableDestination, ...]
    credit_loop: tuple[PortId, ...]
    unread: tuple[str, ...]


def check_routing(
    discovery: FabricDiscovery, tables: Iterable[ForwardingTable], addresses: LidAddresses
) -> RoutingReport:
    """Follow every route from each switch that has adapters to each adapter."""
    routes = _Routes(discovery, tables, addresses)
    dependencies: nx.DiGraph[PortId] = nx.DiGraph()
    unreachable = []
    for guid, end in routes.destinations.items():
        lost: dict[str, str] = {}
        for switch in routes.sources:
            channels, reason = routes.follow(switch, guid, end)
            if reason:
                lost[switch] = reason
            nx.add_path(dependencies, channels)
        if lost:
            unreachable.append(UnreachableDestination(guid, tuple(lost), next(iter(lost.values()))))
    return RoutingReport(len(routes.destinations), tuple(unreachable), _find_loop(dependencies), routes.unread)


class _Routes:
    def __init__(self, discovery: FabricDiscovery, tables: Iterable[ForwardingTable], addresses: LidAddresses) -> None:
        self.peers: dict[PortId, PortId] = {}
        for a, b, _ in discovery.cables:
            self.peers[a], self.peers[b] = b, a
        self.ports: Mapping[str, dict[str, int]] = {
            table.switch: {entry.guid: entry.port for entry in table.entries} for table in tables
        }
        at_switch: dict[str, list[PortId]] = defaultdict(list)
        for port, far in self.peers.items():
            if discovery.devices[port.guid].kind == "hca" and discovery.devices[far.guid].kind == "switch":
                at_switch[far.guid].append(port)
        port_guids = {port: guid for guid, port in addresses.ports.items()}
        self.destinations = {port_guids.get(port, port.guid): port for ports in at_switch.values() for port in ports}
        self.sources = [switch for switch in at_switch if switch in self.ports]
        self.unread = tuple(guid for guid, device in discovery.devices.items()
                            if device.kind == "switch" and guid not in self.ports)  # fmt: skip

    def follow(self, switch: str, guid: str, end: PortId) -> tuple[list[PortId], str]:
        """Return the ports between switches on the way to a destination, and why the way ends, "" if it arrives."""
        channels: list[PortId] = []
        passed = {switch}
        while True:
            number = self.ports[switch].get(guid)
            if number is None:
                return channels, f"{switch} has no route to it"
            here = PortId(switch, number)
            far = self.peers.get(here)
            if far is None:
                return channels, f"{switch} sends it to port {number}, which has no link"
            if far == end:
                return channels, ""
            if far.guid in passed:
                return channels, f"the route passes {far.guid} twice"
            if far.guid not in self.ports:
                return channels, f"the route ends at {far.guid}"
            channels.append(here)
            passed.add(switch := far.guid)


def _find_loop(dependencies: nx.DiGraph[PortId]) -> tuple[PortId, ...]:
    try:
        return tuple(edge[0] for edge in nx.find_cycle(dependencies))
    except nx.NetworkXNoCycle:
        return ()


def format_routing(report: RoutingReport, discovery: FabricDiscovery) -> Iterator[str]:
    """Yield the report as lines of text."""
    names = {guid: device.name for guid, device in discovery.devices.items()}
    bad = len(report.unreachable)
    yield f"{report.destinations - bad} of {report.destinations} adapter ports can be reached from every switch"
    for one in report.unreachable[:20]:
        yield f"  {one.guid}: {len(one.switches)} switches cannot reach it: {one.reason}"
    if report.credit_loop:
        loop = " → ".join(f"{names.get(port.guid, port.guid)}[{port.number}]" for port in report.credit_loop)
        yield f"a credit loop, if all traffic uses one virtual lane: {loop}"
    if report.unread:
        few = ", ".join(names[guid] for guid in report.unread[:3])
        yield f"not known: {len(report.unread)} switches have no forwarding table here ({few})"
