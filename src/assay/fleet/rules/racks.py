"""Racks that cannot be as they are written: devices that overlap, and machines of a whole rack that are not whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple

from assay.fleet.draft import Draft, HostEntry
from assay.fleet.rules.book import Finding, rule
from assay.fleet.rules.names import few
from assay.model.design import FabricDesign
from assay.model.nodespec import NodeSpec

Rack = tuple[str, str]
"""Site and rack."""


class Mounted(NamedTuple):
    """What fills a rack from the unit `u` up to `top`. A switch has no `host`, and a `path` in its design `key`."""

    u: int
    top: int
    name: str
    host: HostEntry | None
    key: str = ""
    path: tuple[str | int, ...] = ()


@rule("ASY0039", "two devices that overlap in a rack", why="One of them is not where hands would be sent to.")
def overlapping(draft: Draft) -> Iterator[Finding]:
    """Find nodes that reach, by the height of their chassis, into the units of another node or of a switch."""
    for (site, rack), devices in _mounted(draft).items():
        devices.sort(key=_order)
        below = devices[0]
        for device in devices[1:]:
            if device.u <= below.top and _not_told_elsewhere(below, device):
                units = f"U{below.u} to U{below.top}" if below.top > below.u else f"U{below.u}"
                said = f"{device.name} stands in U{device.u} of {site} {rack}, but {below.name} fills {units}"
                place = device.host.place("u") if device.host else draft.at(device.key, *device.path)
                yield Finding(place, said, "correct a `u`, or the `height_u` of a node spec")
            below = device if device.top > below.top else below


@rule(
    "ASY0105", "a rack that is not whole", why="Its nodes work as one machine, which lacks a part or has one too many."
)
def broken_rack(draft: Draft) -> Iterator[Finding]:
    """Find racks with more or fewer nodes than a spec has that speaks of whole racks."""
    for (site, rack), spec, hosts in _whole_racks(draft):
        mine = [host for host in hosts if host.read and host.read.node_spec == spec.name]
        if spec.rack and len(mine) != spec.rack.nodes:
            said = f"{site} {rack} has {len(mine)} nodes of {spec.name}, of which {spec.rack.nodes} are a rack"
            yield Finding(mine[0].place("rack"), said, "add the missing ones, or move what is too much")


@rule(
    "ASY0106", "strangers in a rack that is one machine", why="They share neither its power, its cooling nor its links."
)
def mixed_rack(draft: Draft) -> Iterator[Finding]:
    """Find nodes of another spec in a rack that is one machine."""
    for (site, rack), spec, hosts in _whole_racks(draft):
        others = [host for host in hosts if host.read and host.read.node_spec != spec.name]
        if others:
            said = f"{few([host.name for host in others])}: {site} {rack} is a rack of {spec.name}"
            yield Finding(others[0].place("rack"), said, "correct the rack, or the node_spec")


@rule("ASY0107", "a rack whose parts do not add up", why="Either the rack or the node is described wrongly.")
def wrong_sum(draft: Draft) -> Iterator[Finding]:
    """Find specs whose rack has another number of GPUs than its nodes have together."""
    for spec in draft.of(NodeSpec).values():
        if spec.rack and spec.rack.gpus != spec.rack.nodes * spec.gpus.count:
            said = f"{spec.rack.nodes} nodes of {spec.gpus.count} GPUs are {spec.rack.nodes * spec.gpus.count} a rack"
            place = draft.at(f"NodeSpec/{spec.name}", "rack", "gpus")
            yield Finding(place, f"{said}, not {spec.rack.gpus}", "correct one of the three")


_order = itemgetter(0, 1, 2)


def _mounted(draft: Draft) -> Mapping[Rack, list[Mounted]]:
    """Return what stands in each rack."""
    heights = {spec.name: spec.height_u for spec in draft.of(NodeSpec).values()}
    racks: dict[Rack, list[Mounted]] = defaultdict(list)
    for host in draft.hosts:
        if read := host.read:
            top = read.u + heights.get(read.node_spec, 1) - 1
            racks[read.site, read.rack].append(Mounted(read.u, top, host.name, host))
    for site, rack, switch in _switches(draft):
        racks[site, rack].append(switch)
    return racks


def _switches(draft: Draft) -> Iterator[tuple[str, str, Mounted]]:
    """Yield the switches of every design once."""
    seen = set()
    for design in draft.of(FabricDesign).values():
        for tier, number, switch in design.places():
            if switch.guid not in seen:
                seen.add(switch.guid)
                name, path = switch.name or f"the switch {switch.guid}", (tier, "at", number, "u")
                mounted = Mounted(switch.u, switch.u, name, None, f"FabricDesign/{design.name}", path)
                yield design.site, switch.rack, mounted


def _not_told_elsewhere(one: Mounted, other: Mounted) -> bool:
    """Whether no other rule tells of it: two nodes in one unit are ASY0033, two switches ASY0085."""
    if one.host and other.host:
        return one.u != other.u
    return bool(one.host or other.host)


def _whole_racks(draft: Draft) -> Iterator[tuple[Rack, NodeSpec, list[HostEntry]]]:
    """Yield each rack that is one machine by its nodes' spec, with all nodes in it. Nothing where nodes are lost."""
    specs = {spec.name: spec for spec in draft.of(NodeSpec).values() if spec.rack}
    racks: dict[Rack, list[HostEntry]] = defaultdict(list)
    for host in draft.hosts if specs and draft.all_hosts_read else ():
        if host.read:
            racks[host.read.site, host.read.rack].append(host)
    for rack, hosts in racks.items():
        found = {host.read.node_spec: None for host in hosts if host.read and host.read.node_spec in specs}
        for name in found:
            yield rack, specs[name], hosts
