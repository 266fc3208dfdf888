"""Folds the planes of a fabric into one: each box is a switch, each adapter has one port, each cable is one link.

All planes are cabled alike, so the rules of one describe all. What differs in a plane is left to the comparison.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.learn.box_recognition import find_box_chips
from assay.fabric.learn.majority_votes import find_mode
from assay.model.specs.fabric.ports_and_cables import PortId
from assay.model.specs.fabric.switch_settings import MAX_PLANES

ChipsOfBox = Mapping[int, str]
"""The GUIDs of the chips of a box, by plane, from 1. One that nobody saw is missing."""


@dataclass(frozen=True)
class FoldedPlanes:
    """A discovery in which the first chip of a box stands for the box, and the chips of each box by that GUID."""

    discovery: FabricDiscovery
    planes: int
    chips: Mapping[str, ChipsOfBox]

    def unfold(self, rules: Mapping[str, Any], make_guid: Callable[[], str]) -> dict[str, Any]:
        """Return the rules of a design with the chips of each switch. `make_guid` gives one to a chip nobody saw."""
        unfolded = dict(rules)
        for name in (name for name in ("leaves", "spines", "cores") if name in rules):
            switches = [self._add_chips(switch, make_guid) for switch in rules[name]["at"]]
            unfolded[name] = rules[name] | {"at": switches}
        return unfolded | {"planes": self.planes}

    def _add_chips(self, switch: Mapping[str, Any], make_guid: Callable[[], str]) -> dict[str, Any]:
        known = self.chips.get(switch["guid"], {1: switch["guid"]})
        first, *others = [known.get(plane) or make_guid() for plane in range(1, self.planes + 1)]
        return {**switch, "guid": first, "other_planes": others}


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
        guid: _fold_device(device)
        for guid, device in discovery.devices.items()
        if guid not in carrying or guid == first_of[carrying[guid].box]
    }
    folded = {guid: first_of[chip.box] for guid, chip in carrying.items()}
    cables = _keep_agreed(_fold_cable(cable, devices, folded) for cable in discovery.cables)
    chips_of_first = {first_of[box]: chips for box, chips in boxes.items()}
    return FoldedPlanes(FabricDiscovery(cables, devices), _count_planes(discovery, boxes.values()), chips_of_first)


def _count_planes(discovery: FabricDiscovery, boxes: Collection[ChipsOfBox]) -> int:
    """Return the number of planes: of most boxes, or of the ports of most adapters, if nobody sees the last plane."""
    ports = [device.ports for device in discovery.devices.values()
             if device.kind == "hca" and device.description != AGGREGATION_NODE]  # fmt: skip
    usual = find_mode(ports) if ports else 0
    return max(find_mode(map(max, boxes)), usual if usual <= MAX_PLANES else 0)


def _fold_device(device: DiscoveredDevice) -> DiscoveredDevice:
    return device._replace(ports=1) if device.kind == "hca" else device


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
