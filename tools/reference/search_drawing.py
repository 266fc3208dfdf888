"""Draws how a search finds a faulty node, as SVG. The rounds are those of a real search. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from assay.validate.collectives.fabric_map import FabricMap, FabricNode
from assay.validate.collectives.results import PairResult
from assay.validate.collectives.rounds import PairRound
from assay.validate.collectives.search import CollectiveSearch

LEAVES, NODES = 3, 4
FAULTY_NODE = "n03"
WIDTH, ROW_HEIGHT, TOP = 960, 118, 46
INK, GREY, LINE, GOOD, BAD = "#1a202c", "#718096", "#a0aec0", "#2f855a", "#c53030"
CAPTIONS: Mapping[str, str] = {
    "M1": "other leaves",
    "M2": "other leaves, new partners",
    "M3": "the own leaf",
    "C1": "confirm: a good partner",
    "C2": "confirm: another one",
}


def draw_search() -> str:
    """Return a picture of the rounds of a search in which one node is faulty."""
    search = CollectiveSearch(_build_fabric(), [f"n{at:02}" for at in range(LEAVES * NODES)], seed=2)
    shapes: list[str] = []
    results: list[PairResult] = []
    ended: set[str] = set()
    while (planned := search.find_next_round(results, ended)) and planned.name in CAPTIONS:
        results += [_run(planned.name, pair) for pair in planned.pairs]
        shapes += _draw_round(planned, TOP + ROW_HEIGHT * len(ended))
        ended.add(planned.name)
    height = TOP + ROW_HEIGHT * len(ended) + 34
    text = f"{FAULTY_NODE} was bad with every partner; each partner was good with somebody else: {FAULTY_NODE} is named"
    closing = _text(WIDTH / 2, height - 16, text, INK, size=15)
    return _picture(height, [*_draw_leaves(height), *shapes, closing])


def _build_fabric() -> FabricMap:
    nodes = [FabricNode(f"n{at:02}", (f"leaf {at // NODES + 1}",), (at % NODES,)) for at in range(LEAVES * NODES)]
    uplinks = {f"leaf {leaf + 1}": [f"leaf {leaf + 1}[{port}]" for port in range(NODES)] for leaf in range(LEAVES)}
    return FabricMap({node.name: node for node in nodes}, uplinks)


def _run(name: str, pair: tuple[str, str]) -> PairResult:
    return PairResult(name, pair, "ok", gb_s=25 if FAULTY_NODE in pair else 40, wrong=0)


def _draw_leaves(height: float) -> Iterator[str]:
    for leaf in range(LEAVES):
        left, right = _middle(leaf * NODES) - 30, _middle(leaf * NODES + NODES - 1) + 30
        place = f'x="{left:.0f}" y="8" width="{right - left:.0f}" height="{height - 50:.0f}"'
        yield f'<rect {place} rx="8" fill="#f7fafc" stroke="#e2e8f0"/>'
        yield _text((left + right) / 2, 28, f"leaf {leaf + 1}", GREY)


def _draw_round(planned: PairRound, top: float) -> Iterator[str]:
    """Yield a row of nodes, and an arc for each pair that ran."""
    yield _text(12, top + 62, planned.name, INK, anchor="start", size=16)
    yield _text(12, top + 82, CAPTIONS[planned.name], GREY, anchor="start", size=12)
    for a, b in sorted(planned.pairs, key=lambda pair: FAULTY_NODE in pair):
        left, right = _middle(int(a[1:])), _middle(int(b[1:]))
        depth = 14 + (right - left) * 0.075
        colour, width = (BAD, 3) if FAULTY_NODE in (a, b) else (GOOD, 1.5)
        curve = f"M{left:.0f} {top + 46}Q{(left + right) / 2:.0f} {top + 46 + 1.6 * depth:.0f} {right:.0f} {top + 46}"
        yield f'<path d="{curve}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
    paired = {name for pair in planned.pairs for name in pair}
    for at in range(LEAVES * NODES):
        yield from _draw_node(f"n{at:02}", _middle(at), top + 34, f"n{at:02}" in paired)


def _draw_node(name: str, x: float, y: float, is_paired: bool) -> Iterator[str]:
    colour = BAD if name == FAULTY_NODE else GOOD if is_paired else LINE
    yield f'<circle cx="{x:.0f}" cy="{y:.0f}" r="15" fill="#fff" stroke="{colour}" stroke-width="2"/>'
    yield _text(x, y + 4, name, INK if is_paired else GREY, size=11)


def _middle(node: int) -> float:
    """Return the middle of a node's column; a gap lies between two leaves."""
    return 228 + node * 57 + node // NODES * 26


def _text(x: float, y: float, text: str, fill: str, anchor: str = "middle", size: int = 13) -> str:
    place = f'x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" fill="{fill}">{escape(text)}</text>'


def _picture(height: float, shapes: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img"'
    lines = [f'{head} font-family="system-ui, sans-serif" aria-label="The rounds of a search">']
    return "\n".join([*lines, f'<rect width="{WIDTH}" height="{height:g}" fill="#fff"/>', *shapes, "</svg>"]) + "\n"
