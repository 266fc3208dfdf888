"""Draws how a design wires a fabric, as SVG: its tiers, the numbers of its ports, and what a gap does. Pure.

A design with `leaves` is needed. Names, ports and cables are those that the rules of the design give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.fat_tree_geometry import FatTreeWiring
from assay.model.specs.fabric.switches import TierName

RAIL_COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#b83280", "#6b46c1", "#b7791f", "#2c7a7b", "#c53030")
INK, GREY, LINE, FREE = "#1a202c", "#718096", "#a0aec0", "#edf2f7"
WIDTH = 960
PORT, GAP = 23, 3  # px: a port's square, and the space between two
SHOWN_NODES = 2
SHOWN_LEAVES = 4
GAP_PLACES = 10


def draw_tiers(design: FabricDesign) -> str:
    """Return a picture of all switches, two nodes, and the cables between them, in the colours of the rails."""
    wiring = _require_wiring(design)
    leaves, spines = _names(design, "leaves"), _names(design, "spines")
    places = design.node_places
    nodes = [*places[:SHOWN_NODES], "…", places[-1]]
    leaf_x, spine_x, node_x = (_spread(len(names)) for names in (leaves, spines, nodes))
    bundles = [
        _line(leaf_x[bundle.lower], 190, spine_x[bundle.upper], 90, _colour(wiring, bundle.lower), 1.5)
        for bundle in wiring.leaf_spine_bundles()
    ]
    unit = range(min(wiring.rails, len(leaves)))
    drops = [
        _line(node_x[number] + (rail - wiring.rails / 2 + 0.5) * 10, 330, leaf_x[rail], 226, _colour(wiring, rail), 1.5)
        for number in (*range(SHOWN_NODES), len(nodes) - 1)
        for rail in unit
    ]
    return _picture(
        400,
        f"The tiers of {design.name}",
        [
            *bundles,
            *drops,
            *_boxes(spines, spine_x, 54, [INK] * len(spines)),
            *_boxes(leaves, leaf_x, 190, [_colour(wiring, number) for number in range(len(leaves))]),
            *_boxes(nodes, node_x, 330, [GREY] * len(nodes)),
            _text(WIDTH / 2, 30, f"{wiring.spines.per_pair} cables from each leaf to each spine", GREY),
            _text(WIDTH / 2, 388, "one leaf for each rail of a unit: it takes that rail's adapter of each node", GREY),
        ],
    )


def draw_ports(design: FabricDesign) -> str:
    """Return a picture of the ports of the first two leaves and the first spine, each with what is behind it."""
    wiring = _require_wiring(design)
    leaves, spines = _names(design, "leaves"), _names(design, "spines")
    rows = [(f"{leaves[0]}: `down` ports, one for each node", _leaf_down(design, wiring, 0))]
    for number, name in enumerate(leaves[:2]):
        rows.append((f"{name}: `up` ports, `per_pair` for each spine", _leaf_up(wiring, number, spines)))
    title = f"{spines[0]}: `per_pair` ports for each leaf, here of {SHOWN_LEAVES} leaves"
    rows.append((title, _spine_down(wiring, leaves)))
    shapes: list[str] = []
    for index, (title, ports) in enumerate(rows):
        shapes += _port_row(40 + index * 108, title, ports)
    return _picture(40 + len(rows) * 108, f"The ports of {design.name}", shapes)


def draw_gaps(design: FabricDesign) -> str:
    """Return a picture of one leaf's first ports: with all nodes, after a removal without a gap, and with one."""
    places = design.node_places
    lost = places[GAP_PLACES // 2]
    moved = [name for name in places if name != lost]
    rows = (
        (f"nodes: [{places[0]}..{places[-1]}]", places, ""),
        (f"{lost} removed from `nodes`: the cables of all later nodes move", moved, ""),
        (f"{lost} stays in `nodes`, and gaps: [{lost}]: only its port is free", places, lost),
    )
    shapes: list[str] = []
    for index, (title, names, gap) in enumerate(rows):
        top = 34 + index * 92
        shapes.append(_text(16, top, title, INK, anchor="start", size=14))
        for number, name in enumerate(names[:GAP_PLACES]):
            is_moved = name != places[number]
            fill = FREE if name == gap else RAIL_COLOURS[1] if is_moved else RAIL_COLOURS[0]
            shapes += _wide_port(16 + number * 93, top + 12, number + 1, "free" if name == gap else name, fill)
    return _picture(34 + len(rows) * 92 - 8, "What a gap does", shapes)


def _require_wiring(design: FabricDesign) -> FatTreeWiring:
    if design.fat_tree is None:
        raise ValueError(f"{design.name} has no rules: it lists every cable")
    return design.fat_tree


def _names(design: FabricDesign, wanted: TierName) -> list[str]:
    return [name for name, tier, _, _ in design.switches() if tier == wanted]


def _colour(wiring: FatTreeWiring, leaf: int) -> str:
    return RAIL_COLOURS[leaf % wiring.rails % len(RAIL_COLOURS)]


def _leaf_down(design: FabricDesign, wiring: FatTreeWiring, leaf: int) -> list[tuple[int, str, str]]:
    """Return number, colour and text of each down port of a leaf of the first unit."""
    names = design.node_places
    used = wiring.used_ports("leaves", leaf)
    return [
        (port, _colour(wiring, leaf) if port in used else FREE, names[place] if place < len(names) else "free")
        for place, port in enumerate(wiring.leaf_down_ports)
    ]


def _leaf_up(wiring: FatTreeWiring, leaf: int, spines: list[str]) -> list[tuple[int, str, str]]:
    return [
        (port, _colour(wiring, leaf), f"to {spines[bundle.upper]}")
        for bundle in wiring.leaf_spine_bundles()
        if bundle.lower == leaf
        for port in bundle.lower_ports
    ]


def _spine_down(wiring: FatTreeWiring, leaves: list[str]) -> list[tuple[int, str, str]]:
    return [
        (port, _colour(wiring, bundle.lower), f"to {leaves[bundle.lower]}")
        for bundle in wiring.leaf_spine_bundles()
        if bundle.upper == 0 and bundle.lower < SHOWN_LEAVES
        for port in bundle.upper_ports
    ]


def _port_row(top: int, title: str, ports: Sequence[tuple[int, str, str]]) -> Iterator[str]:
    """Yield a row of ports, with one bracket below each run of ports that lead to the same place."""
    yield _text(16, top, title, INK, anchor="start", size=14)
    for place, (port, fill, _) in enumerate(ports):
        x = 16 + place * (PORT + GAP)
        yield f'<rect x="{x}" y="{top + 12}" width="{PORT}" height="{PORT}" rx="3" fill="{fill}"/>'
        yield _text(x + PORT / 2, top + 28, str(port), "#fff" if fill != FREE else GREY, size=11)
    for first, last, text in _runs([text for _, _, text in ports]):
        left, right = 16 + first * (PORT + GAP), 16 + last * (PORT + GAP) + PORT
        y = top + 42
        yield f'<path d="M{left} {y}v5h{right - left}v-5" fill="none" stroke="{LINE}"/>'
        yield _text((left + right) / 2, y + 20, text, GREY, size=11)


def _runs(texts: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield first and last place of each run of ports. Runs of one port are one run with their range."""
    starts = [place for place, text in enumerate(texts) if place == 0 or texts[place - 1] != text]
    if len(starts) > len(texts) / 2:
        used = [text for text in texts if text != "free"]
        yield 0, len(used) - 1, f"{used[0]} … {used[-1]}, in the order of `nodes`"
        if len(used) < len(texts):
            yield len(used), len(texts) - 1, "free: places for more nodes"
        return
    for place, start in enumerate(starts):
        last = starts[place + 1] - 1 if place + 1 < len(starts) else len(texts) - 1
        yield start, last, texts[start]


def _wide_port(x: float, top: float, port: int, text: str, fill: str) -> Iterator[str]:
    ink = "#fff" if fill != FREE else GREY
    yield f'<rect x="{x}" y="{top}" width="87" height="40" rx="4" fill="{fill}"/>'
    yield _text(x + 43.5, top + 16, f"port {port}", ink, size=11)
    yield _text(x + 43.5, top + 32, text, ink, size=13)


def _spread(count: int) -> list[float]:
    """Return the middle of each of `count` columns."""
    return [(number + 0.5) * WIDTH / count for number in range(count)]


def _boxes(names: Sequence[str], middles: Sequence[float], top: float, colours: Sequence[str]) -> Iterator[str]:
    for name, middle, colour in zip(names, middles, colours, strict=True):
        if name == "…":
            yield _text(middle, top + 24, name, GREY, size=20)
            continue
        box = f'x="{middle - 54:.1f}" y="{top}" width="108" height="36" rx="6"'
        yield f'<rect {box} fill="#fff" stroke="{colour}" stroke-width="2"/>'
        yield _text(middle, top + 23, name, INK, size=13)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}" stroke-width="{width}" opacity="0.6"/>'


def _text(x: float, y: float, text: str, fill: str, anchor: str = "middle", size: int = 13) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" fill="{fill}">{escape(text)}</text>'


def _picture(height: float, title: str, shapes: Iterable[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img"'
    lines = [f'{head} font-family="system-ui, sans-serif" aria-label="{escape(title)}">']
    lines += [f'<rect width="{WIDTH}" height="{height:g}" fill="#fff"/>', *shapes, "</svg>"]
    return "\n".join(lines) + "\n"
