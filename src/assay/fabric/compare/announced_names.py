"""Which device of the design each discovered device says that it is.

A name is a hint, never an identity. It decides what GUIDs and cables leave open: which device a new GUID is, and
whether cards or cables were exchanged. An adapter is known by its node's name, and by what other nodes call the adapter
of that rail: the design may call `HCA-1` mlx5_0.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.designed_device import DesignedDevice
from assay.fabric.discovery import DiscoveredDevice, FabricDiscovery
from assay.fabric.lazy_discovery import LazyDiscovery

END_OF_WORD = re.compile("(?<=[a-z0-9])(?![a-z0-9])")
FEW_NODES, MIN_AGREEING_NODES = 8, 0.9
"""Our own choice. So few nodes may all be in each other's place. So large a part of the nodes that use the same names
must use them for the same rails."""


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
        found = {}
        for device in filter(None, map(self.devices.get, guids)):
            if device.kind == "hca":
                claimed = self._resolve_node(self._split(device.name)[0]).get(device.guid)
            else:
                claimed = self._switches.get(device.name.lower())
            if claimed:
                found[device.guid] = claimed
        return found

    def find_node(self, name: str) -> str:
        """Return the node whose name an adapter's begins with, as the design spells it; "" without a node."""
        found = self._nodes.get(self._split(name)[0])
        return found.node if found else ""

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
        found: dict[str, list[str]] = defaultdict(list)
        for guid, device in self.topology.devices.items():
            if device.node:
                found[device.node.lower()].append(guid)
        return found

    @cached_property
    def _switches(self) -> Mapping[str, str]:
        announced = Counter(device.name.lower() for device in self.devices.values() if device.kind != "hca")
        designed = (device for device in self.topology if device.kind != "hca")
        return {device.name.lower(): device.guid for device in designed if announced[device.name.lower()] == 1}

    @cached_property
    def _announced(self) -> Mapping[str, dict[str, str]]:
        """What the adapters of each node call themselves beside its name, by GUID."""
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for device in self.devices.values():
            if device.kind == "hca":
                node, own = self._split(device.name)
                found[node][device.guid] = own
        return found

    @cached_property
    def _orders(self) -> Mapping[frozenset[str], Counter[tuple[str, ...]]]:
        """In which orders nodes use the same names for their rails."""
        found: dict[frozenset[str], Counter[tuple[str, ...]]] = defaultdict(Counter)
        for node, guids in self._adapters_of_node.items():
            own = self._announced.get(node, {})
            if own.keys() == set(guids):
                order = tuple(own[guid] for guid in guids)
                found[frozenset(order)][order] += 1
        return found

    def _resolve_node(self, node: str) -> Mapping[str, str]:
        """Return the designed adapter that each adapter of a node says it is, if that is clear for all of them.

        A node whose known adapters have other names than those of other nodes may name all of them otherwise.
        """
        announced = self._announced.get(node, {}) if node else {}
        guids = self._adapters_of_node.get(node, [])
        names = frozenset(announced.values())
        if not len(names) == len(announced) == len(guids):
            return {}
        orders = self._orders.get(names) or Counter([self._list_designed_names(node)])
        order, times = orders.most_common(1)[0]
        if frozenset(order) != names or times < MIN_AGREEING_NODES * orders.total():
            return {}
        guid_of = dict(zip(order, guids, strict=True))
        claims = {guid: guid_of[own] for guid, own in announced.items()}
        return {} if any(claims.get(guid, guid) != guid for guid in guids) else claims

    def _list_designed_names(self, node: str) -> tuple[str, ...]:
        return tuple(self._split(self.topology.devices[guid].name)[1] for guid in self._adapters_of_node[node])

    def _split(self, name: str) -> tuple[str, str]:
        """Return the node, in lower case, whose name an adapter's begins with, and the rest; "" without a node."""
        lower = name.lower()
        for end in reversed([match.start() for match in END_OF_WORD.finditer(lower)]):
            if lower[:end] in self._nodes:
                return lower[:end], lower[end:]
        return "", lower
