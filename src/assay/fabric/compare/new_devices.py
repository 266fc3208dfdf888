"""Devices that the design lacks, in the places of others or elsewhere: whose they are, and what is told of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from assay.fabric.compare.cable_discrepancies import EndResolver
from assay.fabric.compare.discrepancy import CablingDiscrepancy
from assay.fabric.compare.residual_diff import DevicePermutation, PortPair


class NewDevices:
    """The permutations of one new device in a known place, by the node or switch whose place it is.

    `owner` has the first of the other permutations that moved a unit, or filled its place.
    """

    def __init__(self, permutations: Sequence[DevicePermutation], resolver: EndResolver) -> None:
        self.permutations, self.resolver = permutations, resolver
        devices = resolver.topology.devices
        designed = {unit for guid, device in devices.items() for unit in (guid, device.node)}
        self.of_unit: dict[str, list[int]] = defaultdict(list)
        self.owner: dict[str, int] = {}
        for index, permutation in enumerate(permutations):
            first, place = permutation.moves[0]
            if permutation.closed or len(permutation.moves) > 1 or first in designed:
                for unit in (unit for move in permutation.moves for unit in move):
                    self.owner.setdefault(unit, index)
            else:
                self.of_unit[devices[place].node or place].append(index)
        self.indexes = {index for indexes in self.of_unit.values() for index in indexes}

    def list_joined(self, owner: int) -> list[int]:
        """Return the indexes of what is new in the places of a permutation."""
        return [index for unit, indexes in self.of_unit.items() for index in indexes if self.owner.get(unit) == owner]

    def list_alone(self) -> list[list[int]]:
        """Return the indexes of what is new in the places of all other units."""
        return [indexes for unit, indexes in self.of_unit.items() if unit not in self.owner]

    def map_places(self, indexes: Iterable[int]) -> dict[str, str]:
        """Return the place of each new device."""
        return {guid: place for index in indexes for guid, place in self.permutations[index].places.items()}

    def describe_renewed(self, permutation: DevicePermutation) -> list[str]:
        """Return the new GUIDs of the units of a permutation. These were known by the names that they announce."""
        devices = self.resolver.topology.devices
        news: dict[str, list[str]] = defaultdict(list)
        for new, old in permutation.renewed.items():
            news[devices[old].node or devices[old].name].append(new)
        return [f"{name} is known by its name, and has new GUIDs: {', '.join(guids)}" for name, guids in news.items()]

    def describe_joined(self, owner: int) -> list[str]:
        """Return what is new in the places of a permutation: another node in the place that was left, or adapters."""
        return [
            f"{_format_new(self.map_places(indexes), self.resolver)}, which the design lacks, is in the place of"
            f" {format_unit(unit, self.resolver)}"
            for unit, indexes in self.of_unit.items()
            if self.owner.get(unit) == owner
        ]


def list_untold_devices(
    permutations: Sequence[DevicePermutation], explained: Mapping[int, Sequence[PortPair]], resolver: EndResolver
) -> dict[str, str]:
    """Return new devices of which no cable is in its place, by GUID, each with its name in the design.

    `report_misplaced_devices` tells them only if other devices of their node are in their places.
    """
    devices = resolver.topology.devices
    told = {
        devices[place].node or place
        for index, permutation in enumerate(permutations)
        if explained.get(index)
        for place in permutation.places.values()
    }
    olds = {new: old for each in permutations for new, old in each.renewed.items()}
    return {new: devices[old].name for new, old in olds.items() if (devices[old].node or old) not in told}


def tell_new_devices(discrepancy: CablingDiscrepancy, names: Mapping[str, str]) -> CablingDiscrepancy:
    """Add to a discrepancy of cables the new GUIDs of the devices at them that are in `names`."""
    new = {end.guid: names[end.guid] for end in discrepancy.ends if end.guid in names}
    if not new:
        return discrepancy
    facts = "; ".join(f"{name} has the new GUID {guid}" for guid, name in new.items())
    fix = f"; then write {' and '.join(new)} into the design"
    corrections = tuple(f"{correction}{fix}" for correction in discrepancy.corrections)
    return replace(discrepancy, summary=f"{discrepancy.summary}; {facts}", corrections=corrections)


def _format_new(places: Mapping[str, str], resolver: EndResolver) -> str:
    """Return what answers in places by the name that it announces, and its GUIDs."""
    names = [device.name for guid in places if (device := resolver.discovery.devices.get(guid))]
    hosts = {name.partition(" ")[0] for name in names}
    announced = names[0] if len(set(names)) == 1 else hosts.pop() if len(hosts) == 1 else ", ".join(names)
    return f"{announced} ({', '.join(places)})" if announced else ", ".join(places)


def format_name(unit: str, resolver: EndResolver) -> str:
    """Return the name of a node or device, in the design or as it announces itself."""
    designed = resolver.topology.devices.get(unit)
    if designed:
        return designed.name
    found = resolver.discovery.devices.get(unit)
    return f"{found.name} ({unit})" if found else unit


def format_unit(unit: str, resolver: EndResolver) -> str:
    """Return a designed unit's name with its rack and U."""
    devices = resolver.topology.devices
    device = devices.get(unit) or next(device for device in devices.values() if device.node == unit)
    return f"{device.name if unit in devices else unit}{format_place(device.rack, device.u)}"


def format_place(rack: str, u: int) -> str:
    """Return a rack and U in brackets, "" without a rack."""
    return f" ({rack}{f' U{u}' if u else ''})" if rack else ""
