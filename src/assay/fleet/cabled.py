"""What hangs on the fabrics of a repository: which specs' nodes, and where the ends of listed cables are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from assay.fleet.draft import Draft, HostEntry
from assay.fleet.rules.book import Place
from assay.model.cable import Port
from assay.model.design import FabricDesign
from assay.model.explicit import ExplicitEnd
from assay.model.nodespec import NodeSpec


class Plug(NamedTuple):
    """One end of a listed cable: where it is written, and its port; None where it names no device."""

    place: Place
    end: ExplicitEnd
    port: Port | None
    other: ExplicitEnd


def pairs(draft: Draft) -> Iterator[tuple[FabricDesign, NodeSpec]]:
    """Yield each design with each spec of which it has nodes."""
    designs = draft.of(FabricDesign)
    specs, hosts = draft.of(NodeSpec), {host.name: host for host in draft.hosts} if designs else {}
    for design in designs.values():
        found = {host.read.node_spec: None for host in _hosts(design, hosts) if host.read}
        yield from ((design, specs[name]) for name in found if name in specs)


class Cabling:
    """The devices of one design by GUID and by name, as far as the repository knows them."""

    def __init__(self, draft: Draft, design: FabricDesign, hosts: Mapping[str, HostEntry]) -> None:
        self._draft, self.design, self._hosts = draft, design, hosts
        self._specs = draft.of(NodeSpec)
        self._switches = {switch.guid: (tier, number) for _, tier, number, switch in design.switches()}
        self._names = {name: switch.guid for name, _, _, switch in design.switches()}
        self._nodes = set(design.node_names())

    def plugs(self) -> Iterator[Plug]:
        """Yield both ends of every listed cable."""
        own = {end.device: end.guid for cable in self.design.cables for _, end in cable.ends if end.guid}
        for number, cable in enumerate(self.design.cables):
            for (side, end), other in zip(cable.ends, (cable.b, cable.a), strict=True):
                guid = end.guid or self._names.get(end.device) or self._adapter(end.device) or own.get(end.device)
                place = self._draft.at(f"FabricDesign/{self.design.name}", "cables", number, side)
                yield Plug(place, end, Port(guid, end.port) if guid else None, other)

    def most(self, port: Port) -> int | None:
        """Return how many ports the device of a port has; None where nobody says."""
        if port.guid in self._switches:
            return self.design.switch.most if self.design.switch else None
        return 1 if port.guid in self.adapters else None

    def uses(self, port: Port) -> bool:
        """Whether the rules cable a port."""
        if port.guid in self._switches:
            return port.number in self.design.ports_used(*self._switches[port.guid])
        return port.number == 1 and port.guid in self.adapters and self.adapters[port.guid][0] in self._nodes

    def rail(self, port: Port) -> int | None:
        """Return the rail of a leaf or of a node's adapter."""
        if (place := self._switches.get(port.guid)) is not None:
            return self.design.wiring.rail(*place) if self.design.wiring and place[0] == "leaves" else None
        return self.adapters[port.guid][1] if port.guid in self.adapters else None

    def is_leaf(self, port: Port) -> bool:
        """Whether the port is a leaf's."""
        return port.guid in self._switches and self._switches[port.guid][0] == "leaves"

    @cached_property
    def adapters(self) -> Mapping[str, tuple[str, int]]:
        """Every adapter of the inventory by GUID: its node and its rail."""
        read = [(host.name, host.read.hca_guids) for host in self._hosts.values() if host.read]
        return {guid: (name, rail) for name, guids in read for rail, guid in enumerate(guids)}

    def _adapter(self, name: str) -> str | None:
        """Return the GUID of `n0001 mlx5_0`."""
        node, _, hca = name.partition(" ")
        host = self._hosts.get(node)
        spec = self._specs.get(host.read.node_spec) if host and host.read else None
        rail = next((one.rail for one in spec.hcas if one.name == hca), None) if spec else None
        guids = host.read.hca_guids if host and host.read else []
        return guids[rail] if rail is not None and rail < len(guids) else None


def _hosts(design: FabricDesign, hosts: Mapping[str, HostEntry]) -> Iterator[HostEntry]:
    return (hosts[name] for name in design.node_names() if name in hosts)
