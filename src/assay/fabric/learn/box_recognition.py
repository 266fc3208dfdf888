"""Tells which switch chips share a box, and on which card and plane of it each one is.

A system image GUID says which chips share a box. Names say which chip of which card it is, where they are written
`MF0;NAME:PRODUCT/U2` or `MF0;NAME:PRODUCT/L01/U1`; in the output of a tool that tells no system image GUID, they also
say which chips share a box. The chips of a box carry planes if all of them are cabled alike.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredCable, DiscoveredDevice

CHIP = re.compile(r"MF0;(?P<box>.+?):(?P<product>[\w-]+)(?:/(?P<module>[A-Z]+\d+))?/U(?P<chip>\d+)")
MIN_ALIKE = 0.75
"""Our own choice: planes are there if so large a part of the ports leads to the same box on all chips."""


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
    boxes = {system: chips for system, chips in chips_of.items()
             if len(chips) > 1 and (chips[0].system or _find_own_name(chips))}  # fmt: skip
    if not boxes:
        return {}
    far_ends = _list_far_ends(devices, cables, boxes)
    names = {system: _find_own_name(chips) for system, chips in boxes.items()}
    found: dict[str, BoxChip] = {}
    for system, chips in boxes.items():
        is_named = bool(names[system]) and list(names.values()).count(names[system]) == 1
        planes = is_named and _are_planes([far_ends[chip.guid] for chip in chips])
        for chip in chips:
            box = names[system] if is_named else f"{chip.name} {system}"
            found[chip.guid] = _make_chip(chip, box, is_named=is_named, is_plane=planes)
    return found | dict(_find_lone_chips(devices, found))


def _find_lone_chips(
    devices: Mapping[str, DiscoveredDevice], found: Mapping[str, BoxChip]
) -> Iterator[tuple[str, BoxChip]]:
    """Yield the last chip that works of a box with planes: its name has the form of theirs."""
    products = {_find_chip_product(devices[guid]) for guid, chip in found.items() if chip.plane} - {""}
    for guid, device in devices.items():
        if guid not in found and device.kind == "switch" and _find_chip_product(device) in products:
            read = CHIP.fullmatch(device.description.strip())
            yield guid, _make_chip(device, read["box"] if read else "", is_named=True, is_plane=True)


def _find_chip_product(chip: DiscoveredDevice) -> str:
    read = CHIP.fullmatch(chip.description.strip())
    return read["product"] if read else ""


def _list_far_ends(
    devices: Mapping[str, DiscoveredDevice], cables: Iterable[DiscoveredCable], boxes: Mapping[str, object]
) -> Mapping[str, dict[int, tuple[str, int]]]:
    """Return, for each port of each device, the box or adapter that it leads to, and the port of a box."""
    found: dict[str, dict[int, tuple[str, int]]] = defaultdict(dict)
    for a, b, _ in cables:
        for here, there in ((a, b), (b, a)):
            far = devices.get(there.guid)
            if far and far.description == AGGREGATION_NODE:
                continue
            system = _find_system(far) if far and far.kind == "switch" else ""
            found[here.guid][here.number] = (system, there.number) if system in boxes else (there.guid, 0)
    return found


def _find_system(chip: DiscoveredDevice) -> str:
    """Return what the chips of a box share, "" where nothing tells."""
    if chip.system:
        return chip.system
    read = CHIP.fullmatch(chip.description.strip())
    return f"{read['box']}:{read['product']}" if read else ""


def _find_own_name(chips: Sequence[DiscoveredDevice]) -> str:
    """Return the name of the box that all of its chips announce, "" without one."""
    read = [CHIP.fullmatch(chip.description.strip()) for chip in chips]
    named = {one["box"] for one in read if one}
    numbered = {(one["module"], one["chip"]) for one in read if one}
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
