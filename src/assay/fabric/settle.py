"""What is left to explain once it is known which box stands in which place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from assay.fabric.differing import Differing, Matching
from assay.fabric.discovery import FoundCable
from assay.fabric.planned import Plan
from assay.fabric.rate import slower
from assay.model.cable import Port

Edge = tuple[Port, Port]


@dataclass
class Settled:
    """Cables by places: those of `expected` and `actual` that remain, and those that the boxes' places explain."""

    expected: Matching
    actual: Matching
    rates: dict[Port, str]
    explained: list[Edge] = field(default_factory=list)
    slow: list[FoundCable] = field(default_factory=list)


def settle(plan: Plan, diff: Differing, place: Mapping[str, str]) -> Settled:
    """Take the cables out that are as designed once each box is taken for its `place`."""
    if not place:
        return Settled(diff.expected, diff.actual, diff.rates)
    settled = Settled(dict(diff.expected), {}, {})
    for a, b, rate in _seen(plan, diff, place, settled.expected):
        here, there = Port(place.get(a.guid, a.guid), a.number), Port(place.get(b.guid, b.guid), b.number)
        settled.actual |= {here: there, there: here}
        settled.rates |= {here: rate, there: rate}
    for a, b in list(settled.actual.items()):
        if settled.expected.get(a) == b and a in settled.actual:
            settled.explained.append((a, b))
            if slower(settled.rates[a], designed(plan, a)):
                settled.slow.append(FoundCable(a, b, settled.rates[a]))
            for port in (a, b):
                del settled.expected[port], settled.actual[port]
    return settled


def _seen(plan: Plan, diff: Differing, boxes: Iterable[str], expected: Matching) -> Iterator[tuple[Port, Port, str]]:
    """Yield the undesigned cables, and those of `boxes` that still lead where their GUIDs would have them.

    Such a cable differs after all: its place has another one. So it becomes `expected` too.
    """
    for a, b in diff.actual.items():
        yield a, b, diff.rates[a]
    for a, b, rate in _kept(plan, diff, boxes):
        expected |= {a: b, b: a}
        yield a, b, rate


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
