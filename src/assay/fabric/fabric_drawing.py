"""Draws a part of a fabric as SVG: its tiers, the rails in their colours, and in red what is not as designed. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import NamedTuple

from assay.fabric.comparison.discrepancy import CablePair, CablingDiscrepancy
from assay.fabric.design_drawings import RAIL_COLOURS
from assay.fabric.topology.compiled_topology import CompiledTopology
from assay.fabric.topology.designed_device import DesignedDevice
from assay.fabric.topology.element_names import find_element
from assay.fabric.topology.tiers_and_shared_transceivers import find_device_tiers
from assay.model.fabric.ports_and_cables import Cable, CableEnd, PortId

Vertex = str
"""A node, by its name, or another device, by its GUID."""
BOX_WIDTH, BOX_HEIGHT, GAP, TIER, MARGIN = 112, 40, 14, 150, 24  # px
MAX_PER_TIER = 12
"""More boxes side by side cannot be read; of the others the picture says how many there are."""
MAX_WORDS = 6
"""Beside more broken lines, words would lie upon each other; the lines still have them as titles."""
LETTERS = 17
LINE, LETTER_WIDTH, MAX_REMARKS = 18, 7, 4  # px a line, px a letter at most, remarks below a picture
COLOURS = RAIL_COLOURS[:-1]
"""Without the last one, which is red: red is what is not as designed."""
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


class Bundle(NamedTuple):
    """All cables between two vertices: how many are designed, and of these not in place; how many are seen instead."""

    designed: int
    wrong: int
    instead: int


@dataclass(frozen=True)
class FabricPicture:
    """What is drawn: a design, what differs from it, and around which element; "" is around all that differs.

    `remarks` stand below the picture: what could not be read, so that it is not seen here.
    """

    topology: CompiledTopology
    discrepancies: Sequence[CablingDiscrepancy] = ()
    around: str = ""
    remarks: Sequence[str] = ()

    @cached_property
    def tiers(self) -> dict[Vertex, int]:
        """The tier of each vertex, 0 for nodes, and for what the design lacks."""
        by_guid = find_device_tiers(self.topology)
        return {self._vertex_of(guid): by_guid.get(guid, 1) for guid in self.topology.devices}

    @cached_property
    def bundles(self) -> dict[tuple[Vertex, Vertex], Bundle]:
        """The cables between each two vertices that any cable joins."""
        designed = Counter(map(self._key, self.topology.cables))
        wrong, instead = Counter[tuple[Vertex, Vertex]](), Counter[tuple[Vertex, Vertex]]()
        for pair in (pair for one in self.discrepancies for pair in one.cables):
            if pair.expected:
                wrong[self._key(pair.expected)] += 1
            if pair.observed:
                instead[self._key(pair.observed)] += 1
        keys = designed | wrong | instead
        return {key: Bundle(designed[key], wrong[key], instead[key]) for key in keys}

    @cached_property
    def neighbours(self) -> Mapping[Vertex, set[Vertex]]:
        """The vertices that a cable joins to each vertex, by design or as seen."""
        found: dict[Vertex, set[Vertex]] = defaultdict(set)
        for a, b in self.bundles:
            found[a].add(b)
            found[b].add(a)
        return found

    @cached_property
    def shown(self) -> list[list[Vertex]]:
        """The vertices in the picture, tier by tier from the nodes up. The most concerned come first where many are."""
        centre = self._find_centre()
        near = {far for vertex in centre for far in self.neighbours[vertex]} | centre
        above = {far for vertex in near for far in self.neighbours[vertex] if self._tier(far) > self._tier(vertex)}
        every = near | above if centre else set(self.tiers)
        rows: list[list[Vertex]] = [[] for _ in range(max(map(self._tier, every), default=0) + 1)]
        for vertex in sorted(every, key=lambda one: (one not in centre, one not in self._broken, self._order(one))):
            rows[self._tier(vertex)].append(vertex)
        return [sorted(row[:MAX_PER_TIER], key=self._order) for row in rows]

    def count_left_out(self, tier: int) -> int:
        """Return how many vertices of a tier are not shown."""
        return sum(its == tier for its in self.tiers.values()) - sum(one in self.tiers for one in self.shown[tier])

    def name(self, vertex: Vertex) -> str:
        """Return the name of a vertex."""
        device = self.topology.devices.get(vertex)
        return device.name if device else self._names_of_others.get(vertex, vertex)

    def find_device(self, vertex: Vertex) -> DesignedDevice | None:
        """Return the device of a vertex, a node's first adapter, or None for what the design lacks."""
        own = self._adapters.get(vertex)
        return self.topology.devices.get(own[0] if own else vertex)

    def is_broken(self, vertex: Vertex) -> bool:
        """Return whether the whole vertex is missing, or is not in the design."""
        return vertex in self._whole or vertex not in self.tiers

    def rail(self, a: Vertex, b: Vertex) -> int | None:
        """Return the rail of the cables between a node and a switch, None for other cables."""
        nodes = [vertex for vertex in (a, b) if vertex in self._adapters]
        if not nodes:
            return None
        far = b if nodes[0] == a else a
        rails = self._adapters[nodes[0]]
        return next((rail for rail, guid in enumerate(rails) if far in self._far_of(guid)), None)

    def _far_of(self, guid: str) -> set[str]:
        return {f"0x{row[1]}" for row in self.topology.rows[guid[2:]]}

    def _find_centre(self) -> set[Vertex]:
        if not self.around:
            return set(self._broken)
        element = find_element(self.topology, self.around)
        if element.node:
            return {element.node}
        if element.box:
            return {chip.guid for chip in element.box}
        assert element.device is not None, "an element that is no node has a device"
        centre = {self._vertex_of(element.device.guid)}
        if element.port and (far := self.topology.peer_ports.get(element.port)):
            centre.add(self._vertex_of(far.guid))
        return centre

    @cached_property
    def _broken(self) -> set[Vertex]:
        return {vertex for key, bundle in self.bundles.items() if bundle.wrong or bundle.instead for vertex in key}

    @cached_property
    def _whole(self) -> set[str]:
        """The vertices that are missing as a whole."""
        names = {one.device for one in self.discrepancies if one.kind == "device-missing"}
        return {vertex for vertex in self.tiers if self.name(vertex) in names}

    @cached_property
    def _adapters(self) -> Mapping[Vertex, list[str]]:
        found: dict[Vertex, list[str]] = defaultdict(list)
        for guid, device in self.topology.devices.items():
            if device.node:
                found[device.node].append(guid)
        return found

    @cached_property
    def _names_of_others(self) -> dict[Vertex, str]:
        cables = (pair.observed for one in self.discrepancies for pair in one.cables if pair.observed)
        return {self._vertex(end): end.node or end.device for cable in cables for end in cable.ends}

    @cached_property
    def _positions(self) -> dict[Vertex, int]:
        return {vertex: number for number, vertex in enumerate(self.tiers)}

    def _order(self, vertex: Vertex) -> tuple[int, str]:
        return self._positions.get(vertex, len(self.tiers)), vertex

    def _tier(self, vertex: Vertex) -> int:
        return self.tiers.get(vertex, 0)

    def _vertex_of(self, guid: str) -> Vertex:
        device = self.topology.devices.get(guid)
        return device.node or guid if device else guid

    def _vertex(self, end: CableEnd) -> Vertex:
        return self._vertex_of(end.guid)

    def _key(self, cable: Cable) -> tuple[Vertex, Vertex]:
        first, second = sorted((self._vertex(cable.a), self._vertex(cable.b)))
        return first, second


def draw_fabric(picture: FabricPicture, style: str = STYLE) -> str:
    """Return the picture as a SVG document of its own. A page that has the styles of `.fabric-drawing` gives none."""
    rows = picture.shown
    width = max((len(row) for row in rows), default=1) * (BOX_WIDTH + GAP) + 2 * MARGIN + 70
    tiers_height = len(rows) * TIER - 50
    remarks = _list_remarks(picture.remarks, width)
    places = {vertex: place for tier, row in enumerate(rows) for vertex, place in _place(row, tier, len(rows), width)}
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


def _place(row: Sequence[Vertex], tier: int, tiers: int, width: int) -> Iterator[tuple[Vertex, tuple[float, float]]]:
    """Yield the left upper corner of each box of a tier. The nodes are at the bottom."""
    step = (width - 2 * MARGIN - 70) / max(len(row), 1)
    for number, vertex in enumerate(row):
        yield vertex, (MARGIN + number * step + (step - BOX_WIDTH) / 2, MARGIN + (tiers - 1 - tier) * TIER)


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
    words = _describe(bundle)
    rail = picture.rail(a, b)
    colour = "bad" if words else "" if rail is None else f"rail-{rail % len(COLOURS)}"
    gone = " gone" if bundle.wrong == bundle.designed and not bundle.instead else ""
    names = f"{picture.name(a)} – {picture.name(b)}: {words or f'{bundle.designed} as designed'}"
    place = f'x="{(x1 + x2) / 2:.0f}" y="{(y1 + max(y2, y1 + 40)) / 2:.0f}"'
    text = f'<text {place} paint-order="stroke" stroke="#ffffff" stroke-width="4">{words}</text>'
    shown = text if words and has_words and bundle.designed > 1 else ""  # of single cables, the line says it all
    return f'<g class="{colour}{gone}"><title>{escape(names)}</title><path d="{path}"/>{shown}</g>'


def _describe(bundle: Bundle) -> str:
    """Return what is wrong with the cables between two devices, in a few words."""
    facts = [f"{bundle.wrong} of {bundle.designed} wrong"] if bundle.wrong else []
    facts += [f"{bundle.instead - bundle.wrong} too many"] if bundle.instead > bundle.wrong else []
    return ", ".join(facts)


def _draw_box(picture: FabricPicture, vertex: Vertex, x: float, y: float) -> str:
    device = picture.find_device(vertex)
    where = f"{device.rack} U{device.u}" if device and device.rack else ""
    name, red = picture.name(vertex), picture.is_broken(vertex)
    short = name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
    title = escape(f"{name} {where}".strip())
    return (
        f'<g class="{"bad" if red else ""}"><title>{title}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
        f'<text x="{x + 8:.0f}" y="{y + 17:.0f}" class="name">{escape(short)}</text>'
        f'<text x="{x + 8:.0f}" y="{y + 32:.0f}">{escape(where)}</text></g>'
    )


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


def _list_remarks(remarks: Sequence[str], width: int) -> list[str]:
    """Return the lines below a picture: the first remarks, cut to its width, and how many there are more."""
    letters = (width - 2 * MARGIN) // LETTER_WIDTH
    shown = [one if len(one) <= letters else f"{one[: letters - 1]}…" for one in remarks[:MAX_REMARKS]]
    return shown + [f"and {len(remarks) - MAX_REMARKS} more remarks"] * (len(remarks) > MAX_REMARKS)


def draw_ports(topology: CompiledTopology, ports: Iterable[PortId]) -> str:
    """Return a picture of the part of a fabric around ports that need a look, with their cables in red."""
    cables = topology.list_cables_at(port for port in ports if port in topology.cable_numbers)
    pairs = tuple(CablePair(cable, cable) for cable in cables)
    marked = CablingDiscrepancy("degraded", pairs, "needs a look")
    return draw_fabric(FabricPicture(topology, [marked])) if pairs else ""
