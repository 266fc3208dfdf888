"""Draws a part of a fabric as SVG: its tiers, the rails in their colours, and in red what is not as designed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from assay.fabric.fabric_picture import Bundle, FabricPicture, Vertex

BOX_WIDTH = 112  # px, as the next four
BOX_HEIGHT = 40
GAP = 14
TIER = 150
MARGIN = 24
MAX_WORDS = 6
"""Beside more broken lines, words would lie upon each other; the lines still have them as titles."""
NAME_LETTERS, PLACE_LETTERS = 17, 15  # that fit into a box
LINE = 18  # px
LETTER_WIDTH = 7  # px at most
MAX_REMARKS = 4
"""So many remarks stand below a picture."""
COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#b83280", "#6b46c1", "#b7791f", "#2c7a7b")
"""Of the rails. None is red: red is what is not as designed."""
STYLE = """
.fabric-drawing { background: #ffffff; font: 12px system-ui, sans-serif; }
.fabric-drawing text { fill: #5a6779; font-size: 12px; }
.fabric-drawing .name { fill: #1a202c; font-weight: 600; }
.fabric-drawing rect { fill: #ffffff; stroke: #1a202c; }
.fabric-drawing path { fill: none; stroke: #a0aec0; stroke-width: 1.4; opacity: 0.5; }
.fabric-drawing .bad rect, .fabric-drawing .bad path { stroke: #c53030; stroke-width: 3; opacity: 1; }
.fabric-drawing .bad text { fill: #c53030; }
.fabric-drawing .remark { fill: #1a202c; font-weight: 600; }
.fabric-drawing .gone path { stroke-dasharray: 7 5; }
""" + "\n".join(f".fabric-drawing .rail-{n} path {{ stroke: {colour}; }}" for n, colour in enumerate(COLOURS))
"""The colours of a picture that stands alone; a page has its own."""


def draw_fabric(picture: FabricPicture, style: str = STYLE) -> str:
    """Return the picture as a SVG document of its own. A page that has the styles of `.fabric-drawing` gives none."""
    rows = picture.shown
    width = max((len(row) for row in rows), default=1) * (BOX_WIDTH + GAP) + 2 * MARGIN + 70
    tiers_height = len(rows) * TIER - 50
    letters = (width - 2 * MARGIN) // LETTER_WIDTH
    remarks = [_cut(remark, letters) for remark in picture.remarks[:MAX_REMARKS]]
    if len(picture.remarks) > MAX_REMARKS:
        remarks.append(f"and {len(picture.remarks) - MAX_REMARKS} more remarks")
    places: dict[Vertex, tuple[float, float]] = {}
    for tier, row in enumerate(rows):
        step = (width - 2 * MARGIN - 70) / max(len(row), 1)
        y = MARGIN + (len(rows) - 1 - tier) * TIER  # the nodes are at the bottom
        for number, vertex in enumerate(row):
            places[vertex] = (MARGIN + number * step + (step - BOX_WIDTH) / 2, y)
    lines = [(picture.bundles[key], *key) for key in picture.bundles if key[0] in places and key[1] in places]
    lines.sort(key=lambda line: bool(line[0].wrong or line[0].instead))  # the broken ones on top
    has_words = sum(bool(line[0].wrong or line[0].instead) for line in lines) <= MAX_WORDS
    title = f"{picture.topology.name}: {picture.around or 'what is not as designed'}"
    shapes = [
        *(_draw_bundle(picture, *line, places, has_words) for line in lines),
        *(_draw_box(picture, vertex, *place) for vertex, place in places.items()),
        *_draw_rests(picture, rows, width),
        *_draw_legend(tiers_height, remarks),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fabric-drawing" role="img" aria-label="{escape(title)}"'
        f' viewBox="0 0 {width} {tiers_height + LINE * len(remarks)}">'
    )
    return "\n".join([head, f"<style>{style}</style>" if style else "", *shapes, "</svg>\n"])


def _draw_bundle(
    picture: FabricPicture,
    bundle: Bundle,
    a: Vertex,
    b: Vertex,
    places: Mapping[Vertex, tuple[float, float]],
    has_words: bool,
) -> str:
    (ax, ay), (bx, by) = sorted((places[a], places[b]), key=lambda place: place[1])
    x1, y1, x2, y2 = ax + BOX_WIDTH / 2, ay + BOX_HEIGHT, bx + BOX_WIDTH / 2, by
    if ay == by:  # side by side: a bow below both
        path = f"M{x1:.0f} {y1} C{x1:.0f} {y1 + 50} {x2:.0f} {y1 + 50} {x2:.0f} {y1}"
    else:
        path = f"M{x1:.0f} {y1} L{x2:.0f} {y2}"
    facts = [f"{bundle.wrong} of {bundle.designed} wrong"] if bundle.wrong else []
    facts += [f"{bundle.instead - bundle.wrong} too many"] if bundle.instead > bundle.wrong else []
    words = ", ".join(facts)
    rail = picture.rail(a, b)
    colour = "bad" if words else "" if rail is None else f"rail-{rail % len(COLOURS)}"
    gone = " gone" if bundle.wrong == bundle.designed and not bundle.instead else ""
    names = f"{picture.name(a)} – {picture.name(b)}: {words or f'{bundle.designed} as designed'}"
    place = f'x="{(x1 + x2) / 2:.0f}" y="{(y1 + max(y2, y1 + 40)) / 2:.0f}"'
    text = f'<text {place} paint-order="stroke" stroke="#ffffff" stroke-width="4">{words}</text>'
    shown = text if words and has_words and bundle.designed > 1 else ""  # of single cables, the line says it all
    return f'<g class="{colour}{gone}"><title>{escape(names)}</title><path d="{path}"/>{shown}</g>'


def _draw_box(picture: FabricPicture, vertex: Vertex, x: float, y: float) -> str:
    device = picture.find_device(vertex)
    where = f"{device.rack} U{device.u}" if device and device.rack else ""
    name, planes = picture.name(vertex), picture.list_missing_planes(vertex)
    red = picture.is_broken(vertex) or bool(planes)
    lost = f"plane {', '.join(map(str, planes))} missing" if planes and not picture.is_broken(vertex) else ""
    title = escape(f"{name} {where} {lost}".strip())
    return (
        f'<g class="{"bad" if red else ""}"><title>{title}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
        f'<text x="{x + 8:.0f}" y="{y + 17:.0f}" class="name">{escape(_cut(name, NAME_LETTERS))}</text>'
        f'<text x="{x + 8:.0f}" y="{y + 32:.0f}">{escape(_cut(lost or where, PLACE_LETTERS))}</text></g>'
    )


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def _draw_rests(picture: FabricPicture, rows: Sequence[Sequence[Vertex]], width: int) -> Iterator[str]:
    for tier in range(len(rows)):
        if count := picture.count_left_out(tier):
            y = MARGIN + (len(rows) - 1 - tier) * TIER + 24
            yield f'<text x="{width - MARGIN - 62}" y="{y}">+ {count} more</text>'


def _draw_legend(height: int, remarks: Sequence[str]) -> Iterator[str]:
    words = "red: not as designed; dashed: no cable between the two is in place; other colours: rails"
    yield f'<text x="{MARGIN}" y="{height - 14}">{words}</text>'
    for number, remark in enumerate(remarks, start=1):
        yield f'<text x="{MARGIN}" y="{height - 14 + LINE * number}" class="remark">{escape(remark)}</text>'
