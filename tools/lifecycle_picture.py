"""The default policy as a picture: `python -m tools.lifecycle_picture > docs/lifecycle.svg`.

One row per step, direct lines between neighbours, lanes at the sides for other edges.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import networkx as nx

from assay.declare.loader import load_fleet
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.policy_sections import FaultRule, LifecycleState

STYLE = """
  svg { --ink: #1f2328; --soft: #59636e; --paper: #ffffff; --box: #f6f8fa; --edge: #818b98;
        --service: #1a7f37; --service-ink: #ffffff; --out: #fff8c5; --out-edge: #9a6700; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #f0f6fc; --soft: #b1bac4; --paper: #0d1117; --box: #21262d; --edge: #8b949e;
          --service: #238636; --service-ink: #ffffff; --out: #3a2d0b; --out-edge: #d29922; }
  }
  .paper { fill: var(--paper); }
  text { font: 13px system-ui, sans-serif; fill: var(--ink); text-anchor: middle; }
  .says { font-size: 12px; fill: var(--soft); paint-order: stroke; stroke: var(--paper); stroke-width: 5px; }
  .way { fill: none; stroke: var(--edge); stroke-width: 1.4; marker-end: url(#arrow); }
  #arrow path { fill: var(--edge); }
  .box { fill: var(--box); stroke: var(--edge); stroke-width: 1.4; }
  .service { fill: var(--service); stroke: var(--service); }
  .service + text { fill: var(--service-ink); font-weight: 600; }
  .out { fill: var(--out); stroke: var(--out-edge); }
  .final { stroke-dasharray: 4; }
"""
EDGE_LABELS = {"fail_to": "fails", "effect_failed_to": "an action fails", "certified_to": "certified"}
MANUAL_LABEL = "by hand"


@dataclass(frozen=True, slots=True)
class PolicyEdge:
    """One edge of a policy, and its causes."""

    origin: str
    target: str
    labels: tuple[str, ...]


def list_policy_edges(policy: LifecyclePolicy) -> list[PolicyEdge]:
    """Return every edge of the policy, in the order of its states."""
    labels: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, state in policy.states.items():
        for target, label in [*_edges_of_state(state), *_edges_by_fault(policy, name)]:
            if label not in labels[name, target]:
                labels[name, target].append(label)
    edges = [(origin, target) for origin in policy.states for target in policy.edges.get(origin, ())]
    return [PolicyEdge(origin, target, tuple(labels[origin, target]) or (MANUAL_LABEL,)) for origin, target in edges]


def find_states_out(policy: LifecyclePolicy) -> frozenset[str]:
    """Return the states to which automation takes a node that serves, without a person's certification or order."""
    by_people = {MANUAL_LABEL, EDGE_LABELS["certified_to"]}
    ways = [(edge.origin, edge.target) for edge in list_policy_edges(policy) if set(edge.labels) - by_people]
    serving = policy.states_in_service
    out: set[str] = set()
    while reached := {target for origin, target in ways if origin in serving | out} - serving - out:
        out |= reached
    return frozenset(out)


def _edges_of_state(state: LifecycleState) -> Iterator[tuple[str, str]]:
    """Yield the target of each exit of a state, with a label."""
    for exit_name, target in state.list_exits():
        kind, _, number = exit_name.partition(".")
        if kind == "deadline" and state.deadline:
            yield target, f"after {state.deadline.hours:g} h"
        elif kind == "escalate":
            step = state.escalate[int(number)]
            when = "again" if step.recurred else "of a lemon" if step.lemon else "open"
            yield target, f"{step.blame} fault {when}"
        elif kind == "pass_to":
            event = "passes" if state.requires else "idle" if state.until_idle else "done"
            yield target, f"{event}, after {state.soak_hours:g} h" if state.soak_hours else event
        else:
            yield target, EDGE_LABELS[kind]


def _edges_by_fault(policy: LifecyclePolicy, state: str) -> Iterator[tuple[str, str]]:
    """Yield the targets of the fault rules from a state, each with the remedies that lead there."""
    by_target: dict[str, list[str]] = defaultdict(list)
    for rule in policy.faults.values():
        if rule.timing != "record" and (not rule.states or state in rule.states):
            for target, remedy in _list_targets(policy, rule):
                if policy.has_edge(state, target) and remedy not in by_target[target]:
                    by_target[target].append(remedy)
    for target, remedies in by_target.items():
        named = ", ".join(remedy for remedy in remedies if remedy)
        yield target, f"fault: {named}" if named else "fault"


def _list_targets(policy: LifecyclePolicy, rule: FaultRule) -> Iterator[tuple[str, str]]:
    """Yield the states that a rule can lead to, with the remedy of the ladder ("" where the rule names the state)."""
    if rule.to:
        yield rule.to, ""
        return
    for remedy, rung in policy.ladder.rungs.items():
        if rule.remedy in ("class", remedy):
            yield rung.to, remedy


BOX = 210
HIGH = 40
ROW = 118
GAP = 70
LANE = 30
LINE = 15
MARGIN = 24
CORNER = 10
ARROW = """<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0 0 8 4 0 8z"/></marker></defs>"""


@dataclass(frozen=True, slots=True)
class _BoxPosition:
    """The position of a state: its row, and the middle of its box in SVG units."""

    row: int
    x: float
    y: float


def draw_policy_svg(policy: LifecyclePolicy, style: str) -> str:
    """Return the graph as a complete SVG document with this style sheet."""
    return _draw(policy, f"<style>{style}</style>")


def _draw(policy: LifecyclePolicy, style: str) -> str:
    ways = list_policy_edges(policy)
    rows = _rows(policy, ways)
    width = max(len(row) for row in rows) * (BOX + GAP) - GAP
    left, right = _lanes(rows, ways)
    start = MARGIN + LANE * len(left)
    out, spots = find_states_out(policy), dict(_place_boxes(rows, start + width / 2))
    whole = start + width + LANE * len(right) + MARGIN
    tall = len(rows) * ROW - (ROW - HIGH) + 2 * MARGIN + 2 * LINE
    size = f'width="{whole:g}" height="{tall:g}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {whole:g} {tall:g}">',
        f"<title>The states of policy {escape(policy.name)}</title>",
        style,
        ARROW,
        f'<rect class="paper" width="{whole:g}" height="{tall:g}"/>',
        *_draw_direct_edges([way for way in ways if _adjacent(rows, way)], spots),
        *_draw_side_lanes(left, spots, start, -1),
        *_draw_side_lanes(right, spots, start + width, 1),
        *(line for name, spot in spots.items() for line in _box(name, policy.states[name], spot, name in out)),
    ]
    if policy.anywhere:
        note = escape(f"{MANUAL_LABEL} from any state: {', '.join(policy.anywhere)}")
        parts.append(f'<text class="says" x="{start + width / 2:g}" y="{tall - MARGIN / 2:g}">{note}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _rows(policy: LifecyclePolicy, ways: Sequence[PolicyEdge]) -> list[list[str]]:
    """Return the states in rows: each below all states that lead to it, in the policy's order."""
    order = {name: number for number, name in enumerate(policy.states)}
    graph: nx.DiGraph[str] = nx.DiGraph(
        (way.origin, way.target) for way in ways if order[way.origin] < order[way.target]
    )
    rows = [sorted(row, key=order.__getitem__) for row in nx.topological_generations(graph)]
    alone = [name for name in order if name not in graph]
    return [*rows, alone] if alone else rows


def _row_of(rows: Sequence[Sequence[str]], name: str) -> int:
    return next(number for number, row in enumerate(rows) if name in row)


def _adjacent(rows: Sequence[Sequence[str]], way: PolicyEdge) -> bool:
    return _row_of(rows, way.target) - _row_of(rows, way.origin) == 1


def _lanes(
    rows: Sequence[Sequence[str]], ways: Iterable[PolicyEdge]
) -> tuple[list[list[PolicyEdge]], list[list[PolicyEdge]]]:
    """Return the edges that go round, in lanes from the inside out: on the left, and on the right."""
    sides: tuple[list[PolicyEdge], list[PolicyEdge]] = ([], [])
    for way in ways:
        if not _adjacent(rows, way):
            sides[_side(rows, way)].append(way)
    left, right = (_packed(rows, side) for side in sides)
    return left, right


def _side(rows: Sequence[Sequence[str]], way: PolicyEdge) -> int:
    """Return the side on which an edge leaves its row: 0 for left. Edges down past other rows use the right."""
    row = rows[_row_of(rows, way.origin)]
    if len(row) > 1:
        return int(row.index(way.origin) * 2 >= len(row))
    return int(_row_of(rows, way.target) > _row_of(rows, way.origin))


def _packed(rows: Sequence[Sequence[str]], ways: Iterable[PolicyEdge]) -> list[list[PolicyEdge]]:
    """Return edges in as few lanes as keep them apart, the shortest innermost."""

    def reach(way: PolicyEdge) -> tuple[int, int]:
        low, high = sorted((_row_of(rows, way.origin), _row_of(rows, way.target)))
        return low, high

    lanes: list[list[PolicyEdge]] = []
    for way in sorted(ways, key=lambda way: reach(way)[1] - reach(way)[0]):
        low, high = reach(way)
        free = (lane for lane in lanes if all(high < reach(other)[0] or reach(other)[1] < low for other in lane))
        lane = next(free, None)
        if lane is None:
            lanes.append(lane := [])
        lane.append(way)
    return lanes


def _place_boxes(rows: Sequence[Sequence[str]], middle: float) -> Iterator[tuple[str, _BoxPosition]]:
    for number, row in enumerate(rows):
        first = middle - (len(row) - 1) * (BOX + GAP) / 2
        for place, name in enumerate(row):
            yield name, _BoxPosition(number, first + place * (BOX + GAP), MARGIN + HIGH / 2 + number * ROW)


def _draw_direct_edges(ways: Iterable[PolicyEdge], spots: dict[str, _BoxPosition]) -> Iterator[str]:
    """Yield the edges between neighbouring rows, each with its label in the middle."""
    for way in ways:
        begin, end = spots[way.origin], spots[way.target]
        top, bottom = begin.y + HIGH / 2, end.y - HIGH / 2
        x = begin.x + max(-BOX / 3, min(BOX / 3, end.x - begin.x))
        land = end.x + max(-BOX / 3, min(BOX / 3, begin.x - end.x))
        bend = (top + bottom) / 2
        yield f'<path class="way" d="M{x:g} {top:g}C{x:g} {bend:g} {land:g} {bend:g} {land:g} {bottom:g}"/>'
        first = bend - (len(way.labels) - 1) * LINE / 2 + 4
        for number, label in enumerate(way.labels):
            yield f'<text class="says" x="{(x + land) / 2:g}" y="{first + number * LINE:g}">{escape(label)}</text>'


def _draw_side_lanes(
    lanes: Sequence[Sequence[PolicyEdge]], spots: dict[str, _BoxPosition], edge: float, side: int
) -> Iterator[str]:
    """Yield the edges in the lanes of one side, each with its label beside it."""
    for number, lane in enumerate(lanes):
        x = edge + side * LANE * (number + 0.75)
        for way in lane:
            begin, end = spots[way.origin], spots[way.target]
            down = 1 if end.row > begin.row else -1
            leave, land = begin.y - 12 * down, end.y - 4 * down
            yield (
                f'<path class="way" d="M{begin.x + side * BOX / 2:g} {leave:g}H{x - side * CORNER:g}'
                f"Q{x:g} {leave:g} {x:g} {leave + down * CORNER:g}V{land - down * CORNER:g}"
                f'Q{x:g} {land:g} {x - side * CORNER:g} {land:g}H{end.x + side * BOX / 2:g}"/>'
            )
            middle = (leave + land) / 2
            label = escape(", ".join(way.labels))
            yield f'<text class="says" transform="translate({x + 12:g} {middle:g}) rotate(-90)">{label}</text>'


def _box(name: str, state: LifecycleState, spot: _BoxPosition, is_out: bool) -> Iterator[str]:
    kind = "service" if state.in_service else "out" if is_out else "final" if state.final else ""
    x, y = spot.x - BOX / 2, spot.y - HIGH / 2
    yield f"<g><title>{escape(state.summary)}</title>"
    yield f'<rect class="box {kind}" x="{x:g}" y="{y:g}" width="{BOX}" height="{HIGH}" rx="6"/>'
    yield f'<text x="{spot.x:g}" y="{spot.y + 4.5:g}">{escape(name)}</text></g>'


if __name__ == "__main__":
    sys.stdout.write(draw_policy_svg(load_fleet(Path()).policy, STYLE))
