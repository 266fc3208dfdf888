"""Tells which switch chips share a box, and on which card and plane of it each one is.

A system image GUID says which chips share a box. Names say which chip of which card it is, where they are written
`MF0;NAME:PRODUCT/U2` or `MF0;NAME:PRODUCT/L01/U1`. The chips of a box carry planes if all of them are cabled alike.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice

CHIP = re.compile(r"MF0;(?P<box>.+?):[\w-]+(?:/(?P<module>[A-Z]+\d+))?/U(?P<chip>\d+)")
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
        if device.kind == "switch" and device.system:
            chips_of[device.system].append(device)
    boxes = {system: chips for system, chips in chips_of.items() if len(chips) > 1}
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
    return found


def _list_far_ends(
    devices: Mapping[str, DiscoveredDevice], cables: Iterable[DiscoveredCable], boxes: Mapping[str, object]
) -> Mapping[str, dict[int, tuple[str, int]]]:
    """Return, for each port of each device, the box or adapter that it leads to, and the port of a box."""
    found: dict[str, dict[int, tuple[str, int]]] = defaultdict(dict)
    for a, b, _ in cables:
        for here, there in ((a, b), (b, a)):
            far = devices.get(there.guid)
            is_chip = far is not None and far.system in boxes and far.kind == "switch"
            found[here.guid][here.number] = (far.system, there.number) if far and is_chip else (there.guid, 0)
    return found


def _find_own_name(chips: Sequence[DiscoveredDevice]) -> str:
    """Return the name of the box that all of its chips announce, "" without one."""
    read = [CHIP.fullmatch(chip.description.strip()) for chip in chips]
    named = {one["box"] for one in read if one}
    numbered = {(one["module"], one["chip"]) for one in read if one}
    return named.pop() if len(named) == 1 and len(numbered) == len(chips) else ""


def _are_planes(ends: Sequence[Mapping[int, tuple[str, int]]]) -> bool:
    """Return whether the ports of all chips lead alike. Links to each other would lead back to their own box."""
    ports = {number for own in ends for number in own}
    alike = sum(len({own.get(number) for own in ends}) == 1 for number in ports)
    return bool(ports) and alike >= MIN_ALIKE * len(ports)


def _make_chip(chip: DiscoveredDevice, box: str, *, is_named: bool, is_plane: bool) -> BoxChip:
    read = CHIP.fullmatch(chip.description.strip()) if is_named else None
    if read is None:
        return BoxChip(box, "", 0, chip.name)
    module, number = read["module"] or "", int(read["chip"])
    name = "-".join(part for part in (box, module, f"p{number}" if is_plane else f"U{number}") if part)
    return BoxChip(box, module, number if is_plane and number else 0, name)
