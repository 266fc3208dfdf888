"""Fabric designs: ports that are cabled twice or not there, rails that mix, bandwidth other than declared.

What needs nothing but the design's own rules, it refuses itself: see assay.model.design_sense.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.cabled import Cabling, Plug, pairs
from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, Place, rule
from assay.fleet.rules.names import few
from assay.model.cable import Port
from assay.model.design import FabricDesign
from assay.model.speed import gbps
from assay.model.switches import Switch
from assay.model.tiers import Tier
from assay.model.units import UNITS, converted

NEARLY = 0.005  # ratios are written with two or three figures


@rule("ASY0080", "a port that is cabled twice", why="A port takes one plug, and the other cable would be missing.")
def port_twice(draft: Draft) -> Iterator[Finding]:
    """Find ports that two cables use: of one list, of list and rules, or of two designs."""
    seen: dict[Port, Plug] = {}
    every = _cablings(draft)
    for cabling in every:
        for plug in (*cabling.moved(), *cabling.plugs()):
            if plug.port is None:
                continue
            by_rule = next((one.design.name for one in every if one.uses(plug.port)), "")
            other = f"the rules of {by_rule}" if by_rule else _written(seen.get(plug.port))
            if other:
                yield Finding(plug.place, f"{_called(plug)} is cabled by {other} already", "take another port")
            seen.setdefault(plug.port, plug)
    for cabling in every:
        for plug in cabling.spare():
            if plug.port and (plug.port in seen or any(one.uses(plug.port) for one in every)):
                yield Finding(plug.place, f"{_called(plug)} is to stay free, and is cabled", "keep one of the two")
    yield from _shared_nodes(draft)
    yield from _shared_switches(draft)


@rule("ASY0081", "a device short of ports", why="Some cable of the design could not be plugged in.")
def short_of_ports(draft: Draft) -> Iterator[Finding]:
    """Find listed cables to a port that the device does not have."""
    for cabling in _cablings(draft):
        for plug in (*cabling.moved(), *cabling.plugs(), *cabling.spare()):
            most = cabling.most(plug.port) if plug.port else None
            if most is not None and plug.end.port > most:
                yield Finding(plug.place, f"{plug.end.device} has {most} ports", f"take a port of 1 to {most}")


@rule("ASY0082", "rails that mix", why="Traffic of one rail would cross to another, and collectives would crawl.")
def mixed_rails(draft: Draft) -> Iterator[Finding]:
    """Find specs that do not have each rail of their fabric once, and listed cables between two rails."""
    for design, spec in pairs(draft):
        rails = sorted(hca.rail for hca in spec.hcas)
        if rails != list(range(design.rails)):
            said = f"{spec.name} has the rails {_listed(rails)}; {design.name} has {_listed(range(design.rails))}"
            yield Finding(draft.at(f"NodeSpec/{spec.name}", "hcas"), said, "give every rail of the fabric to one HCA")
    for cabling in _cablings(draft):
        plugs = list(cabling.plugs())
        for one, other in zip(plugs[::2], plugs[1::2], strict=True):
            yield from _between_rails(cabling, one, other)


@rule("ASY0083", "oversubscription other than declared", why="Collectives would be slower than anybody planned for.")
def oversubscribed(draft: Draft) -> Iterator[Finding]:
    """Find designs whose leaves or spines have more bandwidth down, against that up, than they declare."""
    for design in draft.of(FabricDesign).values():
        for path, down, up, declared in _bandwidths(design):
            really = max(1.0, down / up)
            if abs(really - declared) > NEARLY * really:
                said = f"{down:g} Gb/s down to {up:g} up are {really:.4g}:1"
                fix = f"write `oversubscription: {really:.4g}` if that is meant, or correct `down` and `up`"
                place = draft.at(f"FabricDesign/{design.name}", *path)
                yield Finding(place, f"{design.name}: {said}, not {declared:g}:1", fix)


@rule("ASY0084", "a design that does not add up", why="It would promise cables that nobody can lay.")
def nowhere(draft: Draft) -> Iterator[Finding]:
    """Find listed cables to a device that neither the design nor the inventory has."""
    for cabling in _cablings(draft) if draft.all_hosts_read and draft.whole() else ():
        for plug in cabling.overridden():
            if plug.port and not cabling.by_rule(plug.port):
                said = f"the rules have no cable at {_called(plug)}"
                yield Finding(plug.place, said, "name a port of the rules, or add the cable to `cables`")
        for plug in (*cabling.overridden(), *cabling.moved(), *cabling.plugs(), *cabling.spare()):
            if plug.port is None:
                fix = "name a switch of the design or an adapter (`n0001 mlx5_0`), or give its `guid`"
                yield Finding(plug.place, f"there is no device {plug.end.device}", fix)


@rule("ASY0085", "one device or place twice in the fabrics", why="A cable found there would belong to two designs.")
def twice(draft: Draft) -> Iterator[Finding]:
    """Find GUIDs that a switch shares with an adapter, and places or names that two designs give to two switches."""
    guids = {switch.guid for _, _, _, switch in _switches(draft)}
    shared = [host for host in draft.hosts if host.read and not guids.isdisjoint(host.read.hca_guids)]
    adapters = {guid: host.name for host in shared if host.read for guid in host.read.hca_guids}
    places: dict[tuple[str, str, int], str] = {}
    for design, tier, number, switch in _switches(draft):
        first = places.setdefault((design.site, switch.rack, switch.u), switch.guid)
        if switch.guid in adapters:
            said = f"the switch has the GUID {switch.guid} of an adapter of {adapters[switch.guid]}"
            yield Finding(_place(draft, design, tier, number), said, "read it from the switch's label")
        if first != switch.guid:
            said = f"the switch {switch.guid} stands in {switch.rack} U{switch.u}, where {first} stands"
            yield Finding(_place(draft, design, tier, number), said, "correct one of the two")


@rule("ASY0086", "a fabric slower than its nodes ask for", why="Every HCA would fail its check, on every node.")
def too_slow(draft: Draft) -> Iterator[Finding]:
    """Find designs whose rate is below the limit `hca_rate` of a node spec of theirs."""
    for design, spec in pairs(draft):
        limit = spec.limits.get("hca_rate")
        asked = converted(limit.value, limit.unit, "Gb/s") if limit and limit.unit in UNITS else None
        if asked is not None and asked > gbps(design.rate):
            said = f"{design.rate} is {gbps(design.rate):g} Gb/s, but {spec.name} asks for {asked:g} (hca_rate)"
            yield Finding(draft.at(f"FabricDesign/{design.name}", "rate"), said, "correct the rate, or the limit")


def _bandwidths(design: FabricDesign) -> Iterator[tuple[tuple[str, ...], float, float, float]]:
    """Yield for each tier below another where it is declared, what it has down and up in Gb/s, and what is declared."""
    wiring = design.wiring
    if wiring is None:
        return
    low, middle, high = (gbps(design.rate_of(tier)) for tier in ("node_leaf", "leaf_spine", "spine_core"))
    yield ("oversubscription",), len(wiring.down) * low, len(wiring.up) * middle, design.oversubscription
    if wiring.cores:
        down, up = wiring.in_group * wiring.spines.per_pair * middle, len(wiring.spine_up) * high
        yield ("spines", "oversubscription"), down, up, wiring.spines.oversubscription


def _cablings(draft: Draft) -> list[Cabling]:
    """Return the cabling of every design, where any of them lists cables, overrides or spares."""
    designs = draft.of(FabricDesign).values()
    if not any(design.cables or design.overrides or design.spares for design in designs):
        return []
    hosts = {host.name: host for host in draft.hosts}
    return [Cabling(draft, design, hosts) for design in designs]


def _written(plug: Plug | None) -> str:
    return f"{plug.place[0]}:{plug.place[1]}" if plug else ""


def _called(plug: Plug) -> str:
    return f"port {plug.end.port} of {plug.end.device}"


def _shared_nodes(draft: Draft) -> Iterator[Finding]:
    owners: dict[str, FabricDesign] = {}
    for design in draft.of(FabricDesign).values():
        shared = [name for name in design.node_names() if owners.setdefault(name, design) is not design]
        if shared:
            place = draft.at(f"FabricDesign/{design.name}", "nodes")
            said = f"{few(shared)}: the adapters are cabled by {owners[shared[0]].name} already"
            yield Finding(place, said, "let a node hang on one fabric")


def _shared_switches(draft: Draft) -> Iterator[Finding]:
    owners: dict[str, tuple[FabricDesign, Tier, int]] = {}
    for design, tier, number, switch in _switches(draft):
        first, its_tier, its_number = owners.setdefault(switch.guid, (design, tier, number))
        if first is design:
            continue
        if common := design.ports_used(tier, number) & first.ports_used(its_tier, its_number):
            said = f"port {min(common)} of the switch {switch.guid} is cabled by {first.name} already"
            yield Finding(_place(draft, design, tier, number), said, "take other ports, or another switch")


def _between_rails(cabling: Cabling, one: Plug, other: Plug) -> Iterator[Finding]:
    if one.port is None or other.port is None or cabling.is_leaf(one.port) == cabling.is_leaf(other.port):
        return
    rails = cabling.rail(one.port), cabling.rail(other.port)
    if None not in rails and rails[0] != rails[1]:
        said = f"{one.end.device} is on rail {rails[0]}, {other.end.device} on rail {rails[1]}"
        yield Finding(one.place, said, "lead the adapter to the leaf of its rail")


def _switches(draft: Draft) -> Iterator[tuple[FabricDesign, Tier, int, Switch]]:
    """Yield every switch of every design, by its tier and its number there."""
    for design in draft.of(FabricDesign).values():
        yield from ((design, *place) for place in design.places())


def _place(draft: Draft, design: FabricDesign, tier: Tier, number: int) -> Place:
    return draft.at(f"FabricDesign/{design.name}", tier, "at", number)


def _listed(rails: range | list[int]) -> str:
    return ", ".join(map(str, rails)) or "none"
