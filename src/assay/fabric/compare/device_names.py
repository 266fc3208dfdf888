"""Which device of the design each discovered device is, by its name where its GUID and cables leave that open.

A name is a hint, never an identity. An adapter is known by its node's name, and by what other nodes call the adapter
of that rail: the design may call `HCA-1` mlx5_0.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from assay.fabric.compare.cable_discrepancies import EndResolver
from assay.fabric.compare.discrepancy import CablingDiscrepancy
from assay.fabric.compare.port_diff import DevicePermutation, PortPair
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.devices import DesignedDevice
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery, LocalProblem
from assay.fabric.lazy_discovery import LazyDiscovery
from assay.model.specs.fabric.cable import PortId

END_OF_WORD = re.compile("(?<=[a-z0-9])(?![a-z0-9])")
DRIVER = re.compile(r"(?i)\bmlx[0-9]+(?=_)")
FEW_NODES = 8
"""Our own choice: so few nodes may all be in each other's place."""
MIN_AGREEING_NODES = 0.9
"""Our own choice: so large a part of the nodes that use the same names must use them for the same rails."""


class WrongNames(NamedTuple):
    """Nodes all of whose adapters announce the name of another node of the design.

    `exchanged` have each other's names: two nodes, or several in a circle. `borrowed` are other nodes, each with the
    name that it announces.
    """

    exchanged: list[tuple[str, ...]]
    borrowed: dict[str, str]


def find_wrong_names(topology: CompiledTopology, discovery: FabricDiscovery) -> WrongNames:
    """Return the nodes that announce other nodes' names.

    Every comparison pays for this look at one adapter of each node. Where most nodes are called otherwise than in the
    design, names say nothing.
    """
    announced = _list_first_names(topology, discovery)
    odd = [name for node, name in announced if not name.startswith(node)]
    names = AnnouncedNames(topology, {})
    if not odd or len(odd) > max(FEW_NODES, len(announced) / 2) or not any(map(names.find_node, odd)):
        return WrongNames([], {})
    claimed = [node for node, name in announced if names.find_node(name) not in ("", node)]
    names = AnnouncedNames(topology, discovery.devices)
    called = {node: other for node in claimed if (other := names.find_common_name(node))}
    exchanged, left = [], dict(called)
    while left:
        walk = [next(iter(left))]
        while (there := left.pop(walk[-1], "")) not in ("", *walk):
            walk.append(there)
        if there:  # the last of them has the name of one of them: those from there on are in a circle
            exchanged.append(tuple(sorted(walk[walk.index(there) :])))
    in_rounds = {node for nodes in exchanged for node in nodes}
    return WrongNames(sorted(exchanged), {node: other for node, other in called.items() if node not in in_rounds})


def _list_first_names(topology: CompiledTopology, discovery: FabricDiscovery) -> list[tuple[str, str]]:
    """Return each node with what its first adapter announces, if that answers."""
    if isinstance(discovery, LazyDiscovery):
        heads = discovery.heads
        seen = [(device.node, heads.get(device.guid[2:])) for device in topology.first_adapters]
        return [(node, head[2].lstrip()) for node, head in seen if head]
    answering = [(device.node, discovery.devices.get(device.guid)) for device in topology.first_adapters]
    return [(node, device.name) for node, device in answering if device]


class AnnouncedNames:
    """The names that the devices of a discovery announce, read against a design."""

    def __init__(self, topology: CompiledTopology, devices: Mapping[str, DiscoveredDevice]) -> None:
        self.topology, self.devices = topology, devices

    def find_claims(self, guids: Iterable[str]) -> dict[str, str]:
        """Return, for each GUID, that of the designed device whose name it alone announces; nothing if in doubt."""
        claims = {}
        for device in filter(None, map(self.devices.get, guids)):
            if device.kind == "hca":
                claimed = self._resolve_node(self._split(device.name)[0]).get(device.guid)
            else:
                claimed = self._switches.get(device.name.lower())
            if claimed:
                claims[device.guid] = claimed
        return claims

    def find_node(self, name: str) -> str:
        """Return the node whose name an adapter's begins with, as the design spells it; "" without a node."""
        adapter = self._nodes.get(self._split(name)[0])
        return adapter.node if adapter else ""

    def find_common_name(self, node: str) -> str:
        """Return the node whose name all adapters of a node announce, "" if they differ, or name none."""
        devices = filter(None, map(self.devices.get, self._adapters_of_node[node.lower()]))
        named = {self.find_node(device.name) for device in devices}
        return named.pop() if len(named) == 1 else ""

    @cached_property
    def _nodes(self) -> Mapping[str, DesignedDevice]:
        """The first adapter of each node, by the node's name in lower case."""
        return {device.node.lower(): device for device in self.topology.first_adapters}

    @cached_property
    def _adapters_of_node(self) -> Mapping[str, list[str]]:
        """The GUIDs of the adapters that each node has in the design, by rail; by its name in lower case."""
        adapters: dict[str, list[str]] = defaultdict(list)
        for guid, device in self.topology.devices.items():
            if device.node:
                adapters[device.node.lower()].append(guid)
        return adapters

    @cached_property
    def _switches(self) -> Mapping[str, str]:
        announced = Counter(device.name.lower() for device in self.devices.values() if device.kind != "hca")
        designed = (device for device in self.topology if device.kind != "hca")
        return {device.name.lower(): device.guid for device in designed if announced[device.name.lower()] == 1}

    @cached_property
    def _announced(self) -> Mapping[str, dict[str, str]]:
        """What the adapters of each node call themselves beside its name, by GUID."""
        names: dict[str, dict[str, str]] = defaultdict(dict)
        for device in self.devices.values():
            if device.kind == "hca":
                node, own = self._split(device.name)
                names[node][device.guid] = own
        return names

    @cached_property
    def _orders(self) -> Mapping[frozenset[str], Counter[tuple[str, ...]]]:
        """In which orders nodes use the same names for their rails."""
        orders: dict[frozenset[str], Counter[tuple[str, ...]]] = defaultdict(Counter)
        for node, guids in self._adapters_of_node.items():
            own = self._announced.get(node, {})
            if own.keys() == set(guids):
                order = tuple(own[guid] for guid in guids)
                orders[frozenset(order)][order] += 1
        return orders

    def _resolve_node(self, node: str) -> Mapping[str, str]:
        """Return the designed adapter that each adapter of a node says it is, if that is clear for all of them.

        A node whose known adapters have other names than those of other nodes may name all of them otherwise.
        """
        announced = self._announced.get(node, {}) if node else {}
        guids = self._adapters_of_node.get(node, [])
        names = frozenset(announced.values())
        if not len(names) == len(announced) == len(guids):
            return {}
        designed = tuple(self._split(self.topology.devices[guid].name)[1] for guid in guids)
        orders = self._orders.get(names) or Counter([designed])
        order, times = orders.most_common(1)[0]
        if frozenset(order) != names or times < MIN_AGREEING_NODES * orders.total():
            return {}
        guid_of = dict(zip(order, guids, strict=True))
        claims = {guid: guid_of[own] for guid, own in announced.items()}
        return {} if any(claims.get(guid, guid) != guid for guid in guids) else claims

    def _split(self, name: str) -> tuple[str, str]:
        """Return the node, in lower case, whose name an adapter's begins with, and the rest; "" without a node."""
        lower = name.lower()
        for end in reversed([match.start() for match in END_OF_WORD.finditer(lower)]):
            if lower[:end] in self._nodes:
                return lower[:end], lower[end:]
        return "", lower


def resolve_designed_adapters(topology: CompiledTopology, discovery: FabricDiscovery) -> FabricDiscovery:
    """Return the discovery with each designed adapter under its device's GUID instead of its port's."""
    adapters = (guid for guid, device in discovery.devices.items() if device.kind == "hca")
    if not discovery.port_guids or all(guid in topology.devices for guid in adapters):
        return discovery
    owners = _PortOwners(topology, discovery).find()
    return _rename(discovery, owners) if owners else discovery


@dataclass
class _Votes:
    """How much speaks for GUIDs of devices (`own`), and for those of ports beside them (`shifted`)."""

    own: int = 0
    shifted: int = 0


class _PortOwners:
    """The designed adapters of a discovery that names adapters by the GUIDs of their ports.

    With ConnectX-4 and later, a port's GUID is its device's. With older adapters and in the simulator ibsim, it is the
    device's plus the port's number. The text does not tell which, and one GUID cannot: a replaced card may have the
    next number. So the adapters vote, each by whether the design has its GUID, and by whether its cable is in place
    then. Those of one driver, which some adapters announce (`n01 mlx4_0`), vote for themselves. An adapter with another
    node's name has no vote for a shift; what a shift makes of it is told as of any adapter that was moved.
    """

    def __init__(self, topology: CompiledTopology, discovery: FabricDiscovery) -> None:
        self.topology, self.discovery = topology, discovery
        self.names = AnnouncedNames(topology, {})

    def find(self) -> dict[str, str]:
        """Return the device's GUID by the port's, for each port of a designed adapter."""
        ports = self._list_adapter_ports()
        owners: dict[str, str] = {}
        for port in ports:
            owner = f"0x{max(int(port.guid, 16) - port.number, 0):016x}"
            designed = self.topology.devices.get(owner)
            if designed and designed.kind == "hca":
                owners[port.guid] = owner
        votes = self._count_votes(ports, owners)
        votes_of = {guid: votes.get(self._find_driver(guid), votes[""]) for guid in owners}
        owners = {guid: owner for guid, owner in owners.items() if votes_of[guid].shifted > votes_of[guid].own}
        while taken := [
            guid for guid, owner in owners.items() if owner in self.discovery.devices and owner not in owners
        ]:
            for guid in taken:  # the owner answers under its own GUID, so this is another device
                del owners[guid]
        return owners

    def _list_adapter_ports(self) -> dict[PortId, PortId | None]:
        """Return each port of a possible adapter with its other end. A port's GUID has one port."""
        far: dict[PortId, PortId | None] = dict.fromkeys(self.discovery.facts)
        for a, b, _ in self.discovery.cables:
            far |= {a: b, b: a}
        count = Counter(port.guid for port in far)
        switches = {guid for guid, device in self.discovery.devices.items() if device.kind != "hca"}
        return {port: there for port, there in far.items() if count[port.guid] == 1 and port.guid not in switches}

    def _count_votes(self, ports: Mapping[PortId, PortId | None], owners: Mapping[str, str]) -> dict[str, _Votes]:
        """Return the votes of each driver's adapters, and under "" those of all."""
        votes: dict[str, _Votes] = defaultdict(_Votes)
        peers = self.topology.peer_ports
        for port, there in ports.items():
            designed = peers.get(there) if there else None
            for key in {"", self._find_driver(port.guid)}:
                if port.guid in self.topology.devices:
                    votes[key].own += 1 + (designed == port)
                if not (owner := owners.get(port.guid)):
                    continue
                seen = self.discovery.devices.get(port.guid)
                if not seen or self.names.find_node(seen.name) in ("", self.topology.devices[owner].node):
                    votes[key].shifted += 1 + (designed == PortId(owner, port.number))
        return votes

    def _find_driver(self, guid: str) -> str:
        seen = self.discovery.devices.get(guid)
        match = DRIVER.search(seen.description) if seen else None
        return match[0].lower() if match else ""


def _rename(discovery: FabricDiscovery, owners: Mapping[str, str]) -> FabricDiscovery:
    def rename(port: PortId) -> PortId:
        return PortId(owners.get(port.guid, port.guid), port.number)

    devices: dict[str, DiscoveredDevice] = {}
    for guid, device in discovery.devices.items():
        owner = owners.get(guid, guid)
        known = devices.get(owner)
        devices[owner] = device._replace(guid=owner, ports=max(device.ports, known.ports if known else 0))
    return replace(
        discovery,
        cables=[DiscoveredCable(rename(a), rename(b), rate) for a, b, rate in discovery.cables],
        devices=devices,
        problems=tuple(_rename_problems(discovery, owners)),
        facts={rename(port): replace(facts, port=rename(port)) for port, facts in discovery.facts.items()},
    )


def _rename_problems(discovery: FabricDiscovery, owners: Mapping[str, str]) -> Iterator[str]:
    for problem in discovery.problems:
        if isinstance(problem, LocalProblem):
            yield LocalProblem(problem, *(owners.get(guid, guid) for guid in problem.devices))
        else:
            yield problem


class NewDevices:
    """The permutations of one new device in a known place, by the node or switch whose place it is: whose it is now.

    `owner` has the first of the other permutations that moved a unit, or filled its place.
    """

    def __init__(self, permutations: Sequence[DevicePermutation], resolver: EndResolver) -> None:
        self.permutations, self.resolver = permutations, resolver
        devices = resolver.topology.devices
        designed = {unit for guid, device in devices.items() for unit in (guid, device.node)}
        self.of_unit: dict[str, list[int]] = defaultdict(list)
        self.owner: dict[str, int] = {}
        for index, permutation in enumerate(permutations):
            first, place = permutation.moves[0]
            if permutation.closed or len(permutation.moves) > 1 or first in designed:
                for unit in (unit for move in permutation.moves for unit in move):
                    self.owner.setdefault(unit, index)
            else:
                self.of_unit[devices[place].node or place].append(index)
        self.indexes = {index for indexes in self.of_unit.values() for index in indexes}

    def list_joined(self, owner: int) -> list[int]:
        """Return the indexes of what is new in the places of a permutation."""
        return [index for unit, indexes in self.of_unit.items() for index in indexes if self.owner.get(unit) == owner]

    def list_alone(self) -> list[list[int]]:
        """Return the indexes of what is new in the places of all other units."""
        return [indexes for unit, indexes in self.of_unit.items() if unit not in self.owner]

    def map_places(self, indexes: Iterable[int]) -> dict[str, str]:
        """Return the place of each new device."""
        return {guid: place for index in indexes for guid, place in self.permutations[index].places.items()}

    def describe_renewed(self, permutation: DevicePermutation) -> list[str]:
        """Return the new GUIDs of the units of a permutation. These were known by the names that they announce."""
        devices = self.resolver.topology.devices
        news: dict[str, list[str]] = defaultdict(list)
        for new, old in permutation.renewed.items():
            news[devices[old].node or devices[old].name].append(new)
        return [f"{name} is known by its name, and has new GUIDs: {', '.join(guids)}" for name, guids in news.items()]

    def describe_joined(self, owner: int) -> list[str]:
        """Return what is new in the places of a permutation: another node in the place that was left, or adapters."""
        return [
            f"{_format_new(self.map_places(indexes), self.resolver)}, which the design lacks, is in the place of"
            f" {format_unit(unit, self.resolver)}"
            for unit, indexes in self.of_unit.items()
            if self.owner.get(unit) == owner
        ]


def list_untold_devices(
    permutations: Sequence[DevicePermutation], explained: Mapping[int, Sequence[PortPair]], resolver: EndResolver
) -> dict[str, str]:
    """Return new devices of which no cable is in its place, by GUID, each with its name in the design.

    `report_misplaced_devices` tells them only if other devices of their node are in their places.
    """
    devices = resolver.topology.devices
    reported = {
        devices[place].node or place
        for index, permutation in enumerate(permutations)
        if explained.get(index)
        for place in permutation.places.values()
    }
    olds = {new: old for each in permutations for new, old in each.renewed.items()}
    return {new: devices[old].name for new, old in olds.items() if (devices[old].node or old) not in reported}


def tell_new_devices(discrepancy: CablingDiscrepancy, names: Mapping[str, str]) -> CablingDiscrepancy:
    """Add to a discrepancy of cables the new GUIDs of the devices at them that are in `names`."""
    new = {end.guid: names[end.guid] for end in discrepancy.ends if end.guid in names}
    if not new:
        return discrepancy
    facts = "; ".join(f"{name} has the new GUID {guid}" for guid, name in new.items())
    fix = f"; then write {' and '.join(new)} into the design"
    corrections = tuple(f"{correction}{fix}" for correction in discrepancy.corrections)
    return replace(discrepancy, summary=f"{discrepancy.summary}; {facts}", corrections=corrections)


def _format_new(places: Mapping[str, str], resolver: EndResolver) -> str:
    """Return what answers in places by the name that it announces, and its GUIDs."""
    names = [device.name for guid in places if (device := resolver.discovery.devices.get(guid))]
    hosts = {name.partition(" ")[0] for name in names}
    announced = names[0] if len(set(names)) == 1 else hosts.pop() if len(hosts) == 1 else ", ".join(names)
    return f"{announced} ({', '.join(places)})" if announced else ", ".join(places)


def format_name(unit: str, resolver: EndResolver) -> str:
    """Return the name of a node or device, in the design or as it announces itself."""
    designed = resolver.topology.devices.get(unit)
    if designed:
        return designed.name
    device = resolver.discovery.devices.get(unit)
    return f"{device.name} ({unit})" if device else unit


def format_unit(unit: str, resolver: EndResolver) -> str:
    """Return a designed unit's name with its rack and U."""
    devices = resolver.topology.devices
    device = devices.get(unit) or next(device for device in devices.values() if device.node == unit)
    return f"{device.name if unit in devices else unit}{format_place(device.rack, device.u)}"


def format_place(rack: str, u: int) -> str:
    """Return a rack and U in brackets, "" without a rack."""
    return f" ({rack}{f' U{u}' if u else ''})" if rack else ""
