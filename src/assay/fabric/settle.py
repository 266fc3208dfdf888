"""What is left to explain once it is known which box stands in which place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from assay.fabric.boxes import Round, placed
from assay.fabric.differing import Differing, Matching
from assay.fabric.discovery import FoundCable
from assay.fabric.planned import Plan
from assay.fabric.rate import slower
from assay.model.cable import Port

Edge = tuple[Port, Port]


@dataclass
class Settled:
    """Cables by places: those of `expected` and `actual` that remain, and for each round those that it explains."""

    expected: Matching
    actual: Matching
    rates: Mapping[Port, str]
    explained: dict[int, list[Edge]] = field(default_factory=lambda: defaultdict(list))
    slow: list[FoundCable] = field(default_factory=list)


def settle(plan: Plan, diff: Differing, rounds: list[Round]) -> Settled:
    """Take the cables out that the rounds explain."""
    if not rounds:
        return Settled(diff.expected, diff.actual, diff.rates)
    place = placed(rounds)
    expected, actual, rates = dict(diff.expected), {}, {}
    for a, b in diff.actual.items():
        here = Port(place.get(a.guid, a.guid), a.number)
        actual[here], rates[here] = Port(place.get(b.guid, b.guid), b.number), diff.rates[a]
    for a, b, rate in _kept(plan, diff, place):
        expected[a], expected[b] = b, a
        here, there = Port(place.get(a.guid, a.guid), a.number), Port(place.get(b.guid, b.guid), b.number)
        actual[here], actual[there] = there, here
        rates[here] = rates[there] = rate
    settled = Settled(expected, actual, rates)
    of_place = {there: number for number, one in reversed(list(enumerate(rounds))) for there in one.places.values()}
    for a, b in list(actual.items()):
        if expected.get(a) == b and a in actual:
            number = min(of_place[port.guid] for port in (a, b) if port.guid in of_place)
            settled.explained[number].append((a, b))
            if slower(rates[a], designed(plan, a)):
                settled.slow.append(FoundCable(a, b, rates[a]))
            for port in {a, b}:
                del expected[port], actual[port]
    return settled


def designed(plan: Plan, port: Port) -> str:
    """Return the designed rate at a port that has a cable."""
    return next(row[3] for row in plan.rows[port.guid[2:]] if int(row[0]) == port.number)


def _kept(plan: Plan, diff: Differing, boxes: Iterable[str]) -> Iterator[tuple[Port, Port, str]]:
    """Yield the cables of boxes that stand elsewhere which still lead to where their GUID would have them."""
    for guid in boxes:
        own = {row[:3] for row in plan.rows.get(guid[2:], ())}
        for port, far, far_port, rate in diff.rows.get(guid[2:], ()):
            if (port, far, far_port) in own:
                yield Port(guid, int(port)), Port(f"0x{far}", int(far_port)), rate
