"""The page of survival: for each kind of part and each trait, a table and the curves of its groups with their bands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from assay.pages.drawing import draw_polyline
from assay.pages.rendering import render_page
from assay.trends.parts.part_survival import GroupSurvival, KindSurvival, TraitComparison
from assay.trends.parts.survival_curves import SurvivalPoint

WIDTH, HEIGHT = 700.0, 240.0
COLOURS = 6
SHARE_STEPS = {0.02: 0.1, 0.1: 0.5, 0.2: 1.0}
"""How far apart the marks of the upward axis are, where the curves cover so much of it."""
YEAR_DAYS = 365.25
DAYS_AXIS = 2 * YEAR_DAYS
"""A longer axis counts years."""


@dataclass(frozen=True, slots=True)
class DrawnCurve:
    """A group with the points of its curve and of its band. Colours repeat, then dashed."""

    group: GroupSurvival
    line: str
    band: str
    colour: int
    is_dashed: bool


@dataclass(frozen=True, slots=True)
class DrawnComparison:
    """A trait with its curves, and the marks of both axes: (place, text)."""

    comparison: TraitComparison
    curves: tuple[DrawnCurve, ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    unit: str


def render_survival(found: Sequence[KindSurvival], as_of: datetime, *, in_lab: bool = False) -> str:
    """Return the HTML of the page."""
    drawn = [(kind, [draw_comparison(one) for one in kind.comparisons]) for kind in found]
    size = {"width": WIDTH, "height": HEIGHT}
    return render_page(__package__, "survival.html.j2", in_lab=in_lab, kinds=drawn, as_of=as_of.isoformat(), **size)


def draw_comparison(comparison: TraitComparison) -> DrawnComparison:
    """Return the curves of a trait as SVG geometry, all on the same axes."""
    last = max(group.curve.last for group in comparison.groups) or 1.0
    least = min(point.low for group in comparison.groups for point in _list_shown(group, last))
    step = next(size for size, covered in SHARE_STEPS.items() if 1 - least <= covered)
    bottom = 1 - step * ceil(max(1, (1 - least) / step) - 1e-9)
    curves = (_draw(group, number, last, bottom) for number, group in enumerate(comparison.groups))
    unit, length = ("years", YEAR_DAYS) if last > DAYS_AXIS else ("days", 1.0)
    shares = [1 - step * number for number in range(round((1 - bottom) / step) + 1)]
    up = ((HEIGHT * (1 - share) / (1 - bottom), f"{share:.0%}") for share in shares)
    ages = _choose_ticks(last / length)
    across = ((WIDTH * age * length / last, f"{age:g}") for age in ages)
    return DrawnComparison(comparison, tuple(curves), tuple(across), tuple(up), unit)


def _draw(group: GroupSurvival, number: int, last: float, bottom: float) -> DrawnCurve:
    points = list(_list_shown(group, last))
    line = _draw_steps(((point.days, point.share) for point in points), group.curve.last, last, bottom)
    low = [(point.days, point.low) for point in points]
    high = [(point.days, point.high) for point in points]
    there, back = (_list_steps(edge, group.curve.last) for edge in (high, low))
    band = _draw_points([*there, *reversed(list(back))], last, bottom)
    return DrawnCurve(group, line, band, number % COLOURS, number >= COLOURS)


def _list_shown(group: GroupSurvival, last: float) -> Iterator[SurvivalPoint]:
    """Yield the last point of each pixel across, as far as enough parts were at risk."""
    points = [point for point in group.curve.points if point.days <= group.curve.last]
    for point, after in zip(points, [*points[1:], None], strict=True):
        if after is None or int(point.days / last * WIDTH) != int(after.days / last * WIDTH):
            yield point


def _draw_steps(points: Iterable[tuple[float, float]], end: float, last: float, bottom: float) -> str:
    return _draw_points(_list_steps(points, end), last, bottom)


def _list_steps(points: Iterable[tuple[float, float]], end: float) -> Iterator[tuple[float, float]]:
    """Yield the corners of a line that stays at a value until the next one."""
    before: float | None = None
    for days, value in points:
        if before is not None:
            yield days, before
        yield days, value
        before = value
    if before is not None:
        yield end, before


def _draw_points(points: Iterable[tuple[float, float]], last: float, bottom: float) -> str:
    inside = ((days, max(value, bottom)) for days, value in points)
    return draw_polyline(inside, (WIDTH, HEIGHT), (0, last), (bottom, 1))


def _choose_ticks(last: float) -> list[float]:
    """Return round marks up to a value, about six."""
    step = next(size for size in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if last / size <= 7)
    return [step * number for number in range(int(last / step) + 1)]
