"""Fabric designs compared with the inventory and with each other: ports cabled twice, mixed rails, wrong bandwidth.

What a single design contradicts in itself, its model refuses: see assay.model.specs.fabric.fabric_design.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from assay.declare.check import FilePosition, RuleFinding, rule
from assay.declare.declared_hosts import HostDeclaration
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.rules.dangling_names import format_few_names
from assay.model.specs.fabric.adapters import RailPort, count_adapter_ports
from assay.model.specs.fabric.cable import PortId, rate_to_gbps
from assay.model.specs.fabric.design_parts import ExplicitEnd, parse_port_range
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.switches import FabricSwitch, TierName
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.units import UNITS, convert_unit

RATIO_TOLERANCE = 0.005  # relative: ratios are written with two or three digits


@rule("ASY0080", "a port that is cabled twice")
def port_twice(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A port takes one plug, so the other cable cannot exist."""
    seen: dict[PortId, CablePlug] = {}
    cablings = _make_cablings(draft)
    for cabling in cablings:
        for plug in (*cabling.list_override_targets(), *cabling.list_cable_plugs()):
            if plug.port is None:
                continue
            by_rule = next((other.design.name for other in cablings if other.is_cabled_by_rules(plug.port)), "")
            first = seen.setdefault(plug.port, plug)
            if by_rule or first is not plug:
                user = f"the rules of {by_rule}" if by_rule else f"{first.place[0]}:{first.place[1]}"
                yield RuleFinding(plug.place, f"{_format_plug(plug)} is cabled by {user} already", "take another port")
    for cabling in cablings:
        for plug in cabling.list_spare_ports():
            if plug.port and (plug.port in seen or any(other.is_cabled_by_rules(plug.port) for other in cablings)):
                yield RuleFinding(
                    plug.place, f"{_format_plug(plug)} must stay free, but has a cable", "keep one of the two"
                )
    yield from _shared_nodes(draft)
    yield from _shared_switches(draft)


@rule("ASY0081", "a device with too few ports")
def missing_device_port(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """There is no port for some cable of the design."""
    for cabling in _make_cablings(draft):
        for plug in (*cabling.list_override_targets(), *cabling.list_cable_plugs(), *cabling.list_spare_ports()):
            most = cabling.port_count(plug.port) if plug.port else None
            if most is not None and plug.end.port > most:
                yield RuleFinding(plug.place, f"{plug.end.device} has {most} ports", f"take a port of 1 to {most}")


@rule("ASY0082", "rails that mix")
def mixed_rails(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Traffic of one rail crosses to another, so collectives become slow."""
    for design, spec in list_design_spec_pairs(draft):
        rails = sorted(hca.rail for hca in spec.hcas)
        if rails != list(range(design.adapters_per_node)):
            expected = _format_rails(range(design.adapters_per_node))
            message = f"{spec.name} has the rails {_format_rails(rails)}; {design.name} has {expected}"
            place = draft.find_position(f"NodeSpec/{spec.name}", "hcas")
            yield RuleFinding(place, message, "give every rail of the fabric to one HCA")
    for cabling in _make_cablings(draft):
        plugs = list(cabling.list_cable_plugs())
        for plug, other in zip(plugs[::2], plugs[1::2], strict=True):
            yield from _crossed_rails(cabling, plug, other)


@rule("ASY0083", "an oversubscription that differs from the declared one")
def oversubscribed(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Collectives are slower than planned."""
    for design in draft.specs_of_model(FabricDesign).values():
        for path, down, up, declared in _bandwidths(design):
            ratio = max(1.0, down / up)
            if abs(ratio - declared) > RATIO_TOLERANCE * ratio:
                message = f"{design.name}: {down:g} Gb/s down to {up:g} up are {ratio:.4g}:1, not {declared:g}:1"
                fix = f"write `oversubscription: {ratio:.4g}` if that is meant, or correct `down` and `up`"
                yield RuleFinding(draft.find_position(f"FabricDesign/{design.name}", *path), message, fix)


@rule("ASY0084", "a design that contradicts itself")
def unknown_cable_end(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Nobody can lay the cables that this design asks for."""
    for cabling in _make_cablings(draft) if draft.all_hosts_read and draft.is_complete() else ():
        for plug in cabling.list_overridden_plugs():
            if plug.port and not cabling.is_port_of_rules(plug.port):
                message = f"the rules have no cable at {_format_plug(plug)}"
                yield RuleFinding(plug.place, message, "name a port of the rules, or add the cable to `cables`")
        for plug in (
            *cabling.list_overridden_plugs(),
            *cabling.list_override_targets(),
            *cabling.list_cable_plugs(),
            *cabling.list_spare_ports(),
        ):
            if plug.port is None:
                fix = "name a switch of the design or an adapter (`n0001 mlx5_0`), or give its `guid`"
                yield RuleFinding(plug.place, f"there is no device {plug.end.device}", fix)


@rule("ASY0085", "one device or place twice in the fabrics")
def duplicate_fabric_identity(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A cable at this device or place belongs to two designs."""
    guids = {chip.guid for design in draft.specs_of_model(FabricDesign).values() for chip in design.chips()}
    shared = [host for host in draft.hosts if host.settings and not guids.isdisjoint(host.settings.hca_guids)]
    adapters = {guid: host.name for host in shared if host.settings for guid in host.settings.hca_guids}
    places: dict[tuple[str, str, int], str] = {}
    for design, tier, number, switch in _switches(draft):
        first = places.setdefault((design.site, switch.rack, switch.u), switch.guid)
        if switch.guid in adapters:
            message = f"the switch has the GUID {switch.guid} of an adapter of {adapters[switch.guid]}"
            yield RuleFinding(_place(draft, design, tier, number), message, "read it from the switch's label")
        if first != switch.guid:
            message = f"the switch {switch.guid} stands in {switch.rack} U{switch.u}, but {first} stands there"
            yield RuleFinding(_place(draft, design, tier, number), message, "correct one of the two")


@rule("ASY0263", "a design of a site where none of its nodes is")
def foreign_site(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Tickets send technicians to the wrong site."""
    sites = {host.name: host.settings.site for host in draft.hosts if host.settings}
    for design in draft.specs_of_model(FabricDesign).values() if draft.all_hosts_read else ():
        own_sites = {sites[name] for name in design.node_names() if name in sites}
        if design.site and own_sites and design.site not in own_sites:
            place = draft.find_position(f"FabricDesign/{design.name}", "site")
            message = f"{design.name} is at {design.site}, but its nodes are at {format_few_names(sorted(own_sites))}"
            yield RuleFinding(place, message, "correct the site of the design, or of its nodes")


@rule("ASY0086", "a fabric that is slower than its nodes require")
def slow_design_rate(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Every HCA on every node fails its check."""
    for design, spec in list_design_spec_pairs(draft):
        limit = spec.limits.get("hca_rate")
        needed = convert_unit(limit.value, limit.unit, "Gb/s") if limit and limit.unit in UNITS else None
        rate = rate_to_gbps(design.rate)
        if needed is not None and needed > rate:
            message = f"{design.rate} is {rate:g} Gb/s, but {spec.name} asks for {needed:g} (hca_rate)"
            place = draft.find_position(f"FabricDesign/{design.name}", "rate")
            yield RuleFinding(place, message, "correct the rate, or the limit")


def _bandwidths(design: FabricDesign) -> Iterator[tuple[tuple[str, ...], float, float, float]]:
    """Yield path, bandwidth down and up in Gb/s, and declared ratio, for each tier below another."""
    wiring = design.fat_tree
    if wiring is None:
        return
    low, middle, high = (rate_to_gbps(design.rate_of(tier)) for tier in ("node_leaf", "leaf_spine", "spine_core"))
    yield (
        ("oversubscription",),
        len(wiring.leaf_down_ports) * low,
        len(wiring.leaf_up_ports) * middle,
        design.oversubscription,
    )
    if wiring.cores:
        down = wiring.leaves_per_group * wiring.spines.per_pair * middle
        up = len(wiring.spine_up_ports) * high
        yield ("spines", "oversubscription"), down, up, wiring.spines.oversubscription


def _make_cablings(draft: RepositoryDraft) -> list[DesignCabling]:
    """Return the cabling of every design; none if no design lists cables, overrides or spares."""
    designs = draft.specs_of_model(FabricDesign).values()
    if not any(design.cables or design.overrides or design.spares for design in designs):
        return []
    hosts = {host.name: host for host in draft.hosts}
    return [DesignCabling(draft, design, hosts) for design in designs]


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


class DesignCabling:
    """The devices of one design, by GUID and by name, as far as the repository knows them."""

    def __init__(self, draft: RepositoryDraft, design: FabricDesign, hosts: Mapping[str, HostDeclaration]) -> None:
        self._draft = draft
        self.design = design
        self._hosts = hosts
        self._specs = draft.specs_of_model(NodeSpec)
        self._switches: dict[str, tuple[TierName, int]] = {}
        for name, tier, number, switch in design.switches():
            self._switches.update((chip.guid, (tier, number)) for chip in switch.list_chips(name))
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
        counts = {
            device.guid: device.ports or (model if device.kind == "switch" else 1) for device in self.design.devices
        }
        return {guid: ports for guid, ports in counts.items() if ports}

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
        place = self._switches.get(port.guid)
        wiring = self.design.fat_tree
        far_end = wiring.find_far_end(*place, port.number) if place and wiring else None
        if far_end is None or wiring is None:
            return None
        tier, number, far = far_end
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
            planes = range(self.design.planes)
            is_cabled = any((adapter, port.number - plane) in self.design.rail_ports for plane in planes)
            return node in self._nodes and is_cabled
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

    def _find_adapter(self, name: str) -> str | None:
        """Return the GUID of an adapter named like `n0001 mlx5_0`, None if there is no such adapter."""
        node, _, hca = name.partition(" ")
        host = self._hosts.get(node)
        spec = self._specs.get(host.settings.node_spec) if host and host.settings else None
        rail = next((part.rail for part in spec.hcas if part.name == hca), None) if spec else None
        guids = host.settings.hca_guids if host and host.settings else []
        return guids[rail] if rail is not None and rail < len(guids) else None


def _format_plug(plug: CablePlug) -> str:
    return f"port {plug.end.port} of {plug.end.device}"


def _shared_nodes(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    owners: dict[str, FabricDesign] = {}
    for design in draft.specs_of_model(FabricDesign).values():
        shared = [name for name in design.node_names() if owners.setdefault(name, design) is not design]
        if shared:
            place = draft.find_position(f"FabricDesign/{design.name}", "nodes")
            message = f"{format_few_names(shared)}: the adapters are cabled by {owners[shared[0]].name} already"
            yield RuleFinding(place, message, "connect a node to one fabric only")


def _shared_switches(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    owners: dict[str, tuple[FabricDesign, TierName, int]] = {}
    for design, tier, number, switch in _switches(draft):
        first, first_tier, first_number = owners.setdefault(switch.guid, (design, tier, number))
        if first is design:
            continue
        if common := design.used_ports(tier, number) & first.used_ports(first_tier, first_number):
            message = f"port {min(common)} of the switch {switch.guid} is cabled by {first.name} already"
            yield RuleFinding(_place(draft, design, tier, number), message, "take other ports, or another switch")


def _crossed_rails(cabling: DesignCabling, plug: CablePlug, other: CablePlug) -> Iterator[RuleFinding]:
    if plug.port is None or other.port is None or cabling.is_leaf(plug.port) == cabling.is_leaf(other.port):
        return
    rails = cabling.find_rail(plug.port), cabling.find_rail(other.port)
    if None not in rails and rails[0] != rails[1]:
        message = f"{plug.end.device} is on rail {rails[0]}, {other.end.device} on rail {rails[1]}"
        yield RuleFinding(plug.place, message, "connect the adapter to the leaf of its rail")


def _switches(draft: RepositoryDraft) -> Iterator[tuple[FabricDesign, TierName, int, FabricSwitch]]:
    """Yield design, tier, number in the tier, and switch, for every switch of every design."""
    for design in draft.specs_of_model(FabricDesign).values():
        yield from ((design, *place) for place in design.list_switch_places())


def _place(draft: RepositoryDraft, design: FabricDesign, tier: TierName, number: int) -> FilePosition:
    return draft.find_position(f"FabricDesign/{design.name}", tier, "at", number)


def _format_rails(rails: range | list[int]) -> str:
    return ", ".join(map(str, rails)) or "none"


def list_design_spec_pairs(draft: RepositoryDraft) -> Iterator[tuple[FabricDesign, NodeSpec]]:
    """Yield each design with each node spec of its nodes."""
    designs = draft.specs_of_model(FabricDesign)
    specs = draft.specs_of_model(NodeSpec)
    hosts = {host.name: host for host in draft.hosts} if designs else {}
    for design in designs.values():
        own = (hosts[name] for name in design.node_names() if name in hosts)
        names = dict.fromkeys(host.settings.node_spec for host in own if host.settings)
        yield from ((design, specs[name]) for name in names if name in specs)
