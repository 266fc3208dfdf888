"""Tells which switch chips share a box, and gives a discovery the form that a tree is inferred from.

A system image GUID says which chips share a box. Names say which chip of which card it is, where they are written
`MF0;NAME:PRODUCT/U2` or `MF0;NAME:PRODUCT/L01/U1`; in the output of a tool that tells no system image GUID, they also
say which chips share a box. The chips of a box carry planes if all of them are cabled alike. In the form for inference,
each box is a switch, and each adapter has one cable.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.learn.hosts import find_mode, sort_naturally
from assay.model.specs.fabric.adapters import HostAdapter
from assay.model.specs.fabric.cable import PortId
from assay.model.specs.fabric.design_parts import parse_port_range
from assay.model.specs.fabric.switches import MAX_PLANES

CHIP = re.compile(r"MF0;(?P<box>.+?):(?P<product>[\w-]+)(?:/(?P<module>[A-Z]+\d+))?/U(?P<chip>\d+)")
MIN_PORTS = 2
MIN_ALIKE = 0.75
"""Our own choice: planes are there if so large a part of the ports leads to the same box on all chips."""
LEAF_SHARE = 0.25
ALIKE_SHARE = 0.75
"""Our own choice: a leaf has more of its ports at nodes; of two leaves that are alike, so many lead to the same."""
MIN_RANGE = 4
"""Our own choice: fewer ports with cables are no range of ports, but have stray cables."""
ChipsOfBox = Mapping[int, str]
"""The GUIDs of the chips of a box, by plane, from 1. One that nobody saw is missing."""


class BoxChip(NamedTuple):
    """A chip of a box: the box's name, the card, the plane (0 without planes), and a name that only this chip has."""

    box: str
    module: str
    plane: int
    name: str


def find_box_chips(devices: Mapping[str, DiscoveredDevice], cables: Iterable[DiscoveredCable]) -> dict[str, BoxChip]:
    """Return the chips of boxes that have several, by GUID."""
    chips_of: dict[str, list[DiscoveredDevice]] = defaultdict(list)
    for device in devices.values():
        if device.kind == "switch" and (system := _find_system(device)):
            chips_of[system].append(device)
    boxes = {
        system: chips
        for system, chips in chips_of.items()
        if len(chips) > 1 and (chips[0].system or _find_own_name(chips))
    }
    if not boxes:
        return {}
    far_ends = _list_far_ends(devices, cables, boxes)
    names = {system: _find_own_name(chips) for system, chips in boxes.items()}
    counts = Counter(names.values())
    box_chips: dict[str, BoxChip] = {}
    for system, chips in boxes.items():
        is_named = bool(names[system]) and counts[names[system]] == 1
        planes = is_named and _are_planes([far_ends[chip.guid] for chip in chips])
        for chip in chips:
            box = names[system] if is_named else f"{chip.name} {system}"
            box_chips[chip.guid] = _make_chip(chip, box, is_named=is_named, is_plane=planes)
    return box_chips | dict(_find_lone_chips(devices, box_chips))


def _find_lone_chips(
    devices: Mapping[str, DiscoveredDevice], known: Mapping[str, BoxChip]
) -> Iterator[tuple[str, BoxChip]]:
    """Yield the last chip that works of a box with planes: its name has the form of theirs."""
    products = {_find_chip_product(devices[guid]) for guid, chip in known.items() if chip.plane} - {""}
    for guid, device in devices.items():
        if guid not in known and device.kind == "switch" and _find_chip_product(device) in products:
            read = CHIP.fullmatch(device.description.strip())
            yield guid, _make_chip(device, read["box"] if read else "", is_named=True, is_plane=True)


def _find_chip_product(chip: DiscoveredDevice) -> str:
    read = CHIP.fullmatch(chip.description.strip())
    return read["product"] if read else ""


def _list_far_ends(
    devices: Mapping[str, DiscoveredDevice], cables: Iterable[DiscoveredCable], boxes: Mapping[str, object]
) -> Mapping[str, dict[int, tuple[str, int]]]:
    """Return, for each port of each device, the box or adapter that it leads to, and the port of a box."""
    ends: dict[str, dict[int, tuple[str, int]]] = defaultdict(dict)
    for a, b, _ in cables:
        for here, there in ((a, b), (b, a)):
            far = devices.get(there.guid)
            if far and far.description == AGGREGATION_NODE:
                continue
            system = _find_system(far) if far and far.kind == "switch" else ""
            ends[here.guid][here.number] = (system, there.number) if system in boxes else (there.guid, 0)
    return ends


def _find_system(chip: DiscoveredDevice) -> str:
    """Return what the chips of a box share, "" where nothing tells."""
    if chip.system:
        return chip.system
    read = CHIP.fullmatch(chip.description.strip())
    return f"{read['box']}:{read['product']}" if read else ""


def _find_own_name(chips: Sequence[DiscoveredDevice]) -> str:
    """Return the name of the box that all of its chips announce, "" without one."""
    read = [CHIP.fullmatch(chip.description.strip()) for chip in chips]
    named = {match["box"] for match in read if match}
    numbered = {(match["module"], match["chip"]) for match in read if match}
    return named.pop() if len(named) == 1 and len(numbered) == len(chips) else ""


def _are_planes(ends: Sequence[Mapping[int, tuple[str, int]]]) -> bool:
    """Return whether the ports that several chips use lead alike. Links to each other would lead to their own box."""
    used = Counter(number for own in ends for number in own)
    shared = [number for number, chips in used.items() if chips > 1]
    alike = sum(len({own[number] for own in ends if number in own}) == 1 for number in shared)
    return bool(shared) and alike >= MIN_ALIKE * len(shared)


def _make_chip(chip: DiscoveredDevice, box: str, *, is_named: bool, is_plane: bool) -> BoxChip:
    read = CHIP.fullmatch(chip.description.strip()) if is_named else None
    if read is None:
        return BoxChip(box, "", 0, chip.name)
    module, number = read["module"] or "", int(read["chip"])
    name = "-".join(part for part in (box, module, f"p{number}" if is_plane else f"U{number}") if part)
    return BoxChip(box, module, number if is_plane and number else 0, name)


@dataclass(frozen=True)
class FoldedPlanes:
    """A discovery in which the first chip of a box stands for the box, and the chips of each box by that GUID.

    All planes are cabled alike, so the rules of one describe all. What differs in a plane is left to the comparison.
    """

    discovery: FabricDiscovery
    planes: int
    chips: Mapping[str, ChipsOfBox]

    def unfold(self, rules: Mapping[str, Any], make_guid: Callable[[], str]) -> dict[str, Any]:
        """Return the rules of a design with the chips of each switch. `make_guid` gives one to a chip nobody saw."""
        unfolded = dict(rules)
        for name in (name for name in ("leaves", "spines", "cores") if name in rules):
            switches = []
            for switch in rules[name]["at"]:
                known = self.chips.get(switch["guid"], {1: switch["guid"]})
                first, *others = [known.get(plane) or make_guid() for plane in range(1, self.planes + 1)]
                switches.append({**switch, "guid": first, "other_planes": others})
            unfolded[name] = rules[name] | {"at": switches}
        return unfolded | {"planes": self.planes}


def fold_planes(discovery: FabricDiscovery) -> FoldedPlanes | None:
    """Return the discovery with its planes folded, None where no box has planes."""
    carrying = {guid: chip for guid, chip in find_box_chips(discovery.devices, discovery.cables).items() if chip.plane}
    if not carrying:
        return None
    boxes: dict[str, dict[int, str]] = defaultdict(dict)
    for guid, chip in carrying.items():
        boxes[chip.box][chip.plane] = guid
    first_of = {box: chips[min(chips)] for box, chips in boxes.items()}
    devices = {
        guid: device._replace(ports=1) if device.kind == "hca" else device
        for guid, device in discovery.devices.items()
        if guid not in carrying or guid == first_of[carrying[guid].box]
    }
    folded = {guid: first_of[chip.box] for guid, chip in carrying.items()}
    cables = _keep_agreed(_fold_cable(cable, devices, folded) for cable in discovery.cables)
    chips_of_first = {first_of[box]: chips for box, chips in boxes.items()}
    return FoldedPlanes(FabricDiscovery(cables, devices), _count_planes(discovery, boxes.values()), chips_of_first)


def _count_planes(discovery: FabricDiscovery, boxes: Collection[ChipsOfBox]) -> int:
    """Return the number of planes: of most boxes, or of the ports of most adapters, if nobody sees the last plane."""
    ports = [
        device.ports
        for device in discovery.devices.values()
        if device.kind == "hca" and device.description != AGGREGATION_NODE
    ]
    usual = find_mode(ports) if ports else 0
    return max(find_mode(map(max, boxes)), usual if usual <= MAX_PLANES else 0)


def _fold_cable(
    cable: DiscoveredCable, devices: Mapping[str, DiscoveredDevice], folded: Mapping[str, str]
) -> DiscoveredCable:
    """Return a link as one of the boxes. `folded` has the GUID that stands for each chip's box."""
    a, b = (
        PortId(
            folded.get(end.guid, end.guid), 1 if end.guid in devices and devices[end.guid].kind == "hca" else end.number
        )
        for end in cable[:2]
    )
    return DiscoveredCable(a, b, cable.rate)


def _keep_agreed(cables: Iterable[DiscoveredCable]) -> list[DiscoveredCable]:
    """Return the cables that most planes have at both of their ends."""
    count = Counter(DiscoveredCable(min(a, b), max(a, b), rate) for a, b, rate in cables)
    kept: dict[PortId, DiscoveredCable] = {}
    for cable, _ in count.most_common():
        if cable.a not in kept and cable.b not in kept:
            kept[cable.a] = kept[cable.b] = cable
    return list(dict.fromkeys(kept.values()))


@dataclass(frozen=True)
class SplitAdapters:
    """A discovery in which each cabled port of an adapter is a device, `GUID/PORT`, and the host of each of these.

    So each has one cable, as the inference of rails needs it. `rails`: where a list gives the order of a node's
    adapters, the place of each name in it.
    """

    discovery: FabricDiscovery
    hosts: Mapping[str, HostAdapter]
    rails: Mapping[str, int]

    def join(self, rules: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rules of a design with whole adapters, and the port of each rail."""
        rails = [slot.rpartition("/") for slot in rules["adapter_names"]]
        names = sorted({name for name, _, _ in rails}, key=lambda name: (self.rails.get(name, 0), sort_naturally(name)))
        ports = [f"{names.index(name)}/{port}" for name, _, port in rails]
        adapters: dict[str, list[str]] = {host: [] for host in rules["adapters"]}
        for host, guids in rules["adapters"].items():
            for own in names:
                own_ports = [guid for guid, (name, _, _) in zip(guids, rails, strict=True) if name == own]
                seen = [port for port in own_ports if port in self.hosts]  # a port that nobody saw names no adapter
                adapters[host].append((seen or own_ports)[0].partition("/")[0])
        return {**rules, "adapter_names": names, "adapter_ports": ports, "adapters": adapters}


def split_adapters(discovery: FabricDiscovery, hosts: Mapping[str, HostAdapter]) -> SplitAdapters | None:
    """Return the discovery with the ports of adapters apart, None where most adapters have one cabled port."""
    cabled: dict[str, set[int]] = defaultdict(set)
    for port in (port for cable in discovery.cables for port in cable[:2] if port.guid in hosts):
        cabled[port.guid].add(port.number)
    usual = _find_usual_ports(cabled, hosts)
    if max(map(len, usual.values()), default=0) < MIN_PORTS:
        return None
    own = {
        f"{guid}/{number}": hosts[guid]._replace(slot=f"{hosts[guid].slot}/{number}", rail=-1)
        for guid in cabled
        for number in usual[hosts[guid].slot]
    }
    devices = {guid: device for guid, device in discovery.devices.items() if guid not in cabled}
    devices |= {name: DiscoveredDevice(name, "hca", 1, host.host) for name, host in own.items()}
    cables = [
        DiscoveredCable(_find_port(cable.a, own), _find_port(cable.b, own), cable.rate) for cable in discovery.cables
    ]
    listed = {host.slot: host.rail for host in hosts.values() if host.rail >= 0}
    return SplitAdapters(FabricDiscovery(cables, devices), own, listed)


def _find_usual_ports(cabled: Mapping[str, set[int]], hosts: Mapping[str, HostAdapter]) -> dict[str, frozenset[int]]:
    """Return the ports with a cable that most adapters of each name have."""
    count: dict[str, Counter[frozenset[int]]] = defaultdict(Counter)
    for guid, ports in cabled.items():
        count[hosts[guid].slot][frozenset(ports)] += 1
    return {slot: ports.most_common(1)[0][0] for slot, ports in count.items()}


def _find_port(port: PortId, own: Mapping[str, HostAdapter]) -> PortId:
    name = f"{port.guid}/{port.number}"
    return PortId(name, 1) if name in own else port


class RenumberedPorts(NamedTuple):
    """A discovery in which the ports of leaves have other numbers: first those to nodes, then those to switches.

    `order` has the real number of each, by leaf.
    """

    discovery: FabricDiscovery
    order: Mapping[str, list[int]]

    def find_real(self, leaf: str, ports: Iterable[int]) -> list[int]:
        """Return the real numbers of ports."""
        return [self.order[leaf][port - 1] for port in ports] if leaf in self.order else [*ports]

    def restore(self, rules: dict[str, Any]) -> dict[str, Any]:
        """Return rules with the real ports: those of most leaves in the tier, others at the leaf."""
        tier = rules["leaves"]
        own = [
            {side: format_ports(self.find_real(leaf["guid"], parse_port_range(tier[side]))) for side in ("down", "up")}
            if leaf["guid"] in self.order
            else {}
            for leaf in tier["at"]
        ]
        usual, _ = Counter(tuple(each.items()) for each in own if each).most_common(1)[0]
        at = [leaf | (each if each != dict(usual) else {}) for leaf, each in zip(tier["at"], own, strict=True)]
        return rules | {"leaves": {**tier, **dict(usual), "at": at}}


def renumber_leaf_ports(discovery: FabricDiscovery) -> RenumberedPorts | None:
    """Return the discovery with other port numbers, None if all leaves have one range of ports to nodes, and the same.

    Leaves that are alike vote about what each port is for, so that a few wrong cables change nothing.
    """
    leads_to: dict[str, dict[int, bool]] = defaultdict(dict)
    for near, far in (ends for a, b, _ in discovery.cables for ends in ((a, b), (b, a))):
        device = discovery.devices.get(far.guid)
        is_at_switch = near.guid in discovery.devices and discovery.devices[near.guid].kind == "switch"
        if device and is_at_switch and device.description != AGGREGATION_NODE:
            leads_to[near.guid][near.number] = device.kind == "hca"
    leaves = {guid: ports for guid, ports in leads_to.items() if sum(ports.values()) > LEAF_SHARE * len(ports)}
    alike: list[list[str]] = []
    for leaf in sorted(leaves, key=lambda leaf: (-len(leaves[leaf]), leaf)):
        ports = leaves[leaf]
        for group in alike:
            shared = ports.keys() & leaves[group[0]].keys()
            if sum(ports[port] == leaves[group[0]][port] for port in shared) >= ALIKE_SHARE * len(shared):
                group.append(leaf)
                break
        else:
            alike.append([leaf])
    purposes = [_vote_purposes([leaves[leaf] for leaf in group]) for group in alike]
    runs = [sum(a != b for a, b in pairwise(purpose)) for purpose in purposes]
    if len(purposes) < 2 and max(runs, default=0) < 2:
        return None
    order: dict[str, list[int]] = {}
    first_up = max(map(sum, purposes))
    for group, purpose in zip(alike, purposes, strict=True):
        numbers = range(1, len(purpose) + 1)
        down = [number for number in numbers if purpose[number - 1]]
        up = [number for number in numbers if not purpose[number - 1]]
        order |= dict.fromkeys(group, down + [0] * (first_up - len(down)) + up)
    place = {leaf: {number: at for at, number in enumerate(ports, start=1)} for leaf, ports in order.items()}
    cables = []
    for cable in discovery.cables:
        a, b = (PortId(p.guid, place.get(p.guid, {}).get(p.number, p.number)) for p in (cable.a, cable.b))
        cables.append(DiscoveredCable(a, b, cable.rate))
    return RenumberedPorts(FabricDiscovery(cables, discovery.devices), order)


def _vote_purposes(leaves: Sequence[Mapping[int, bool]]) -> list[bool]:
    """Return for each port, from 1, whether it is for nodes. A free port is for what the ports before it are for.

    A few ports among others are no range: they have stray cables.
    """
    votes = Counter[int]()
    for leaf in leaves:
        votes.update({port: 1 if is_node else -1 for port, is_node in leaf.items()})
    known = [port for port in sorted(votes) if votes[port]]
    runs = [[*run] for _, run in groupby(known, key=lambda port: votes[port] > 0)]
    starts = [run[0] for run in runs if len(run) >= MIN_RANGE]
    every = range(1, known[-1] + 1) if starts else ()
    return [votes[max((start for start in starts if start <= port), default=starts[0])] > 0 for port in every]


def format_ports(ports: Sequence[int]) -> str:
    """Return port numbers as a design writes them: `1..12,25..36`."""
    starts = [at for at, port in enumerate(ports) if not at or port != ports[at - 1] + 1]
    ends = [*(at - 1 for at in starts[1:]), len(ports) - 1]
    return ",".join(f"{ports[start]}..{ports[end]}" for start, end in zip(starts, ends, strict=True))
