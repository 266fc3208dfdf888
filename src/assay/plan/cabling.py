"""The cables to move, as a work order: the old design is taken for what is found, the new one for what is expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from assay.fabric.compare import compare
from assay.fabric.design import Device, Plan, plan
from assay.fabric.discovery import Discovery, FoundCable, FoundDevice
from assay.fabric.discrepancy import Discrepancy, Pair
from assay.model.cable import Cable, End, Port
from assay.model.design import FabricDesign
from assay.model.fleet import Fleet
from assay.plan.replug import best_pairs, shift

What = Literal["swap", "move", "lay", "take-out", "device-moves", "device-changes", "rate", "length"]


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work. `steps` are for hands, in order; `nodes` lose links meanwhile; `place` sorts the round."""

    fabric: str
    what: What
    steps: tuple[str, ...]
    nodes: tuple[str, ...]
    place: tuple[str, int] = ("", 0)


def cabling(before: Fleet, after: Fleet) -> tuple[Job, ...]:
    """Return the work that turns the designed cables of one revision into those of the other, rack by rack."""
    jobs: list[Job] = []
    for name in sorted({*before.designs, *after.designs}):
        old, new = before.designs.get(name), after.designs.get(name)
        if old is None or new is None or old != new or _looks_at(old, before) != _looks_at(new, after):
            jobs += _Change(name, _plan(old, before), _plan(new, after)).jobs()
    return tuple(sorted(jobs, key=lambda job: (job.fabric, job.place, job.steps)))


def _looks_at(design: FabricDesign, fleet: Fleet) -> list[object]:
    """Return what a design is compiled from, besides itself."""
    seen: list[object] = []
    for name in design.node_names():
        node = fleet.nodes.get(name)
        seen.append(node and (node.hca_guids, node.site, node.rack, node.u))
    return seen


def _plan(design: FabricDesign | None, fleet: Fleet) -> Plan | None:
    return plan(design, fleet) if design else None


@dataclass
class _Change:
    """One fabric, before and after; None where there was or will be no design."""

    name: str
    old: Plan | None
    new: Plan | None
    lengths: dict[frozenset[Port], float] = field(default_factory=dict)

    def jobs(self) -> Iterator[Job]:
        if self.new is None:
            yield from self._whole(self.old, "take-out", "the fabric is no longer designed")
        elif self.old is None:
            yield from self._whole(self.new, "lay", "a new fabric")
        else:
            yield from self._moved_devices(self.old, self.new)
            yield from self._recabled(self.old, self.new)
            yield from self._other_lengths(self.old, self.new)

    def _whole(self, compiled: Plan | None, what: What, why: str) -> Iterator[Job]:
        cables = compiled.cables if compiled else ()
        nodes = {end.node for cable in cables for end in cable.ends if end.node}
        counts = Counter(cable.a.rack for cable in cables)
        done = {"lay": "lay", "take-out": "take out"}[what]
        steps = [f"rack {rack}: {done} {count} cables" for rack, count in sorted(counts.items())]
        yield Job(self.name, what, (f"{why}: {len(cables)} cables", *steps), tuple(sorted(nodes)))

    def _moved_devices(self, old: Plan, new: Plan) -> Iterator[Job]:
        for guid, device in new.devices.items():
            was = old.devices.get(guid)
            if was and device.kind == "switch" and (was.rack, was.u) != (device.rack, device.u):
                cables = sum(guid in (cable.a.guid, cable.b.guid) for cable in new.cables)
                step = f"move the switch {_named(was, device)} from {_place(was)} to {_place(device)}"
                nodes = {end.node for cable in new.cables if guid in (cable.a.guid, cable.b.guid) for end in cable.ends}
                steps = (step, f"its {cables} cables go with it")
                yield Job(self.name, "device-moves", steps, tuple(sorted(nodes - {""})), (was.rack, was.u))

    def _recabled(self, old: Plan, new: Plan) -> Iterator[Job]:
        self.lengths = {frozenset((cable.a.at, cable.b.at)): cable.length_m for cable in new.cables}
        found = compare(new, _as_found(old)).discrepancies
        slower = [one for one in found if one.kind == "degraded"]
        if slower:
            yield _rates(self.name, slower)
        for one in found:
            if one.kind != "degraded":
                yield self._job(one)

    def _job(self, one: Discrepancy) -> Job:
        steps = tuple(step for pair in self._pairs(one) for step in self._steps(pair))
        what: What = "move"
        if one.kind == "swap":
            what, steps = "swap", (one.corrections[0], *(self._lands(pair) for pair in one.cables))
        elif one.kind == "device-replaced":
            what = "device-changes"
            steps = (f"{one.device} is another device: {one.summary.rpartition(' ')[2]}", "its cables stay")
        elif all(pair.observed is None for pair in one.cables):
            what = "lay"
        elif all(pair.expected is None for pair in one.cables):
            what = "take-out"
        return Job(self.name, what, steps, self._nodes(one), self._first_place(one))

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
        for compiled in (self.new, self.old):
            if compiled and (found := compiled.end(end.at)):
                return found
        return end

    def _length(self, cable: Cable) -> str:
        metres = self.lengths.get(frozenset((cable.a.at, cable.b.at)), 0)
        return f", {metres:g} m" if metres else ""

    def _nodes(self, one: Discrepancy) -> tuple[str, ...]:
        return tuple(sorted({self._known(end).node for end in one.ends} - {""}))

    def _first_place(self, one: Discrepancy) -> tuple[str, int]:
        return min(((end.rack, end.u) for end in map(self._known, one.ends)), default=("", 0))

    def _other_lengths(self, old: Plan, new: Plan) -> Iterator[Job]:
        was = {frozenset((cable.a.at, cable.b.at)): cable.length_m for cable in old.cables}
        pairs = ((cable, was.get(frozenset((cable.a.at, cable.b.at)))) for cable in new.cables)
        changed = [(length, cable) for cable, length in pairs if length is not None and length != cable.length_m]
        for (a, b), count in Counter((length, cable.length_m) for length, cable in changed).items():
            cables = [cable for length, cable in changed if (length, cable.length_m) == (a, b)]
            nodes = {end.node for cable in cables for end in cable.ends} - {""}
            yield Job(self.name, "length", (f"{count} cables: {a:g} m → {b:g} m",), tuple(sorted(nodes)))


def _rates(fabric: str, slower: list[Discrepancy]) -> Job:
    pairs = [pair for one in slower for pair in one.cables if pair.expected and pair.observed]
    kinds = Counter((pair.observed.rate, pair.expected.rate) for pair in pairs if pair.observed and pair.expected)
    nodes = {name for one in slower for name in one.nodes}
    return Job(fabric, "rate", tuple(f"{n} cables: {a} → {b}" for (a, b), n in kinds.items()), tuple(sorted(nodes)))


def _as_found(compiled: Plan) -> Discovery:
    """Return a design as if a scan had found it."""
    cables = [FoundCable(cable.a.at, cable.b.at, cable.rate) for cable in compiled.cables]
    return Discovery(cables, {device.guid: _found(device) for device in compiled.devices.values()})


def _found(device: Device) -> FoundDevice:
    return FoundDevice(device.guid, device.kind, device.ports, device.description)


def _named(old: Device, new: Device) -> str:
    return new.name if old.name == new.name else f"{old.name}, then called {new.name},"


def _place(device: Device) -> str:
    return f"{device.rack} U{device.u}"


def nodes_of(jobs: Iterable[Job]) -> set[str]:
    """Return the nodes that lose links while the work is done."""
    return {node for job in jobs for node in job.nodes}
