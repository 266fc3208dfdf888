"""Finds devices that stand in another device's place, by the cables that end in them.

A place is a device of the design, known by its designed GUID. What answers there may have another GUID: two devices in
each other's place, or a new device in a known place. Then every cable of the device ends at the port where the design
has that place's cable. Once that is known, the rest is compared as if each device had the GUID of its place. A node
moves as one unit, with all of its adapters.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from assay.fabric.comparison.port_diff import Matching, PortDiff
from assay.fabric.discovery import DiscoveredCable
from assay.fabric.link_rates_and_states import is_slower
from assay.fabric.topology.compiled_topology import CompiledTopology
from assay.model.fabric.ports_and_cables import PortId

PortPair = tuple[PortId, PortId]
Unit = str
"""What moves as one: a node, by its name, or a device, by its GUID."""

MIN_MOVED_PER_OWN = 4
"""For each cable of a unit that is still in its own place, at least so many must be in the other place."""
UNKNOWN_DEVICE_SHARE = 4
"""A device that the design lacks must have at least this part (1/4) of a place's cables to stand there."""


@dataclass(frozen=True, slots=True)
class DevicePermutation:
    """Units that stand in each other's places: each of `moves` is (unit, place).

    If it is `closed`, the last unit stands in the place of the first. Otherwise the first unit is new, or left its own
    place to nothing or to a new device, and the last place is that of a unit that is gone. `places` maps the GUID of
    each device that answers to its place's. `devices` are all of the units' GUIDs: an adapter may have been replaced.
    """

    moves: tuple[tuple[Unit, Unit], ...]
    closed: bool
    places: Mapping[str, str]
    devices: tuple[str, ...] = ()


@dataclass
class ResidualDiff:
    """What still differs once each device has the GUID of its place.

    Of `expected` and `actual` cables, those that the devices' places explain are moved to `explained`. `rates` and
    `slow` are as in PortDiff.
    """

    expected: Matching
    actual: Matching
    rates: dict[PortId, str]
    explained: list[PortPair] = field(default_factory=list)
    slow: list[DiscoveredCable] = field(default_factory=list)


def find_device_permutations(
    topology: CompiledTopology, diff: PortDiff, present: Container[str]
) -> list[DevicePermutation]:
    """Return the units that stand in another's place. `present` are the GUIDs that answer.

    Switches come first, because a node is recognised by its switches. A unit is recognised by its neighbours, so each
    permutation may reveal further ones.
    """
    if not diff.actual or not diff.expected:
        return []
    matcher = _DeviceMatcher(topology, diff, present)
    permutations: list[DevicePermutation] = []
    for nodes in (False, True):
        while True:
            places = map_devices_to_places(permutations)
            more = matcher.find_permutations(places, find_residual_diff(topology, diff, places), nodes=nodes)
            if not more:
                break
            permutations += more
    return permutations


def map_devices_to_places(permutations: Iterable[DevicePermutation]) -> dict[str, str]:
    """Return the place of every device that is not in its own."""
    return {guid: place for permutation in permutations for guid, place in permutation.places.items()}


def find_residual_diff(topology: CompiledTopology, diff: PortDiff, places: Mapping[str, str]) -> ResidualDiff:
    """Remove the cables that are as designed once each device has the GUID of its place."""
    if not places:
        return ResidualDiff(diff.expected, diff.actual, diff.rates)
    residual = ResidualDiff(dict(diff.expected), {}, {})
    for a, b, rate in _list_observed_cables(topology, diff, places, residual.expected):
        here, there = PortId(places.get(a.guid, a.guid), a.number), PortId(places.get(b.guid, b.guid), b.number)
        residual.actual |= {here: there, there: here}
        residual.rates |= {here: rate, there: rate}
    for a, b in list(residual.actual.items()):
        if residual.expected.get(a) == b and a in residual.actual:
            residual.explained.append((a, b))
            if is_slower(residual.rates[a], _find_designed_rate(topology, a)):
                residual.slow.append(DiscoveredCable(a, b, residual.rates[a]))
            for port in (a, b):
                del residual.expected[port], residual.actual[port]
    return residual


def _list_observed_cables(
    topology: CompiledTopology, diff: PortDiff, moved: Iterable[str], expected: Matching
) -> Iterator[tuple[PortId, PortId, str]]:
    """Yield the undesigned cables, and those of `moved` devices that still lead where their own GUIDs belong.

    The latter differ too, since the device's place has another cable. So they are added to `expected`.
    """
    for a, b in diff.actual.items():
        yield a, b, diff.rates[a]
    for guid in moved:
        own = {row[:3] for row in topology.rows.get(guid[2:], ())}
        for number, far, far_number, rate in diff.rows.get(guid[2:], ()):
            if (number, far, far_number) in own:
                a, b = PortId(guid, int(number)), PortId(f"0x{far}", int(far_number))
                expected |= {a: b, b: a}
                yield a, b, rate


def _find_designed_rate(topology: CompiledTopology, port: PortId) -> str:
    return next(row[3] for row in topology.rows[port.guid[2:]] if int(row[0]) == port.number)


class _DeviceMatcher:
    def __init__(self, topology: CompiledTopology, diff: PortDiff, present: Container[str]) -> None:
        self.topology, self.diff, self.present = topology, diff, present
        self.cabled = {port.guid for port in diff.actual}
        self.adapters_of_node: dict[str, list[str]] = defaultdict(list)
        for guid, device in topology.devices.items():
            if device.node:
                self.adapters_of_node[device.node].append(guid)

    def find_permutations(
        self, known: Mapping[str, str], residual: ResidualDiff, *, nodes: bool
    ) -> list[DevicePermutation]:
        """Return further permutations of nodes and adapters, or of switches. `known` maps devices to known places."""
        best: dict[Unit, tuple[int, Unit]] = {}
        taken = set(known.values())
        for unit, votes in self._count_votes(residual).items():
            place, count = max(votes.items(), key=lambda vote: (vote[1], vote[0]))
            is_new = taken.isdisjoint(self._list_guids(place)) and not any(
                guid in known or guid in taken for guid in self._list_guids(unit)
            )
            if is_new and self._is_switch(place) != nodes and self._is_convincing(unit, place, count, known):
                best[place] = max(best.get(place, (0, "")), (count, unit))
        moves = self._drop_occupied(self._drop_overlapping(best), known)
        return [self._make_permutation(*walk) for walk in _order_moves(moves)]

    def _count_votes(self, residual: ResidualDiff) -> dict[Unit, Counter[Unit]]:
        """Count, for each unit, how many of its cables end in each other unit's place."""
        votes: dict[Unit, Counter[Unit]] = defaultdict(Counter)
        for here, there in residual.actual.items():
            designed = residual.expected.get(there)
            if designed and designed.number == here.number and designed.guid != here.guid:
                unit, place = self._find_units(here.guid, designed.guid)
                if place:
                    votes[unit][place] += 1
        return votes

    def _find_units(self, guid: str, place: str) -> tuple[Unit, Unit]:
        """Return the unit and the place of a device in another device's place.

        The place is "" for an adapter in the place of an adapter of its own node, or of another rail.
        """
        device, designed = self.topology.devices.get(guid), self.topology.devices[place]
        if device is None or not device.node:
            return guid, "" if device and device.kind != designed.kind else place
        if not designed.node or designed.node == device.node:
            return device.node, ""
        rails = (
            self.adapters_of_node[device.node].index(guid),
            self.adapters_of_node[designed.node].index(place),
        )
        return device.node, designed.node if rails[0] == rails[1] else ""

    def _is_convincing(self, unit: Unit, place: Unit, count: int, known: Mapping[str, str]) -> bool:
        cables = sum(len(self.diff.rows.get(guid[2:], ())) for guid in self._list_guids(unit))
        if unit not in self.topology.devices and unit not in self.adapters_of_node:
            return count * 2 >= cables and count * UNKNOWN_DEVICE_SHARE >= len(self.topology.rows[place[2:]])
        own = self._count_own_cables(unit, known)
        return count >= 2 and count * 3 >= cables and own * MIN_MOVED_PER_OWN <= count

    def _count_own_cables(self, unit: Unit, known: Mapping[str, str]) -> int:
        """Count the cables of a unit that end where the design has them."""
        count = 0
        for guid in self._list_guids(unit):
            designed = {row[:3] for row in self.topology.rows[guid[2:]]}
            for number, far, far_number, _ in self.diff.rows.get(guid[2:], ()):
                place = known.get(f"0x{far}", f"0x{far}")
                count += (number, place[2:], far_number) in designed
        return count

    def _drop_overlapping(self, best: Mapping[Unit, tuple[int, Unit]]) -> dict[Unit, Unit]:
        """Return each unit's place. Of two units that claim a device's place, that with more cables there has it."""
        moves: dict[Unit, Unit] = {}
        taken: set[str] = set()
        for place, (_, unit) in sorted(best.items(), key=lambda claim: -claim[1][0]):
            claimed = {there for here, there in self._pair_devices(unit, place)}
            if taken.isdisjoint(claimed):
                moves[unit] = place
                taken |= claimed
        return moves

    def _drop_occupied(self, moves: dict[Unit, Unit], known: Container[str]) -> dict[Unit, Unit]:
        """Leave out moves into a place whose own unit is still there."""
        while True:
            possible = {unit: place for unit, place in moves.items() if self._is_vacant(place, moves, known)}
            if len(possible) == len(moves):
                return possible
            moves = possible

    def _is_vacant(self, place: Unit, moves: Container[Unit], known: Container[str]) -> bool:
        device = self.topology.devices.get(place)
        if place in moves or (device is not None and device.node in moves):
            return True
        return not any(guid in self.present and guid not in known for guid in self._list_guids(place))

    def _make_permutation(self, moves: list[tuple[Unit, Unit]], closed: bool) -> DevicePermutation:
        places = {guid: there for unit, place in moves for guid, there in self._pair_devices(unit, place)}
        devices = tuple(guid for unit, _ in moves for guid in self._list_guids(unit))
        return DevicePermutation(tuple(moves), closed, places, devices)

    def _pair_devices(self, unit: Unit, place: Unit) -> list[tuple[str, str]]:
        """Return each device of a unit that answers, with the device in whose place it stands."""
        pairs = zip(self._list_guids(unit), self._list_guids(place), strict=False)
        return [(guid, there) for guid, there in pairs if guid in self.present or guid in self.cabled]

    def _list_guids(self, unit: Unit) -> list[str]:
        return self.adapters_of_node.get(unit) or [unit]

    def _is_switch(self, unit: Unit) -> bool:
        device = self.topology.devices.get(unit)
        return device is not None and device.kind != "hca"


def _order_moves(moves: Mapping[Unit, Unit]) -> Iterator[tuple[list[tuple[Unit, Unit]], bool]]:
    """Yield chains of moves, each with whether it is closed: open chains first, from their start, then closed ones."""
    remaining, targets = dict(moves), set(moves.values())
    for start in [*(unit for unit in moves if unit not in targets), *moves]:
        chain, unit = [], start
        while unit in remaining:
            chain.append((unit, remaining.pop(unit)))
            unit = chain[-1][1]
        if chain:
            yield chain, unit == start
