"""Draws what is wrong with cables, as SVG: the ends as boxes, where the cables should be, and where they are. Pure.

Colours are those of the page that shows it (classes). What a line means is also written at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Literal

from assay.fabric.compare.discrepancy import CablingDiscrepancy
from assay.model.facts import frozen
from assay.model.specs.fabric.cable import Cable, CableEnd, PortId

LineKind = Literal["designed", "seen", "right"]
LINE_WORDS: dict[LineKind, str] = {"designed": "design", "seen": "is", "right": "right"}
WIDTH = 360  # px, as the next four; it fits a phone
BOX_WIDTH = 140
BOX_HEIGHT = 44
ROW = 60
BOW = 60
MAX_CABLES = 12
LETTERS = 20
"""So many characters of a name fit into a box."""
FindAddress = Callable[[CableEnd], str]
"""Returns the address of the page of an end's device, "" for none."""


@frozen
class DrawnLine:
    """A cable between two boxes, by their places."""

    a: PortId
    b: PortId
    kind: LineKind


def draw_discrepancy(discrepancy: CablingDiscrepancy, find_address: FindAddress = lambda _: "") -> str:
    """Return a picture of the cables of a discrepancy; the first ones, if there are very many."""
    pairs = discrepancy.cables[:MAX_CABLES]
    lines = list(_list_lines([(pair.expected, pair.observed) for pair in pairs]))
    cables = [cable for pair in pairs for cable in (pair.expected, pair.observed) if cable]
    ends = {end.port_id: end for cable in cables for end in cable.ends}
    left, right = _choose_sides(cables)
    height = max(len(left), len(right), 1) * ROW + 12
    places = {port: (0, row * ROW + 6) for row, port in enumerate(left)}
    places |= {port: (WIDTH - BOX_WIDTH, row * ROW + 6) for row, port in enumerate(right)}
    shapes = [_draw_line(line, places) for line in sorted(lines, key=lambda line: line.kind)]
    shapes += [_draw_box(ends[port], *at, find_address(ends[port])) for port, at in places.items()]
    label = escape(discrepancy.summary)
    head = f'<svg class="fault-drawing" role="group" aria-label="{label}" viewBox="0 0 {WIDTH} {height}">'
    return "\n".join([head, *shapes, "</svg>"])


def _list_lines(pairs: Sequence[tuple[Cable | None, Cable | None]]) -> Iterator[DrawnLine]:
    designed = {_key(expected) for expected, _ in pairs if expected}
    seen = {_key(observed) for _, observed in pairs if observed}
    for key in sorted(designed | seen):
        kind: LineKind = "right" if key in designed & seen else "designed" if key in designed else "seen"
        yield DrawnLine(*key, kind)


def _key(cable: Cable) -> tuple[PortId, PortId]:
    first, second = sorted((cable.a.port_id, cable.b.port_id))
    return first, second


def _choose_sides(cables: Sequence[Cable]) -> tuple[list[PortId], list[PortId]]:
    """Return the ends of the left and of the right side, so that cables lead from one to the other where they can."""
    side: dict[PortId, bool] = {}
    for cable in cables:
        a, b = cable.a.port_id, cable.b.port_id
        side.setdefault(a, not side.get(b, True) if b in side else False)
        side.setdefault(b, not side[a])
    return [port for port, is_right in side.items() if not is_right], [port for port, right in side.items() if right]


def _draw_line(line: DrawnLine, places: dict[PortId, tuple[int, int]]) -> str:
    (ax, ay), (bx, by) = sorted((places[line.a], places[line.b]))
    start, y1, y2 = ax + BOX_WIDTH, ay + BOX_HEIGHT // 2, by + BOX_HEIGHT // 2
    if ax == bx:  # both ends on one side: a bow
        edge, out = (start, start + BOW) if ax == 0 else (ax, ax - BOW)
        path, middle = f"M{edge} {y1} C{out} {y1} {out} {y2} {edge} {y2}", (edge + out) // 2
    else:
        path, middle = f"M{start} {y1} L{bx} {y2}", start + (bx - start) * (2 if line.kind == "designed" else 3) // 4
    share = (middle - start) / max(bx - start, 1) if ax != bx else 0.5
    text = f'<text x="{middle}" y="{y1 + (y2 - y1) * share - 5:.0f}">{LINE_WORDS[line.kind]}</text>'
    return f'<g class="{line.kind}"><path d="{path}"/>{text}</g>'


def _draw_box(end: CableEnd, x: int, y: int, address: str) -> str:
    port = f"port {end.label or end.port}"
    where = " ".join(part for part in (end.rack, f"U{end.u}" if end.u else "") if part)
    words = f"{port}, {where}" if where else port
    box = (
        f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
        f'<text x="{x + 10}" y="{y + 19}" class="name">{escape(_cut(end.device))}</text>'
        f'<text x="{x + 10}" y="{y + 35}">{escape(_cut(words))}</text>'
    )
    return f'<a href="{escape(address)}" class="end">{box}</a>' if address else f'<g class="end">{box}</g>'


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
