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
from assay.model.span import span
from assay.model.tiers import Tier


class Plug(NamedTuple):
    """One end of a listed cable, its port (None where it names no device), and where it is written."""

    end: ExplicitEnd
    port: Port | None
    other: ExplicitEnd
    draft: Draft
    path: tuple[str | int, ...]

    @property
    def place(self) -> Place:
        """File, line and column. Looked up where something is to be told, since there may be very many."""
        key, *path = self.path
        return self.draft.at(str(key), *path)


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
        self._known: dict[tuple[Tier, int], frozenset[int]] = {}
        self._own = {end.device: end.guid for cable in design.cables for _, end in cable.ends if end.guid}
        self._own |= {called: one.guid for one in design.devices for called in (one.guid, one.name)}

    def plugs(self) -> Iterator[Plug]:
        """Yield both ends of every listed cable."""
        for number, cable in enumerate(self.design.cables):
            for (side, end), other in zip(cable.ends, (cable.b, cable.a), strict=True):
                yield self._plug(end, other, "cables", number, side)

    def moved(self) -> Iterator[Plug]:
        """Yield where overrides put plugs."""
        for number, one in enumerate(self.design.overrides):
            if one.to:
                to, origin = (ExplicitEnd(device=end.device, port=end.port) for end in (one.to, one))
                yield self._plug(to, origin, "overrides", number, "to")

    def overridden(self) -> Iterator[Plug]:
        """Yield the plugs of the rules that overrides name."""
        for number, one in enumerate(self.design.overrides):
            end = ExplicitEnd(device=one.device, port=one.port)
            yield self._plug(end, end, "overrides", number)

    def spare(self) -> Iterator[Plug]:
        """Yield the ports that are free on purpose; the first port of a device of which all are."""
        for number, one in enumerate(self.design.spares):
            for port in span(one.ports) if one.ports else range(1, 2):
                end = ExplicitEnd(device=one.device, port=port)
                yield self._plug(end, end, "spares", number)

    def _plug(self, end: ExplicitEnd, other: ExplicitEnd, *path: str | int) -> Plug:
        return Plug(end, self._port(end), other, self._draft, (f"FabricDesign/{self.design.name}", *path))

    def _port(self, end: ExplicitEnd) -> Port | None:
        called = end.device
        known = self._names.get(called) or self._adapter(called) or self._own.get(called)
        guid = end.guid or known or end.known_guid
        return Port(guid, end.port) if guid else None

    def most(self, port: Port) -> int | None:
        """Return how many ports the device of a port has; None where nobody says."""
        if port.guid in self._switches:
            return self.design.switch.most if self.design.switch else None
        return 1 if port.guid in self.adapters else self._most.get(port.guid)

    @cached_property
    def _most(self) -> Mapping[str, int]:
        model = self.design.switch.most if self.design.switch else 0
        found = {one.guid: one.ports or (model if one.kind == "switch" else 1) for one in self.design.devices}
        return {guid: ports for guid, ports in found.items() if ports}

    def uses(self, port: Port) -> bool:
        """Whether the rules cable a port, and no override frees it."""
        return self.by_rule(port) and port not in self._freed

    @cached_property
    def _freed(self) -> frozenset[Port]:
        """Ports of the rules that stay free: of a plug that is elsewhere, and both of a cable that is taken out."""
        freed = {plug.port for plug in self.overridden() if plug.port}
        gone = [plug.port for plug, one in zip(self.overridden(), self.design.overrides, strict=True) if not one.to]
        freed |= {far for port in gone if port and (far := self._far(port))}
        return frozenset(freed)

    def _far(self, port: Port) -> Port | None:
        """Return the other end of a cable of the rules."""
        place, wiring = self._switches.get(port.guid), self.design.wiring
        found = wiring.far(*place, port.number) if place and wiring else None
        if found is None or wiring is None:
            return None
        tier, number, far = found
        if tier == "nodes":
            node, rail = divmod(number, wiring.rails)
            host = self._hosts.get(self.design.node_names()[node])
            guids = host.read.hca_guids if host and host.read else []
            return Port(guids[rail], far) if rail < len(guids) else None
        return Port(dict(self.design.tiers)[tier].at[number].guid, far)

    def by_rule(self, port: Port) -> bool:
        """Whether the rules cable a port."""
        if port.guid in self._switches:
            return port.number in self._used(*self._switches[port.guid])
        return port.number == 1 and port.guid in self.adapters and self.adapters[port.guid][0] in self._nodes

    def _used(self, tier: Tier, number: int) -> frozenset[int]:
        key = tier, number
        if key not in self._known:
            self._known[key] = frozenset(self.design.ports_used(tier, number))
        return self._known[key]

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
