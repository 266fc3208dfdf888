"""Plugs to move where the structure of a fabric changes: the old design is taken for what is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.fabric.compare import compare
from assay.fabric.design import Device, Plan
from assay.fabric.discovery import Discovery, FoundCable, FoundDevice
from assay.fabric.discrepancy import Discrepancy, Pair
from assay.model.cable import Cable, End, Port
from assay.plan.job import Job, What
from assay.plan.replug import best_pairs, shift


def recabling(name: str, old: Plan, new: Plan) -> list[Job]:
    """Return the work that turns the cables of one design into those of another."""
    return _Change(name, old, new).jobs()


class _Change:
    """One fabric, before and after."""

    def __init__(self, name: str, old: Plan, new: Plan) -> None:
        self.name, self.old, self.new = name, old, new
        self.lengths = {_ports(cable): cable.length_m for cable in new.cables}
        self.ends: dict[Port, End] = {}

    def jobs(self) -> list[Job]:
        found = compare(self.new, _as_found(self.old, self.new)).discrepancies
        return [self._job(one) for one in found]

    def _job(self, one: Discrepancy) -> Job:
        what, steps = self._work(one)
        return Job(self.name, what, steps, self._nodes(one), self._first_place(one))

    def _work(self, one: Discrepancy) -> tuple[What, tuple[str, ...]]:
        if one.kind == "swap":
            return "swap", (one.corrections[0], *(self._lands(pair) for pair in one.cables))
        if one.kind == "device-replaced":
            return "device-changes", self._another(one)
        steps = tuple(step for pair in self._pairs(one) for step in self._steps(pair))
        if all(pair.observed is None for pair in one.cables):
            return "lay", steps
        if all(pair.expected is None for pair in one.cables):
            return "take-out", steps
        return "move", steps

    def _another(self, one: Discrepancy) -> tuple[str, ...]:
        """Say a switch that takes the place of another, cable for cable."""
        new = next(end for end in one.ends if end.device == one.device)
        old = next(end for end in one.ends if end.guid not in self.new.devices)
        return f"replace the switch {new.device} ({new.rack} U{new.u}): {old.guid} by {new.guid}", "its cables stay"

    def _pairs(self, one: Discrepancy) -> Sequence[Pair]:
        """Return the cables as they are best turned into the others; only plugs that moved leave a choice."""
        return best_pairs(one.cables) if one.kind == "moved" else one.cables

    def _steps(self, pair: Pair) -> Iterator[str]:
        """Say one cable: lay it, take it out, or move one plug of it."""
        if pair.expected and pair.observed:
            kept, wrong, right = shift(pair.expected, pair.observed)
            yield f"move the plug from {self._end(wrong)} to {self._end(right)}{self._length(pair.expected)}"
            yield f"the other plug stays in {self._end(kept)}"
        elif pair.expected:
            ends = " to ".join(self._end(end) for end in pair.expected.ends)
            yield f"lay a cable from {ends}{self._length(pair.expected)}"
        elif pair.observed:
            ends = " and ".join(self._end(end) for end in pair.observed.ends)
            yield f"take out the cable between {ends}"

    def _lands(self, pair: Pair) -> str:
        cable = pair.expected
        assert cable is not None, "a swap exchanges designed cables"
        return f"then {self._end(cable.a)} leads to {self._end(cable.b)}{self._length(cable)}"

    def _end(self, end: End) -> str:
        return str(self._known(end))

    def _known(self, end: End) -> End:
        """Return an end with its rack: of the new design, or of the old one for a device that goes."""
        port = end.at
        if port not in self.ends:
            self.ends[port] = self.new.end(port) or self.old.end(port) or end
        return self.ends[port]

    def _length(self, cable: Cable) -> str:
        metres = self.lengths.get(_ports(cable), 0)
        return f", {metres:g} m" if metres else ""

    def _nodes(self, one: Discrepancy) -> tuple[str, ...]:
        return tuple(sorted({self._known(end).node for end in one.ends} - {""}))

    def _first_place(self, one: Discrepancy) -> tuple[str, int]:
        return min(((end.rack, end.u) for end in map(self._known, one.ends)), default=("", 0))


def _ports(cable: Cable) -> frozenset[Port]:
    return frozenset((cable.a.at, cable.b.at))


def _as_found(old: Plan, new: Plan) -> Discovery:
    """Return a design as if a scan had found it, at the new rates: other rates are told for all cables at once."""
    cables = [FoundCable(cable.a.at, cable.b.at, _rate(new, cable)) for cable in old.cables]
    return Discovery(cables, {device.guid: _found(device) for device in old.devices.values()})


def _rate(new: Plan, cable: Cable) -> str:
    now = new.cable_at(cable.a.at) or new.cable_at(cable.b.at)
    return now.rate if now else cable.rate


def _found(device: Device) -> FoundDevice:
    return FoundDevice(device.guid, device.kind, device.ports, device.description)
