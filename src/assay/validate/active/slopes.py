"""The slope of a measure over hours, with an interval: robust regression within blocks of equal load.

Each block has a level of its own, so that a change of load is no change of the part. Outliers are drawn in (Huber), and
the interval is widened for noise in which a value resembles the one before it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter
from statistics import NormalDist, mean, median

MOST_LIKENESS = 0.95
HOURS_OF_A_DAY = 24.0
HUBER_SPREADS = 1.5
SPREAD_OF_MEDIAN = 1.4826
"""Turns a median of absolute deviations into a standard deviation."""
ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Point:
    """A value at `hours` of burn-in, under the load `block`."""

    hours: float
    value: float
    block: Hashable


@dataclass(frozen=True, slots=True)
class Slope:
    """A change per day, and the interval in which it is with the confidence that was asked for."""

    per_day: float
    low: float
    high: float
    points: int


Block = list[tuple[float, float]]
"""Hours, from the block's mean, and values."""


def estimate_slope(points: Sequence[Point], confidence: float) -> Slope | None:
    """Return the slope of points, None where they do not tell one: too few, or all at one time of each block."""
    blocks = _split_blocks(points)
    lever = sum(hours**2 for block in blocks for hours, _ in block)
    if len(points) < len(blocks) + 3 or lever <= 0:
        return None
    fitted = blocks
    for _ in range(ROUNDS):
        slope, residuals = _fit(fitted, blocks, lever)
        spread = SPREAD_OF_MEDIAN * median(abs(rest) for block in residuals for rest in block)
        fitted = _draw_in(blocks, residuals, spread)
    spread = max(spread, _quantum(points) / math.sqrt(12))
    error = spread * math.sqrt(_widen(residuals) / lever)
    reach = NormalDist().inv_cdf(0.5 + confidence / 2) * error
    low, high = (HOURS_OF_A_DAY * (slope + side * reach) for side in (-1, 1))
    return Slope(HOURS_OF_A_DAY * slope, low, high, len(points))


def _split_blocks(points: Sequence[Point]) -> list[Block]:
    blocks = []
    for _, group in groupby(sorted(points, key=lambda one: (repr(one.block), one.hours)), key=attrgetter("block")):
        block = list(group)
        middle = mean(point.hours for point in block)
        blocks.append([(point.hours - middle, point.value) for point in block])
    return blocks


def _fit(fitted: list[Block], blocks: list[Block], lever: float) -> tuple[float, list[list[float]]]:
    """Return the slope of the fitted values, and what the line leaves of the real ones, by block."""
    slope = sum(hours * value for block in fitted for hours, value in block) / lever
    residuals = []
    for block, real in zip(fitted, blocks, strict=True):
        level = mean(value for _, value in block)
        residuals.append([value - level - slope * hours for hours, value in real])
    return slope, residuals


def _draw_in(blocks: list[Block], residuals: list[list[float]], spread: float) -> list[Block]:
    """Return the values, with residuals beyond `HUBER_SPREADS` drawn in to that."""
    most = HUBER_SPREADS * spread
    return [
        [(hours, value - rest + min(max(rest, -most), most)) for (hours, value), rest in zip(block, rests, strict=True)]
        for block, rests in zip(blocks, residuals, strict=True)
    ]


def _quantum(points: Sequence[Point]) -> float:
    """Return the smallest step between two values: sensors round, and a constant value is not known exactly."""
    values = sorted({point.value for point in points})
    return min((other - one for one, other in pairwise(values)), default=0.0)


def _widen(residuals: list[list[float]]) -> float:
    """Return by how much the variance grows because a value resembles the one before it (lag one)."""
    products = sum(one * other for block in residuals for one, other in pairwise(block))
    squares = sum(rest * rest for block in residuals for rest in block)
    likeness = min(max(products / squares if squares else 0.0, 0.0), MOST_LIKENESS)
    return (1 + likeness) / (1 - likeness)
