"""Finds devices that stand in another device's place, by the cables that end in them.

A place is a device of the design, known by its designed GUID. What answers there may have another GUID: two devices in
each other's place, or a new device in a known place. Then every cable of the device ends at the port where the design
has that place's cable. Once that is known, the rest is compared as if each device had the GUID of its place. A node
moves as one unit, with all of its adapters. Where new devices could be in their places, or be crossed, the names that
they announce decide it: a new device with the name of one that is gone is that device, wherever it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial

from assay.fabric.compare.device_names import AnnouncedNames
from assay.fabric.compare.port_diff import (
    DevicePermutation,
    PortDiff,
    ResidualDiff,
    Unit,
    find_residual_diff,
    map_devices_to_places,
)
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.lazy_discovery import PortRow

Moves = dict[Unit, Unit]
"""The place of each unit that is not in its own."""
MIN_MOVED_PER_OWN = 4
"""For each cable of a unit that is still in its own place, at least so many must be in the other place."""
UNKNOWN_DEVICE_SHARE = 4
"""A device that the design lacks must have at least this part (1/4) of a place's cables to stand there."""


def find_device_permutations(
    topology: CompiledTopology, diff: PortDiff, present: Container[str], names: AnnouncedNames
) -> list[DevicePermutation]:
    """Return the units that stand in another's place. `present` are the GUIDs that answer.

    What new devices are is told by their cables; by their names if these say that a device is elsewhere.
    """
    if not diff.actual or not diff.expected:
        return []
    permutations = _DeviceMatcher(topology, diff, present, names, {}).find_all()
    renewed = _find_renewed_elsewhere(topology, diff, present, names, map_devices_to_places(permutations))
    if not renewed:
        return permutations
    permutations = _DeviceMatcher(topology, diff, present, names, renewed).find_all()
    moved = map_devices_to_places(permutations)
    in_place = [(new, old) for new, old in renewed.items() if new not in moved]
    return [
        *permutations,
        *(DevicePermutation(((new, old),), False, {new: old}, (new,), {new: old}) for new, old in in_place),
    ]


def _find_renewed_elsewhere(
    topology: CompiledTopology,
    diff: PortDiff,
    present: Container[str],
    names: AnnouncedNames,
    places: Mapping[str, str],
) -> dict[str, str]:
    """Return the new devices that announce the name of a device that is gone, and whose cables are not in its place.

    Each maps to the GUID of that device. If something else stands in its place, `places` say, there is no telling.
    """
    new = {port.guid for port in diff.actual if port.guid not in topology.devices}
    claims = names.find_claims(sorted(new)) if new else {}
    order = {guid: index for index, guid in enumerate(topology.devices)} if claims else {}
    claims = dict(sorted(claims.items(), key=lambda claim: order[claim[1]]))
    moved = {guid: old for guid, old in claims.items() if old not in present and places.get(guid) != old}
    while True:
        filled = {place for guid, place in places.items() if guid in new and guid not in moved}
        kept = {guid: old for guid, old in moved.items() if old not in filled}
        if len(kept) == len(moved):
            return kept
        moved = kept


class _DeviceMatcher:
    """Finds the permutations. `renewed` are new devices, each with the designed GUID of the device that it is."""

    def __init__(
        self,
        topology: CompiledTopology,
        diff: PortDiff,
        present: Container[str],
        names: AnnouncedNames,
        renewed: Mapping[str, str],
    ) -> None:
        self.topology = topology
        self.diff = diff
        self.present = present
        self.names = names
        self.renewed, self.new_guids = renewed, {old: new for new, old in renewed.items()}
        self.cabled = {port.guid for port in diff.actual}
        self.adapters_of_node: dict[str, list[str]] = defaultdict(list)
        for guid, device in topology.devices.items():
            if device.node:
                self.adapters_of_node[device.node].append(guid)

    def find_all(self) -> list[DevicePermutation]:
        """Return every permutation.

        Switches come first, because a node is recognised by its switches. A unit is recognised by its neighbours, so
        each permutation may reveal further ones. Single adapters come last: only their names show that they moved.
        """
        permutations: list[DevicePermutation] = []
        searches: tuple[Callable[[Mapping[str, str], Mapping[str, str], ResidualDiff], Moves], ...] = (
            partial(self._find_moves, nodes=False),
            partial(self._find_moves, nodes=True),
            self._find_named_adapters,
        )
        for search in searches:
            while True:
                moved = map_devices_to_places(permutations)
                places = {**self.renewed, **moved}
                residual = find_residual_diff(self.topology, self.diff, places)
                known = {self.renewed.get(guid, guid): place for guid, place in moved.items()}
                if not (moves := search(known, places, residual)):
                    break
                moves = self._put_in_order(self._drop_occupied(moves, known))
                permutations += (more := [self._make_permutation(*walk) for walk in _order_moves(moves)])
                if not more:
                    break
        return permutations

    def _put_in_order(self, moves: Moves) -> Moves:
        """Return the moves in the order in which the design has the units, new ones first."""
        if len(moves) < 2:
            return moves
        order = {guid: index for index, guid in enumerate(self.topology.devices)}
        return dict(sorted(moves.items(), key=lambda move: order.get(self._list_guids(move[0])[0], -1)))

    def _find_moves(
        self, known: Mapping[str, str], places: Mapping[str, str], residual: ResidualDiff, *, nodes: bool
    ) -> Moves:
        """Return further moves of nodes and adapters, or of switches. `known` maps devices to known places."""
        best: dict[Unit, tuple[int, Unit]] = {}
        taken = set(known.values())
        for unit, votes in self._count_votes(residual).items():
            place, count = max(votes.items(), key=lambda vote: (vote[1], vote[0]))
            is_new = taken.isdisjoint(self._list_guids(place)) and not any(
                guid in known or guid in taken for guid in self._list_guids(unit)
            )
            device = self.topology.devices.get(place)
            is_switch = device is not None and device.kind != "hca"
            if is_new and is_switch != nodes and self._is_convincing(unit, place, count, places):
                best[place] = max(best.get(place, (0, "")), (count, unit))
        return self._drop_overlapping(best)

    def _find_named_adapters(
        self, known: Mapping[str, str], places: Mapping[str, str], residual: ResidualDiff
    ) -> Moves:
        """Return the moves of known adapters that are where the names that they announce belong."""
        del places
        moves: Moves = {}
        for here, there in residual.actual.items():
            designed = residual.expected.get(there)
            if designed and designed != here and here.guid not in known and designed.number == here.number:
                moves[here.guid] = designed.guid
        devices = self.topology.devices
        adapters = {guid for guid in moves if guid in devices and devices[guid].node and guid not in self.new_guids}
        claims = self.names.find_claims(sorted(adapters)) if adapters else {}
        taken = set(known.values())
        return {guid: place for guid, place in moves.items() if claims.get(guid) == place and place not in taken}

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

    def _is_convincing(self, unit: Unit, place: Unit, count: int, places: Mapping[str, str]) -> bool:
        cables = sum(len(self._list_rows(guid)) for guid in self._list_guids(unit))
        if unit not in self.topology.devices and unit not in self.adapters_of_node:
            designed = len(self.topology.rows[place[2:]])
            if cables <= designed:  # cables to devices that are new too, such as chips of its box, say nothing yet
                far_ends = (f"0x{row[1]}" for row in self._list_rows(unit))
                cables = sum(guid in self.topology.devices or guid in places for guid in far_ends)
            return count * 2 >= cables and count * UNKNOWN_DEVICE_SHARE >= designed
        own = self._count_own_cables(unit, places)
        return count >= 2 and count * 3 >= cables and own * MIN_MOVED_PER_OWN <= count

    def _count_own_cables(self, unit: Unit, places: Mapping[str, str]) -> int:
        """Count the cables of a unit that end where the design has them."""
        count = 0
        for guid in self._list_guids(unit):
            designed = {row[:3] for row in self.topology.rows[guid[2:]]}
            for number, far, far_number, _ in self._list_rows(guid):
                place = places.get(f"0x{far}", f"0x{far}")
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
        return not any(self._is_present(guid) and guid not in known for guid in self._list_guids(place))

    def _make_permutation(self, moves: list[tuple[Unit, Unit]], closed: bool) -> DevicePermutation:
        pairs = [pair for unit, place in moves for pair in self._pair_devices(unit, place)]
        places = {self.new_guids.get(guid, guid): there for guid, there in pairs}
        devices = tuple(guid for unit, _ in moves for guid in self._list_guids(unit))
        renewed = {new: old for new, old in self.renewed.items() if new in places}
        return DevicePermutation(tuple(moves), closed, places, devices, renewed)

    def _pair_devices(self, unit: Unit, place: Unit) -> list[tuple[str, str]]:
        """Return each device of a unit that answers, with the device in whose place it stands."""
        pairs = zip(self._list_guids(unit), self._list_guids(place), strict=False)
        return [(guid, there) for guid, there in pairs if self._is_present(guid) or guid in self.cabled]

    def _is_present(self, guid: str) -> bool:
        return guid in self.present or guid in self.new_guids

    def _list_rows(self, guid: str) -> Sequence[PortRow]:
        return self.diff.rows.get(self.new_guids.get(guid, guid)[2:], ())

    def _list_guids(self, unit: Unit) -> list[str]:
        return self.adapters_of_node.get(unit) or [unit]


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
