"""The fabrics of a repository: which node specs hang on them, and the ports at the ends of listed cables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from assay.declare.declared_hosts import HostDeclaration
from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import FilePosition
from assay.model.specs.fabric.adapter_ports import RailPort, count_adapter_ports
from assay.model.specs.fabric.design_cables_and_partitions import ExplicitEnd, parse_port_range
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.ports_and_cables import PortId
from assay.model.specs.fabric.switch_settings import TierName
from assay.model.specs.node.node_spec import NodeSpec


class CablePlug(NamedTuple):
    """One end of a listed cable, its port (None if there is no such device), and the path where it is written."""

    end: ExplicitEnd
    port: PortId | None
    other: ExplicitEnd
    draft: RepositoryDraft
    path: tuple[str | int, ...]

    @property
    def place(self) -> FilePosition:
        """File, line and column; found on access, since there may be very many plugs."""
        key, *path = self.path
        return self.draft.find_position(str(key), *path)


def list_design_spec_pairs(draft: RepositoryDraft) -> Iterator[tuple[FabricDesign, NodeSpec]]:
    """Yield each design with each node spec of its nodes."""
    designs = draft.specs_of_model(FabricDesign)
    specs, hosts = draft.specs_of_model(NodeSpec), {host.name: host for host in draft.hosts} if designs else {}
    for design in designs.values():
        own = (hosts[name] for name in design.node_names() if name in hosts)
        found = {host.settings.node_spec: None for host in own if host.settings}
        yield from ((design, specs[name]) for name in found if name in specs)


class DesignCabling:
    """The devices of one design, by GUID and by name, as far as the repository knows them."""

    def __init__(self, draft: RepositoryDraft, design: FabricDesign, hosts: Mapping[str, HostDeclaration]) -> None:
        self._draft, self.design, self._hosts = draft, design, hosts
        self._specs = draft.specs_of_model(NodeSpec)
        self._switches = {chip.guid: (tier, number) for name, tier, number, switch in design.switches()
                          for chip in switch.list_chips(name)}  # fmt: skip
        self._names = {chip.name: chip.guid for chip in design.chips()}
        self._nodes = set(design.node_names())
        self._used_ports: dict[tuple[TierName, int], frozenset[int]] = {}
        self._listed = {end.device: end.guid for cable in design.cables for _, end in cable.ends if end.guid}
        self._listed |= {name: device.guid for device in design.devices for name in (device.guid, device.name)}

    def list_cable_plugs(self) -> Iterator[CablePlug]:
        """Yield both ends of every listed cable."""
        for number, cable in enumerate(self.design.cables):
            for (side, end), other in zip(cable.ends, (cable.b, cable.a), strict=True):
                yield self._plug(end, other, "cables", number, side)

    def list_override_targets(self) -> Iterator[CablePlug]:
        """Yield the plugs where overrides move them to."""
        for number, override in enumerate(self.design.overrides):
            if override.to:
                to, origin = (ExplicitEnd(device=end.device, port=end.port) for end in (override.to, override))
                yield self._plug(to, origin, "overrides", number, "to")

    def list_overridden_plugs(self) -> Iterator[CablePlug]:
        """Yield the plugs of the rules that overrides change."""
        for number, override in enumerate(self.design.overrides):
            end = ExplicitEnd(device=override.device, port=override.port)
            yield self._plug(end, end, "overrides", number)

    def list_spare_ports(self) -> Iterator[CablePlug]:
        """Yield the ports that are free on purpose; only the first port of a device that is free as a whole."""
        for number, spare in enumerate(self.design.spares):
            for port in parse_port_range(spare.ports) if spare.ports else range(1, 2):
                end = ExplicitEnd(device=spare.device, port=port)
                yield self._plug(end, end, "spares", number)

    def _plug(self, end: ExplicitEnd, other: ExplicitEnd, *path: str | int) -> CablePlug:
        return CablePlug(end, self._find_port(end), other, self._draft, (f"FabricDesign/{self.design.name}", *path))

    def _find_port(self, end: ExplicitEnd) -> PortId | None:
        name = end.device
        known = self._names.get(name) or self._find_adapter(name) or self._listed.get(name)
        guid = end.guid or known or end.guid_or_device_guid
        return PortId(guid, end.port) if guid else None

    def port_count(self, port: PortId) -> int | None:
        """Return the number of ports of a port's device, None if it is not declared."""
        if port.guid in self._switches:
            return self.design.switch.port_count if self.design.switch else None
        if port.guid in self.adapters:
            return count_adapter_ports(self.design.rail_ports, self.design.planes)
        return self._device_ports.get(port.guid)

    @cached_property
    def _device_ports(self) -> Mapping[str, int]:
        model = self.design.switch.port_count if self.design.switch else 0
        found = {
            device.guid: device.ports or (model if device.kind == "switch" else 1) for device in self.design.devices
        }
        return {guid: ports for guid, ports in found.items() if ports}

    def is_cabled_by_rules(self, port: PortId) -> bool:
        """Whether a port has a cable by the rules, and no override frees it."""
        return self.is_port_of_rules(port) and port not in self._freed

    @cached_property
    def _freed(self) -> frozenset[PortId]:
        """Ports of the rules that are free: of a plug that is moved, and both ports of a cable that is removed."""
        plugs = list(self.list_overridden_plugs())
        removed = [plug.port for plug, override in zip(plugs, self.design.overrides, strict=True) if not override.to]
        far_ends = {far for port in removed if port and (far := self._find_far_end(port))}
        return frozenset({plug.port for plug in plugs if plug.port} | far_ends)

    def _find_far_end(self, port: PortId) -> PortId | None:
        """Return the port at the other end of a cable of the rules."""
        place, wiring = self._switches.get(port.guid), self.design.fat_tree
        found = wiring.find_far_end(*place, port.number) if place and wiring else None
        if found is None or wiring is None:
            return None
        tier, number, far = found
        if tier == "nodes":
            node, rail = divmod(number, wiring.rails)
            host = self._hosts.get(self.design.node_places[node])
            guids = host.settings.hca_guids if host and host.settings else []
            adapter, first = self.design.rail_ports[rail]
            return PortId(guids[adapter], first + self._find_plane(port)) if adapter < len(guids) else None
        chips = dict(self.design.tiers)[tier].at[number].list_chips("")
        return PortId(chips[self._find_plane(port)].guid, far)

    def _find_plane(self, port: PortId) -> int:
        """Return the plane of a switch's chip, from 0."""
        tier, number = self._switches[port.guid]
        chips = dict(self.design.tiers)[tier].at[number].list_chips("")
        return next(plane for plane, chip in enumerate(chips) if chip.guid == port.guid)

    def is_port_of_rules(self, port: PortId) -> bool:
        """Whether a port has a cable by the rules, before overrides."""
        if port.guid not in self._switches:
            node, adapter = self.adapters.get(port.guid, ("", 0))
            return node in self._nodes and self._has_cabled_port(adapter, port.number)
        place = self._switches[port.guid]
        if place not in self._used_ports:
            self._used_ports[place] = frozenset(self.design.used_ports(*place))
        return port.number in self._used_ports[place]

    def find_rail(self, port: PortId) -> int | None:
        """Return the rail of a leaf or of a node's adapter, None for any other device."""
        if (place := self._switches.get(port.guid)) is not None:
            return (
                self.design.fat_tree.rail_of_switch(*place) if self.design.fat_tree and place[0] == "leaves" else None
            )
        adapter = self.adapters.get(port.guid)
        if adapter is None or not self.design.adapter_ports:
            return adapter and adapter[1]
        of_port = {rail_port: rail for rail, rail_port in enumerate(self.design.rail_ports)}
        return of_port.get(RailPort(adapter[1], port.number))

    def is_leaf(self, port: PortId) -> bool:
        """Whether the port belongs to a leaf."""
        return port.guid in self._switches and self._switches[port.guid][0] == "leaves"

    @cached_property
    def adapters(self) -> Mapping[str, tuple[str, int]]:
        """The node of every adapter of the inventory, and its number there, by GUID."""
        guids = [(host.name, host.settings.hca_guids) for host in self._hosts.values() if host.settings]
        return {guid: (name, number) for name, own in guids for number, guid in enumerate(own)}

    def _has_cabled_port(self, adapter: int, port: int) -> bool:
        planes = range(self.design.planes)
        return any((adapter, port - plane) in self.design.rail_ports for plane in planes)

    def _find_adapter(self, name: str) -> str | None:
        """Return the GUID of an adapter named like `n0001 mlx5_0`, None if there is no such adapter."""
        node, _, hca = name.partition(" ")
        host = self._hosts.get(node)
        spec = self._specs.get(host.settings.node_spec) if host and host.settings else None
        rail = next((part.rail for part in spec.hcas if part.name == hca), None) if spec else None
        guids = host.settings.hca_guids if host and host.settings else []
        return guids[rail] if rail is not None and rail < len(guids) else None
