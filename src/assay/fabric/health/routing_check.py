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

ENTERS_UNREAD = "the route enters a switch without a table"


@dataclass(frozen=True, slots=True)
class UnreachableDestination:
    """An adapter's port that `switches` cannot reach by one of its LIDs, and why the first of them cannot."""

    port: PortId
    lid: int
    switches: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class RoutingReport:
    """What is wrong with the routes to `destinations` LIDs. `credit_loop` has the ports of one loop in order.

    What is not known: `unread` are the switches of the discovery without a table, `undecided` counts the LIDs with a
    route into one of those, `unaddressed` are the adapters' ports whose LID neither the discovery nor a table tells.
    """

    destinations: int
    unreachable: tuple[UnreachableDestination, ...]
    credit_loop: tuple[PortId, ...]
    unread: tuple[str, ...]
    unaddressed: tuple[PortId, ...]
    undecided: int = 0

    @property
    def partial(self) -> bool:
        """Whether some routes were not judged, or none was."""
        return bool(self.unread or self.unaddressed or not self.destinations)


def check_routing(
    discovery: FabricDiscovery, tables: Iterable[ForwardingTable], addresses: LidAddresses
) -> RoutingReport:
    """Follow every route from each switch that has adapters to each adapter."""
    routes = _Routes(discovery, list(tables), addresses)
    dependencies: nx.DiGraph[PortId] = nx.DiGraph()
    unreachable = []
    undecided = set()
    for lid, end in routes.destinations.items():
        lost: dict[str, str] = {}
        for switch in routes.sources:
            channels, reason = routes.follow(switch, lid, end)
            if reason == ENTERS_UNREAD:
                undecided.add(lid)
            elif reason:
                lost[switch] = reason
            nx.add_path(dependencies, channels)
        if lost:
            unreachable.append(UnreachableDestination(end, lid, tuple(lost), next(iter(lost.values()))))
    open_lids = undecided - {one.lid for one in unreachable}
    found = (len(routes.destinations), tuple(unreachable), _find_loop(dependencies))
    return RoutingReport(*found, routes.unread, routes.unaddressed, len(open_lids))


class _Routes:
    def __init__(self, discovery: FabricDiscovery, tables: list[ForwardingTable], addresses: LidAddresses) -> None:
        self.peers: dict[PortId, PortId] = {}
        for a, b, _ in discovery.cables:
            self.peers[a], self.peers[b] = b, a
        self.ports: Mapping[str, dict[int, int]] = {
            table.switch: {entry.lid: entry.port for entry in table.entries} for table in tables
        }
        at_switch: dict[str, list[PortId]] = defaultdict(list)
        for port, far in self.peers.items():
            if discovery.devices[port.guid].kind == "hca" and discovery.devices[far.guid].kind == "switch":
                at_switch[far.guid].append(port)
        adapters = [port for ports in at_switch.values() for port in ports]
        self.destinations = _find_lids(adapters, tables, addresses)
        self.sources = [switch for switch in at_switch if switch in self.ports]
        self.unread = tuple(guid for guid, device in discovery.devices.items()
                            if device.kind == "switch" and guid not in self.ports)  # fmt: skip
        self.unaddressed = tuple(sorted({*adapters} - {*self.destinations.values()}))

    def follow(self, switch: str, lid: int, end: PortId) -> tuple[list[PortId], str]:
        """Return the ports between switches on the way to a LID at `end`, and why the way ends, "" if it arrives."""
        channels: list[PortId] = []
        passed = {switch}
        while True:
            number = self.ports[switch].get(lid)
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
                return channels, ENTERS_UNREAD if far.guid in self.unread else f"the route ends at {far.guid}"
            channels.append(here)
            passed.add(switch := far.guid)


def _find_lids(adapters: list[PortId], tables: list[ForwardingTable], addresses: LidAddresses) -> dict[int, PortId]:
    """Return the adapters' ports by LID: as the discovery tells, or as tables that name port GUIDs do."""
    wanted = {*adapters}
    found = {lid: port for lid, port in addresses.lid_ports.items() if port in wanted}
    by_guid = {**{port.guid: port for port in adapters}, **addresses.ports}
    for table in tables:
        for entry in table.entries:
            if entry.guid and entry.lid not in found and by_guid.get(entry.guid) in wanted:
                found[entry.lid] = by_guid[entry.guid]
    return found


def _find_loop(dependencies: nx.DiGraph[PortId]) -> tuple[PortId, ...]:
    try:
        return tuple(edge[0] for edge in nx.find_cycle(dependencies))
    except nx.NetworkXNoCycle:
        return ()


def format_routing(report: RoutingReport, discovery: FabricDiscovery) -> Iterator[str]:
    """Yield the report as lines of text."""
    names = {guid: device.name for guid, device in discovery.devices.items()}
    well = report.destinations - len(report.unreachable) - report.undecided
    yield f"{well} of {report.destinations} LIDs of adapters can be reached from every switch"
    for one in report.unreachable[:20]:
        where = f"{names.get(one.port.guid, one.port.guid)} (LID {one.lid})"
        yield f"  {where}: {len(one.switches)} switches cannot reach it: {one.reason}"
    if report.credit_loop:
        loop = " → ".join(f"{names.get(port.guid, port.guid)}[{port.number}]" for port in report.credit_loop)
        yield f"a credit loop, if all traffic uses one virtual lane: {loop}"
    if report.unread:
        few = ", ".join(names[guid] for guid in report.unread[:3])
        yield f"not known: {len(report.unread)} switches have no whole forwarding table here ({few})"
    if report.unaddressed:
        few = ", ".join(names[port.guid] for port in report.unaddressed[:3])
        yield f"not known: {len(report.unaddressed)} ports of adapters have no LID here ({few})"
