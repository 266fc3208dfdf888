"""Draws the curve of `assay replay --sweep` as SVG: what nobody can use, and what is used with an open fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 74, 250, 80, 62
LABEL_GAP = 32
STYLE = """
  svg { --ink: #1f2328; --soft: #59636e; --paper: #ffffff; --line: #d1d9e0;
        --closed: #0969da; --exposed: #bc4c00; --catastrophic: #cf222e; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #f0f6fc; --soft: #9198a1; --paper: #0d1117; --line: #3d444d;
          --closed: #4493f8; --exposed: #f0883e; --catastrophic: #ff7b72; }
  }
  .paper { fill: var(--paper); }
  text { font: 13px system-ui, sans-serif; fill: var(--ink); }
  .title { font-size: 16px; font-weight: 600; }
  .soft { fill: var(--soft); font-size: 12px; }
  .grid { stroke: var(--line); stroke-width: 1; }
  .now { stroke: var(--soft); stroke-width: 1.4; stroke-dasharray: 5 4; }
  polyline { fill: none; stroke-width: 2.4; stroke-linejoin: round; }
  .closed { stroke: var(--closed); } .exposed { stroke: var(--exposed); }
  .catastrophic { stroke: var(--catastrophic); stroke-dasharray: 2 4; stroke-linecap: round; }
  text.closed { fill: var(--closed); stroke: none; } text.exposed { fill: var(--exposed); stroke: none; }
  text.catastrophic { fill: var(--catastrophic); stroke: none; }
  circle { stroke: none; } circle.closed { fill: var(--closed); } circle.exposed { fill: var(--exposed); }
  circle.catastrophic { fill: var(--catastrophic); }
"""


@dataclass(frozen=True, slots=True)
class _Curve:
    """One line of the picture: its style, what it is in two short lines, and the costs that it adds up."""

    style: str
    title: tuple[str, str]
    costs: tuple[str, ...]

    def value(self, point: Mapping[str, Any]) -> float:
        """Return the node-hours at a point."""
        return float(sum(point["costs"][name] for name in self.costs))


CURVES = (
    _Curve(
        "closed", ("nobody can use it:", "out, or cordoned while idle"), ("out_node_hours", "cordoned_idle_node_hours")
    ),
    _Curve(
        "exposed",
        ("used with an open fault,", "catastrophic or degraded"),
        ("catastrophic_node_hours", "degraded_node_hours"),
    ),
    _Curve("catastrophic", ("of these,", "with a catastrophic fault"), ("catastrophic_node_hours",)),
)


@dataclass(frozen=True)
class _Field:
    """The field of the picture, and where numbers stand in it."""

    low: float
    high: float
    top: float

    def x(self, value: float) -> float:
        """Return where a value of the setting stands."""
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.5
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, hours: float) -> float:
        """Return where a number of node-hours stands."""
        return round(HEIGHT - BOTTOM - hours / self.top * (HEIGHT - TOP - BOTTOM), 1)


def draw_sweep_svg(document: Mapping[str, Any]) -> str:
    """Return the curve as an SVG document of its own, for light and for dark."""
    sweep = document["sweep"]
    points: list[Mapping[str, Any]] = sweep["points"]
    values = [point["value"] for point in points]
    most = max(curve.value(point) for curve in CURVES for point in points)
    step = _round_step(max(most, 1) / 5)
    field = _Field(values[0], values[-1], ceil(max(most, 1) / step) * step)
    title = f"{sweep['path']} of policy {document['policy']}: the cost in node-hours"
    events = f"{document['events']:,} events of a history, {len(points)} values. Lower is better on both lines."
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text class="title" x="16" y="26">{escape(title)}</text>',
        f'<text class="soft" x="16" y="45">{escape(events)}</text>',
        *_draw_axes(field, step, values),
        *_draw_current(field, sweep["current"]),
        *(line for curve in CURVES for line in _draw_curve(curve, field, points)),
        *_draw_labels(field, points[-1]),
        f'<text class="soft" x="{middle}" y="{HEIGHT - 14}" text-anchor="middle">{escape(sweep["path"])}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _round_step(step: float) -> float:
    """Return the next of 1, 2, 5, 10 … that is not smaller."""
    power = 10 ** floor(log10(step))
    return float(next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step))


def _draw_axes(field: _Field, step: float, values: Sequence[float]) -> Iterator[str]:
    hours = 0.0
    while hours <= field.top:
        y = field.y(hours)
        yield f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>'
        yield f'<text class="soft" x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{hours:,.0f}</text>'
        hours += step
    for value in _choose_ticks(values):
        place = f'x="{field.x(value)}" y="{HEIGHT - BOTTOM + 20}"'
        yield f'<text class="soft" {place} text-anchor="middle">{value:g}</text>'


def _choose_ticks(values: Sequence[float], most: int = 8) -> list[float]:
    """Return the first, the last and some values between, evenly."""
    if len(values) <= most:
        return list(values)
    return [values[round(number * (len(values) - 1) / (most - 1))] for number in range(most)]


def _draw_current(field: _Field, current: float) -> Iterator[str]:
    if field.low <= current <= field.high:
        x = field.x(current)
        yield f'<line class="now" x1="{x}" y1="{TOP - 4}" x2="{x}" y2="{HEIGHT - BOTTOM}"/>'
        yield f'<text class="soft" x="{x}" y="{TOP - 8}" text-anchor="middle">now: {current:g}</text>'


def _draw_curve(curve: _Curve, field: _Field, points: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    places = [(field.x(point["value"]), field.y(curve.value(point))) for point in points]
    yield f'<polyline class="{curve.style}" points="{" ".join(f"{x},{y}" for x, y in places)}"/>'
    if len(places) <= 60:
        yield from (f'<circle class="{curve.style}" cx="{x}" cy="{y}" r="2.6"/>' for x, y in places)


def _draw_labels(field: _Field, last: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name of each curve at its end, moved apart where curves end close to each other."""
    ends = sorted((field.y(curve.value(last)), number, curve) for number, curve in enumerate(CURVES))
    heights = [y for y, *_ in ends]
    for upper, lower in pairwise(range(len(heights))):
        heights[lower] = max(heights[lower], heights[upper] + LABEL_GAP)
    over = max(0.0, heights[-1] - (HEIGHT - BOTTOM))
    for index in reversed(range(len(heights))):
        limit = heights[index + 1] - LABEL_GAP if index + 1 < len(heights) else heights[index] - over
        heights[index] = min(heights[index], limit)
    for height, (_, _, curve) in zip(heights, ends, strict=True):
        for number, text in enumerate(curve.title):
            y = height - 2 + 15 * number
            yield f'<text class="{curve.style}" x="{WIDTH - RIGHT + 12}" y="{y:g}">{escape(text)}</text>'
