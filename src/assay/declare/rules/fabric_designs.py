"""Fabric designs compared with the inventory and with each other: ports cabled twice, mixed rails, wrong bandwidth.

What a single design contradicts in itself, its model refuses: see assay.model.specs.fabric.fabric_design.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import FilePosition, RuleFinding, rule
from assay.declare.rules.dangling_names import format_few_names
from assay.declare.rules.design_port_lookup import CablePlug, DesignCabling, list_design_spec_pairs
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.ports_and_cables import PortId, rate_to_gbps
from assay.model.specs.fabric.switch_settings import FabricSwitch, TierName
from assay.model.units import UNITS, convert_unit

RATIO_TOLERANCE = 0.005  # relative: ratios are written with two or three digits


@rule("ASY0080", "a port that is cabled twice", why="A port takes one plug, so the other cable cannot exist.")
def port_twice(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find ports that two cables use: two of one list, one of a list and one of the rules, or of two designs."""
    seen: dict[PortId, CablePlug] = {}
    cablings = _make_cablings(draft)
    for cabling in cablings:
        for plug in (*cabling.list_override_targets(), *cabling.list_cable_plugs()):
            if plug.port is None:
                continue
            by_rule = next((other.design.name for other in cablings if other.is_cabled_by_rules(plug.port)), "")
            first = f"the rules of {by_rule}" if by_rule else _format_place(seen.get(plug.port))
            if first:
                yield RuleFinding(plug.place, f"{_format_plug(plug)} is cabled by {first} already", "take another port")
            seen.setdefault(plug.port, plug)
    for cabling in cablings:
        for plug in cabling.list_spare_ports():
            if plug.port and (plug.port in seen or any(other.is_cabled_by_rules(plug.port) for other in cablings)):
                yield RuleFinding(
                    plug.place, f"{_format_plug(plug)} must stay free, but has a cable", "keep one of the two"
                )
    yield from _shared_nodes(draft)
    yield from _shared_switches(draft)


@rule("ASY0081", "a device with too few ports", why="There is no port for some cable of the design.")
def missing_device_port(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find listed cables to a port that the device does not have."""
    for cabling in _make_cablings(draft):
        for plug in (*cabling.list_override_targets(), *cabling.list_cable_plugs(), *cabling.list_spare_ports()):
            most = cabling.port_count(plug.port) if plug.port else None
            if most is not None and plug.end.port > most:
                yield RuleFinding(plug.place, f"{plug.end.device} has {most} ports", f"take a port of 1 to {most}")


@rule("ASY0082", "rails that mix", why="Traffic of one rail crosses to another, so collectives become slow.")
def mixed_rails(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find specs that lack a rail of their fabric or have it twice, and listed cables between two rails."""
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


@rule("ASY0083", "an oversubscription that differs from the declared one", why="Collectives are slower than planned.")
def oversubscribed(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find designs whose leaves or spines have another ratio of bandwidth down to bandwidth up than declared."""
    for design in draft.specs_of_model(FabricDesign).values():
        for path, down, up, declared in _bandwidths(design):
            ratio = max(1.0, down / up)
            if abs(ratio - declared) > RATIO_TOLERANCE * ratio:
                message = f"{design.name}: {down:g} Gb/s down to {up:g} up are {ratio:.4g}:1, not {declared:g}:1"
                fix = f"write `oversubscription: {ratio:.4g}` if that is meant, or correct `down` and `up`"
                yield RuleFinding(draft.find_position(f"FabricDesign/{design.name}", *path), message, fix)


@rule("ASY0084", "a design that contradicts itself", why="Nobody can lay the cables that this design asks for.")
def unknown_cable_end(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find listed cables to a device that is in neither the design nor the inventory."""
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


@rule(
    "ASY0085", "one device or place twice in the fabrics", why="A cable at this device or place belongs to two designs."
)
def duplicate_fabric_identity(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find GUIDs that a switch shares with an adapter, and places that hold two switches."""
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


@rule("ASY0263", "a design of a site where none of its nodes is", why="Tickets send technicians to the wrong site.")
def foreign_site(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find designs whose `site` no node of theirs has."""
    sites = {host.name: host.settings.site for host in draft.hosts if host.settings}
    for design in draft.specs_of_model(FabricDesign).values() if draft.all_hosts_read else ():
        found = {sites[name] for name in design.node_names() if name in sites}
        if design.site and found and design.site not in found:
            place = draft.find_position(f"FabricDesign/{design.name}", "site")
            message = f"{design.name} is at {design.site}, but its nodes are at {format_few_names(sorted(found))}"
            yield RuleFinding(place, message, "correct the site of the design, or of its nodes")


@rule("ASY0086", "a fabric that is slower than its nodes require", why="Every HCA on every node fails its check.")
def slow_design_rate(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find designs with a rate below the limit `hca_rate` of one of their node specs."""
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
        down, up = wiring.leaves_per_group * wiring.spines.per_pair * middle, len(wiring.spine_up_ports) * high
        yield ("spines", "oversubscription"), down, up, wiring.spines.oversubscription


def _make_cablings(draft: RepositoryDraft) -> list[DesignCabling]:
    """Return the cabling of every design; none if no design lists cables, overrides or spares."""
    designs = draft.specs_of_model(FabricDesign).values()
    if not any(design.cables or design.overrides or design.spares for design in designs):
        return []
    hosts = {host.name: host for host in draft.hosts}
    return [DesignCabling(draft, design, hosts) for design in designs]


def _format_place(plug: CablePlug | None) -> str:
    return f"{plug.place[0]}:{plug.place[1]}" if plug else ""


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
