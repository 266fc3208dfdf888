"""Which box stands in which place, told by the cables that end in it.

A place is a device of the design, known by its designed GUID; a box is what answers there. Nearly always they are the
same. Two boxes in each other's place, or a new box in a known one, move a whole set of cables at once: every cable of
the box ends at the very port where the design has that place's cable. Once that is seen, the rest of the fabric is
compared as if each box had its place's GUID. Nodes are carried as one, with all of their adapters.

What is left to explain once it is known which box stands in which place.
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


@dataclass
class ResidualDiff:
    """Cables by places: those of `expected` and `actual` that remain, and those that the boxes' places explain."""

    expected: Matching
    actual: Matching
    rates: dict[PortId, str]
    explained: list[PortPair] = field(default_factory=list)
    slow: list[DiscoveredCable] = field(default_factory=list)


def find_residual_diff(plan: CompiledTopology, diff: PortDiff, place: Mapping[str, str]) -> ResidualDiff:
    """Take the cables out that are as designed once each box is taken for its `place`."""
    if not place:
        return ResidualDiff(diff.expected, diff.actual, diff.rates)
    settled = ResidualDiff(dict(diff.expected), {}, {})
    for a, b, rate in _observed_cables(plan, diff, place, settled.expected):
        here, there = PortId(place.get(a.guid, a.guid), a.number), PortId(place.get(b.guid, b.guid), b.number)
        settled.actual |= {here: there, there: here}
        settled.rates |= {here: rate, there: rate}
    for a, b in list(settled.actual.items()):
        if settled.expected.get(a) == b and a in settled.actual:
            settled.explained.append((a, b))
            if is_slower(settled.rates[a], find_designed_rate(plan, a)):
                settled.slow.append(DiscoveredCable(a, b, settled.rates[a]))
            for port in (a, b):
                del settled.expected[port], settled.actual[port]
    return settled


def _observed_cables(
    plan: CompiledTopology, diff: PortDiff, boxes: Iterable[str], expected: Matching
) -> Iterator[tuple[PortId, PortId, str]]:
    """Yield the undesigned cables, and those of `boxes` that still lead where their GUIDs would have them.

    Such a cable differs after all: its place has another one. So it becomes `expected` too.
    """
    for a, b in diff.actual.items():
        yield a, b, diff.rates[a]
    for a, b, rate in _cables_by_own_guid(plan, diff, boxes):
        expected |= {a: b, b: a}
        yield a, b, rate


def find_designed_rate(plan: CompiledTopology, port: PortId) -> str:
    """Return the designed rate at a port that has a cable."""
    return next(row[3] for row in plan.rows[port.guid[2:]] if int(row[0]) == port.number)


def _cables_by_own_guid(
    plan: CompiledTopology, diff: PortDiff, boxes: Iterable[str]
) -> Iterator[tuple[PortId, PortId, str]]:
    """Yield the cables of boxes that stand elsewhere which still lead to where their GUID would have them."""
    for guid in boxes:
        own = {row[:3] for row in plan.rows.get(guid[2:], ())}
        for port, far, far_port, rate in diff.rows.get(guid[2:], ()):
            if (port, far, far_port) in own:
                yield PortId(guid, int(port)), PortId(f"0x{far}", int(far_port)), rate


MIN_MOVED_PER_OWN = 4
"""Of so many cables in another's place, at most one may still be in its own."""
UNKNOWN_DEVICE_SHARE = 4
"""A box that nobody knows must have at least a quarter of a place's cables to stand there."""

Unit = str
"""What is carried as one: a node's name, or a GUID."""


@dataclass(frozen=True, slots=True)
class DevicePermutation:
    """Boxes that stand in each other's places: unit by unit, the last in the place of the first where it is `closed`.

    An open one begins with a box that is new, or whose own place is empty now, and ends in the place of one that is
    gone. `places` has the place of each box, by GUID.
    """

    moves: tuple[tuple[Unit, Unit], ...]
    closed: bool
    places: Mapping[str, str]


def find_device_permutations(
    plan: CompiledTopology, diff: PortDiff, present: Container[str]
) -> list[DevicePermutation]:
    """Return what stands elsewhere: switches first, since nodes are told by the switches that they lead to.

    A box is told by its neighbours, so those that are known by then may tell of further ones.
    """
    if not diff.actual or not diff.expected:
        return []
    boxes = _DeviceMatcher(plan, diff, present)
    found: list[DevicePermutation] = []
    for nodes in (False, True):
        while more := boxes.find_permutations(
            map_devices_to_places(found), find_residual_diff(plan, diff, map_devices_to_places(found)), nodes=nodes
        ):
            found += more
    return found


def map_devices_to_places(found: Iterable[DevicePermutation]) -> dict[str, str]:
    """Return the place of every box that stands elsewhere."""
    return {box: place for one in found for box, place in one.places.items()}


class _DeviceMatcher:
    def __init__(self, plan: CompiledTopology, diff: PortDiff, present: Container[str]) -> None:
        self.plan, self.diff, self.present = plan, diff, present
        self.members: dict[str, list[str]] = defaultdict(list)
        for guid, device in plan.devices.items():
            if device.node:
                self.members[device.node].append(guid)

    def find_permutations(
        self, known: Mapping[str, str], settled: ResidualDiff, *, nodes: bool
    ) -> list[DevicePermutation]:
        """Return further rounds of nodes and adapters, or of switches; `known` is settled already."""
        best: dict[Unit, tuple[int, Unit]] = {}
        taken = set(known.values())
        for unit, counted in self._votes(settled).items():
            place, count = max(counted.items(), key=lambda item: (item[1], item[0]))
            is_new = taken.isdisjoint(self._guids(place)) and not any(
                g in known or g in taken for g in self._guids(unit)
            )
            if is_new and self._is_switch(place) != nodes and self._convinces(unit, place, count, known):
                best[place] = max(best.get(place, (0, "")), (count, unit))
        moves = self._possible({unit: place for place, (_, unit) in best.items()}, known)
        return [self._permutation(*walk) for walk in _ordered_moves(moves)]

    def _votes(self, settled: ResidualDiff) -> dict[Unit, Counter[Unit]]:
        """Count for each unit in whose place its cables end."""
        votes: dict[Unit, Counter[Unit]] = defaultdict(Counter)
        for here, there in settled.actual.items():
            place = settled.expected.get(there)
            if place and place.number == here.number and place.guid != here.guid:
                unit, target = self._units(here.guid, place.guid)
                if target:
                    votes[unit][target] += 1
        return votes

    def _units(self, box: str, place: str) -> tuple[Unit, Unit]:
        """Return what is carried when this box is in that place; no place where a node's adapter takes another's."""
        device, there = self.plan.devices.get(box), self.plan.devices[place]
        if device is None or not device.node:
            return box, "" if device and device.kind != there.kind else place
        same = bool(there.node) and self.members[device.node].index(box) == self.members[there.node].index(place)
        return device.node, there.node if same and there.node != device.node else ""

    def _convinces(self, unit: Unit, place: Unit, count: int, known: Mapping[str, str]) -> bool:
        links = sum(len(self.diff.rows.get(guid[2:], ())) for guid in self._guids(unit))
        if unit not in self.plan.devices and unit not in self.members:
            return count * 2 >= links and count * UNKNOWN_DEVICE_SHARE >= len(self.plan.rows[place[2:]])
        return count >= 2 and count * 3 >= links and self._kept(unit, known) * MIN_MOVED_PER_OWN <= count

    def _kept(self, unit: Unit, known: Mapping[str, str]) -> int:
        """Count the cables that end where the design has this unit's own."""
        kept = 0
        for guid in self._guids(unit):
            designed = {row[:3] for row in self.plan.rows[guid[2:]]}
            found = self.diff.rows.get(guid[2:], ())
            kept += sum((port, known.get(f"0x{far}", f"0x{far}")[2:], at) in designed for port, far, at, _ in found)
        return kept

    def _possible(self, moves: dict[Unit, Unit], known: Container[str]) -> dict[Unit, Unit]:
        """Leave out moves into a place whose own box is still there."""
        while True:
            left = {unit: place for unit, place in moves.items() if self._free(place, moves, known)}
            if len(left) == len(moves):
                return left
            moves = left

    def _free(self, place: Unit, moves: Container[Unit], known: Container[str]) -> bool:
        device = self.plan.devices.get(place)
        moved = place in moves or (device is not None and device.node in moves)
        return moved or not any(guid in self.present and guid not in known for guid in self._guids(place))

    def _permutation(self, moves: list[tuple[Unit, Unit]], closed: bool) -> DevicePermutation:
        pairs = (zip(self._guids(unit), self._guids(place), strict=False) for unit, place in moves)
        return DevicePermutation(tuple(moves), closed, {box: place for both in pairs for box, place in both})

    def _guids(self, unit: Unit) -> list[str]:
        return self.members.get(unit) or [unit]

    def _is_switch(self, unit: Unit) -> bool:
        device = self.plan.devices.get(unit)
        return device is not None and device.kind != "hca"


def _ordered_moves(moves: Mapping[Unit, Unit]) -> Iterator[tuple[list[tuple[Unit, Unit]], bool]]:
    """Yield the moves one after another, chains from their beginning first; then what goes round."""
    left, targets = dict(moves), set(moves.values())
    for start in [*(unit for unit in moves if unit not in targets), *moves]:
        walk, here = [], start
        while here in left:
            walk.append((here, left.pop(here)))
            here = walk[-1][1]
        if walk:
            yield walk, here == start
