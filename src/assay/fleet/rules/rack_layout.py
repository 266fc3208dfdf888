"""Racks that cannot be as they are written: devices that overlap, and machines of a whole rack that are not whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple

from assay.fleet.check import RuleFinding, rule
from assay.fleet.repository_draft import HostDeclaration, RepositoryDraft
from assay.fleet.rules.dangling_names import format_few_names
from assay.model.fabric.fabric_design import FabricDesign
from assay.model.specs.node_spec import NodeSpec

RackKey = tuple[str, str]
"""Site and rack."""


class RackMount(NamedTuple):
    """What fills a rack from the unit `u` up to `top`. A switch has no `host`, and a `path` in its design `key`."""

    u: int
    top: int
    name: str
    host: HostDeclaration | None
    key: str = ""
    path: tuple[str | int, ...] = ()


@rule("ASY0039", "two devices that overlap in a rack", why="One of them is not where hands would be sent to.")
def overlapping_devices(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find nodes that reach, by the height of their chassis, into the units of another node or of a switch."""
    for (site, rack), devices in _mounted(draft).items():
        devices.sort(key=_order)
        below = devices[0]
        for device in devices[1:]:
            if device.u <= below.top and _not_told_elsewhere(below, device):
                units = f"U{below.u} to U{below.top}" if below.top > below.u else f"U{below.u}"
                said = f"{device.name} stands in U{device.u} of {site} {rack}, but {below.name} fills {units}"
                place = device.host.find_position("u") if device.host else draft.find_position(device.key, *device.path)
                yield RuleFinding(place, said, "correct a `u`, or the `height_u` of a node spec")
            below = device if device.top > below.top else below


@rule(
    "ASY0105", "a rack that is not whole", why="Its nodes work as one machine, which lacks a part or has one too many."
)
def broken_rack(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find racks with more or fewer nodes than a spec has that speaks of whole racks."""
    for (site, rack), spec, hosts in _whole_racks(draft):
        mine = [host for host in hosts if host.settings and host.settings.node_spec == spec.name]
        if spec.rack and len(mine) != spec.rack.nodes:
            said = f"{site} {rack} has {len(mine)} nodes of {spec.name}, of which {spec.rack.nodes} are a rack"
            yield RuleFinding(mine[0].find_position("rack"), said, "add the missing ones, or move what is too much")


@rule(
    "ASY0106", "strangers in a rack that is one machine", why="They share neither its power, its cooling nor its links."
)
def mixed_rack(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find nodes of another spec in a rack that is one machine."""
    for (site, rack), spec, hosts in _whole_racks(draft):
        others = [host for host in hosts if host.settings and host.settings.node_spec != spec.name]
        if others:
            said = f"{format_few_names([host.name for host in others])}: {site} {rack} is a rack of {spec.name}"
            yield RuleFinding(others[0].find_position("rack"), said, "correct the rack, or the node_spec")


@rule("ASY0107", "a rack whose parts do not add up", why="Either the rack or the node is described wrongly.")
def wrong_rack_total(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find specs whose rack has another number of GPUs than its nodes have together."""
    for spec in draft.specs_of_model(NodeSpec).values():
        if spec.rack and spec.rack.gpus != spec.rack.nodes * spec.gpus.count:
            said = f"{spec.rack.nodes} nodes of {spec.gpus.count} GPUs are {spec.rack.nodes * spec.gpus.count} a rack"
            place = draft.find_position(f"NodeSpec/{spec.name}", "rack", "gpus")
            yield RuleFinding(place, f"{said}, not {spec.rack.gpus}", "correct one of the three")


_order = itemgetter(0, 1, 2)


def _mounted(draft: RepositoryDraft) -> Mapping[RackKey, list[RackMount]]:
    """Return what stands in each rack."""
    heights = {spec.name: spec.height_u for spec in draft.specs_of_model(NodeSpec).values()}
    racks: dict[RackKey, list[RackMount]] = defaultdict(list)
    for host in draft.hosts:
        if read := host.settings:
            top = read.u + heights.get(read.node_spec, 1) - 1
            racks[read.site, read.rack].append(RackMount(read.u, top, host.name, host))
    for site, rack, switch in _switches(draft):
        racks[site, rack].append(switch)
    return racks


def _switches(draft: RepositoryDraft) -> Iterator[tuple[str, str, RackMount]]:
    """Yield the switches of every design once."""
    seen = set()
    for design in draft.specs_of_model(FabricDesign).values():
        for tier, number, switch in design.list_switch_places():
            if switch.guid not in seen:
                seen.add(switch.guid)
                name, path = switch.name or f"the switch {switch.guid}", (tier, "at", number, "u")
                mounted = RackMount(switch.u, switch.u, name, None, f"FabricDesign/{design.name}", path)
                yield design.site, switch.rack, mounted


def _not_told_elsewhere(one: RackMount, other: RackMount) -> bool:
    """Whether no other rule tells of it: two nodes in one unit are ASY0033, two switches ASY0085."""
    if one.host and other.host:
        return one.u != other.u
    return bool(one.host or other.host)


def _whole_racks(draft: RepositoryDraft) -> Iterator[tuple[RackKey, NodeSpec, list[HostDeclaration]]]:
    """Yield each rack that is one machine by its nodes' spec, with all nodes in it. Nothing where nodes are lost."""
    specs = {spec.name: spec for spec in draft.specs_of_model(NodeSpec).values() if spec.rack}
    racks: dict[RackKey, list[HostDeclaration]] = defaultdict(list)
    for host in draft.hosts if specs and draft.all_hosts_read else ():
        if host.settings:
            racks[host.settings.site, host.settings.rack].append(host)
    for rack, hosts in racks.items():
        found = {host.settings.node_spec: None for host in hosts if host.settings and host.settings.node_spec in specs}
        for name in found:
            yield rack, specs[name], hosts
