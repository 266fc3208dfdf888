"""What hangs on the fabrics of a repository: which specs' nodes, and where the ends of listed cables are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from assay.fleet.check import FilePosition
from assay.fleet.repository_draft import HostDeclaration, RepositoryDraft
from assay.model.fabric.design_cables_and_partitions import ExplicitEnd, parse_port_range
from assay.model.fabric.fabric_design import FabricDesign
from assay.model.fabric.ports_and_cables import PortId
from assay.model.fabric.switch_tiers import TierName
from assay.model.specs.node_spec import NodeSpec


class CablePlug(NamedTuple):
    """One end of a listed cable, its port (None where it names no device), and where it is written."""

    end: ExplicitEnd
    port: PortId | None
    other: ExplicitEnd
    draft: RepositoryDraft
    path: tuple[str | int, ...]

    @property
    def place(self) -> FilePosition:
        """File, line and column. Looked up where something is to be told, since there may be very many."""
        key, *path = self.path
        return self.draft.find_position(str(key), *path)


def list_design_spec_pairs(draft: RepositoryDraft) -> Iterator[tuple[FabricDesign, NodeSpec]]:
    """Yield each design with each spec of which it has nodes."""
    designs = draft.specs_of_model(FabricDesign)
    specs, hosts = draft.specs_of_model(NodeSpec), {host.name: host for host in draft.hosts} if designs else {}
    for design in designs.values():
        found = {host.settings.node_spec: None for host in _hosts(design, hosts) if host.settings}
        yield from ((design, specs[name]) for name in found if name in specs)


class DesignCabling:
    """The devices of one design by GUID and by name, as far as the repository knows them."""

    def __init__(self, draft: RepositoryDraft, design: FabricDesign, hosts: Mapping[str, HostDeclaration]) -> None:
        self._draft, self.design, self._hosts = draft, design, hosts
        self._specs = draft.specs_of_model(NodeSpec)
        self._switches = {switch.guid: (tier, number) for _, tier, number, switch in design.switches()}
        self._names = {name: switch.guid for name, _, _, switch in design.switches()}
        self._nodes = set(design.node_names())
        self._known: dict[tuple[TierName, int], frozenset[int]] = {}
        self._own = {end.device: end.guid for cable in design.cables for _, end in cable.ends if end.guid}
        self._own |= {called: one.guid for one in design.devices for called in (one.guid, one.name)}

    def list_cable_plugs(self) -> Iterator[CablePlug]:
        """Yield both ends of every listed cable."""
        for number, cable in enumerate(self.design.cables):
            for (side, end), other in zip(cable.ends, (cable.b, cable.a), strict=True):
                yield self._plug(end, other, "cables", number, side)

    def list_override_targets(self) -> Iterator[CablePlug]:
        """Yield where overrides put plugs."""
        for number, one in enumerate(self.design.overrides):
            if one.to:
                to, origin = (ExplicitEnd(device=end.device, port=end.port) for end in (one.to, one))
                yield self._plug(to, origin, "overrides", number, "to")

    def list_overridden_plugs(self) -> Iterator[CablePlug]:
        """Yield the plugs of the rules that overrides name."""
        for number, one in enumerate(self.design.overrides):
            end = ExplicitEnd(device=one.device, port=one.port)
            yield self._plug(end, end, "overrides", number)

    def list_spare_ports(self) -> Iterator[CablePlug]:
        """Yield the ports that are free on purpose; the first port of a device of which all are."""
        for number, one in enumerate(self.design.spares):
            for port in parse_port_range(one.ports) if one.ports else range(1, 2):
                end = ExplicitEnd(device=one.device, port=port)
                yield self._plug(end, end, "spares", number)

    def _plug(self, end: ExplicitEnd, other: ExplicitEnd, *path: str | int) -> CablePlug:
        return CablePlug(end, self._port(end), other, self._draft, (f"FabricDesign/{self.design.name}", *path))

    def _port(self, end: ExplicitEnd) -> PortId | None:
        called = end.device
        known = self._names.get(called) or self._adapter(called) or self._own.get(called)
        guid = end.guid or known or end.guid_or_device_guid
        return PortId(guid, end.port) if guid else None

    def port_count(self, port: PortId) -> int | None:
        """Return how many ports the device of a port has; None where nobody says."""
        if port.guid in self._switches:
            return self.design.switch.port_count if self.design.switch else None
        return 1 if port.guid in self.adapters else self._most.get(port.guid)

    @cached_property
    def _most(self) -> Mapping[str, int]:
        model = self.design.switch.port_count if self.design.switch else 0
        found = {one.guid: one.ports or (model if one.kind == "switch" else 1) for one in self.design.devices}
        return {guid: ports for guid, ports in found.items() if ports}

    def is_cabled_by_rules(self, port: PortId) -> bool:
        """Whether the rules cable a port, and no override frees it."""
        return self.is_port_of_rules(port) and port not in self._freed

    @cached_property
    def _freed(self) -> frozenset[PortId]:
        """Ports of the rules that stay free: of a plug that is elsewhere, and both of a cable that is taken out."""
        freed = {plug.port for plug in self.list_overridden_plugs() if plug.port}
        gone = [
            plug.port
            for plug, one in zip(self.list_overridden_plugs(), self.design.overrides, strict=True)
            if not one.to
        ]
        freed |= {far for port in gone if port and (far := self._far(port))}
        return frozenset(freed)

    def _far(self, port: PortId) -> PortId | None:
        """Return the other end of a cable of the rules."""
        place, wiring = self._switches.get(port.guid), self.design.fat_tree
        found = wiring.find_far_end(*place, port.number) if place and wiring else None
        if found is None or wiring is None:
            return None
        tier, number, far = found
        if tier == "nodes":
            node, rail = divmod(number, wiring.rails)
            host = self._hosts.get(self.design.node_names()[node])
            guids = host.settings.hca_guids if host and host.settings else []
            return PortId(guids[rail], far) if rail < len(guids) else None
        return PortId(dict(self.design.tiers)[tier].at[number].guid, far)

    def is_port_of_rules(self, port: PortId) -> bool:
        """Whether the rules cable a port."""
        if port.guid in self._switches:
            return port.number in self._used(*self._switches[port.guid])
        return port.number == 1 and port.guid in self.adapters and self.adapters[port.guid][0] in self._nodes

    def _used(self, tier: TierName, number: int) -> frozenset[int]:
        key = tier, number
        if key not in self._known:
            self._known[key] = frozenset(self.design.used_ports(tier, number))
        return self._known[key]

    def find_rail(self, port: PortId) -> int | None:
        """Return the rail of a leaf or of a node's adapter."""
        if (place := self._switches.get(port.guid)) is not None:
            return (
                self.design.fat_tree.rail_of_switch(*place) if self.design.fat_tree and place[0] == "leaves" else None
            )
        return self.adapters[port.guid][1] if port.guid in self.adapters else None

    def is_leaf(self, port: PortId) -> bool:
        """Whether the port is a leaf's."""
        return port.guid in self._switches and self._switches[port.guid][0] == "leaves"

    @cached_property
    def adapters(self) -> Mapping[str, tuple[str, int]]:
        """Every adapter of the inventory by GUID: its node and its rail."""
        read = [(host.name, host.settings.hca_guids) for host in self._hosts.values() if host.settings]
        return {guid: (name, rail) for name, guids in read for rail, guid in enumerate(guids)}

    def _adapter(self, name: str) -> str | None:
        """Return the GUID of `n0001 mlx5_0`."""
        node, _, hca = name.partition(" ")
        host = self._hosts.get(node)
        spec = self._specs.get(host.settings.node_spec) if host and host.settings else None
        rail = next((one.rail for one in spec.hcas if one.name == hca), None) if spec else None
        guids = host.settings.hca_guids if host and host.settings else []
        return guids[rail] if rail is not None and rail < len(guids) else None


def _hosts(design: FabricDesign, hosts: Mapping[str, HostDeclaration]) -> Iterator[HostDeclaration]:
    return (hosts[name] for name in design.node_names() if name in hosts)
