"""Racks that cannot be as declared: devices that overlap, and rack-scale machines that are not complete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple

from assay.declare.check import RuleFinding, rule
from assay.declare.declared_hosts import HostDeclaration
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.rules.dangling_names import format_few_names
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.node.node_spec import NodeSpec

RackKey = tuple[str, str]
"""Site and rack."""


class RackMount(NamedTuple):
    """A device that fills a rack from unit `u` to unit `top`.

    A node has a `host`. A switch has the `key` of its design and its `path` there.
    """

    u: int
    top: int
    name: str
    host: HostDeclaration | None
    key: str = ""
    path: tuple[str | int, ...] = ()


@rule("ASY0039", "two devices that overlap in a rack")
def overlapping_devices(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A ticket sends a technician to the wrong place for one of them."""
    for (site, rack), devices in _list_devices(draft).items():
        devices.sort(key=itemgetter(0, 1, 2))
        below = devices[0]
        for device in devices[1:]:
            # two nodes in one unit are ASY0033, two switches ASY0085
            is_reported = device.u == below.u if device.host and below.host else not (device.host or below.host)
            if device.u <= below.top and not is_reported:
                units = f"U{below.u} to U{below.top}" if below.top > below.u else f"U{below.u}"
                message = f"{device.name} stands in U{device.u} of {site} {rack}, but {below.name} fills {units}"
                place = device.host.find_position("u") if device.host else draft.find_position(device.key, *device.path)
                yield RuleFinding(place, message, "correct a `u`, or the `height_u` of a node spec")
            below = device if device.top > below.top else below


@rule("ASY0105", "a rack that is not complete")
def broken_rack(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The nodes of such a rack work as one machine, and this machine has too few or too many."""
    for (site, rack), spec, hosts in _list_whole_racks(draft):
        own = [host for host in hosts if host.settings and host.settings.node_spec == spec.name]
        if spec.rack and len(own) != spec.rack.nodes:
            message = f"{site} {rack} has {len(own)} nodes of {spec.name}, but such a rack has {spec.rack.nodes}"
            yield RuleFinding(own[0].find_position("rack"), message, "add the missing nodes, or move the extra ones")


@rule("ASY0106", "other nodes in a rack that is one machine")
def mixed_rack(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """These nodes do not share its power, its cooling or its links."""
    for (site, rack), spec, hosts in _list_whole_racks(draft):
        others = [host for host in hosts if host.settings and host.settings.node_spec != spec.name]
        if others:
            message = f"{format_few_names([host.name for host in others])}: {site} {rack} is a rack of {spec.name}"
            yield RuleFinding(others[0].find_position("rack"), message, "correct the rack, or the node_spec")


@rule("ASY0107", "a rack whose numbers contradict each other")
def wrong_rack_total(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The description of the rack or of the node is wrong."""
    for spec in draft.specs_of_model(NodeSpec).values():
        if spec.rack and spec.rack.gpus != spec.rack.nodes * spec.gpus.count:
            total = spec.rack.nodes * spec.gpus.count
            message = f"{spec.rack.nodes} nodes of {spec.gpus.count} GPUs are {total} a rack, not {spec.rack.gpus}"
            place = draft.find_position(f"NodeSpec/{spec.name}", "rack", "gpus")
            yield RuleFinding(place, message, "correct one of the three")


@rule("ASY0108", "an NVLink domain that is not one rack")
def scattered_nvlink_domain(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Each GPU is linked to the switch trays of its own rack, so a compute tray in another place is never found."""
    settings = {host.name: host.settings for host in draft.hosts if host.settings}
    owners: dict[str, str] = {}
    for design in draft.specs_of_model(FabricDesign).values():
        if not (domain := design.nvlink):
            continue
        key = f"FabricDesign/{design.name}"
        place = draft.find_position(key, "nvlink", "compute_trays")
        places = {(settings[name].site, settings[name].rack) for name in domain.node_names if name in settings}
        if len(places) > 1:
            racks = format_few_names([f"{site} {rack}" for site, rack in sorted(places)])
            yield RuleFinding(
                place, f"the compute trays of {design.name} stand in {racks}", "name the nodes of one rack"
            )
        elif places and domain.rack and domain.rack not in {rack for _, rack in places}:
            message = f"{design.name} is in {domain.rack}, but its compute trays stand in {places.pop()[1]}"
            yield RuleFinding(draft.find_position(key, "nvlink", "rack"), message, "correct one of the two")
        shared = [name for name in domain.node_names if owners.setdefault(name, design.name) != design.name]
        if shared:
            message = f"{format_few_names(shared)}: compute trays of {owners[shared[0]]} already"
            yield RuleFinding(place, message, "a node is in one rack")


def _list_devices(draft: RepositoryDraft) -> Mapping[RackKey, list[RackMount]]:
    """Return the devices in each rack."""
    heights = {spec.name: spec.height_u for spec in draft.specs_of_model(NodeSpec).values()}
    racks: dict[RackKey, list[RackMount]] = defaultdict(list)
    for host in draft.hosts:
        if settings := host.settings:
            top = settings.u + heights.get(settings.node_spec, 1) - 1
            racks[settings.site, settings.rack].append(RackMount(settings.u, top, host.name, host))
    for site, rack, switch in _list_switches(draft):
        racks[site, rack].append(switch)
    return racks


def _list_switches(draft: RepositoryDraft) -> Iterator[tuple[str, str, RackMount]]:
    """Yield site, rack and device of every switch of the designs, each GUID once."""
    seen = set()
    for design in draft.specs_of_model(FabricDesign).values():
        for tier, number, switch in design.list_switch_places():
            if switch.guid not in seen:
                seen.add(switch.guid)
                name = switch.name or f"the switch {switch.guid}"
                path = (tier, "at", number, "u")
                mounted = RackMount(switch.u, switch.u, name, None, f"FabricDesign/{design.name}", path)
                yield design.site, switch.rack, mounted


def _list_whole_racks(draft: RepositoryDraft) -> Iterator[tuple[RackKey, NodeSpec, list[HostDeclaration]]]:
    """Yield each rack that is one machine, with its spec and all its nodes; nothing if hosts could not be read."""
    specs = {spec.name: spec for spec in draft.specs_of_model(NodeSpec).values() if spec.rack}
    racks: dict[RackKey, list[HostDeclaration]] = defaultdict(list)
    for host in draft.hosts if specs and draft.all_hosts_read else ():
        if host.settings:
            racks[host.settings.site, host.settings.rack].append(host)
    for rack, hosts in racks.items():
        names = dict.fromkeys(host.settings.node_spec for host in hosts if host.settings)
        for name in names:
            if name in specs:
                yield rack, specs[name], hosts
