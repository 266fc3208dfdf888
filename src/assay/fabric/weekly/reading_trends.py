"""The trend of one reading of one port over a week: its median, its ends, and how much it drifts."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan, sqrt
from statistics import fmean, median

from assay.fabric.weekly.compared_readings import ComparedReading
from assay.fabric.weekly.peer_comparison import compute_median_slope
from assay.fabric.weekly.week import WEEK_S, ReadingTrend

MIN_TREND_POINTS = 4
"""With fewer scans there is no drift."""


def make_trend(times: Sequence[float], row: Sequence[float], reading: ComparedReading) -> ReadingTrend | None:
    """Return the trend of the values at these times, None if all are nan. What gets worse within one step drifts 0."""
    points = list_points(times, row)
    if not points:
        return None
    values = [value for _, value in points]
    if len(set(values)) == 1:  # most lasers and ratios
        return ReadingTrend(values[0], values[0], values[0], 0.0 if len(points) >= MIN_TREND_POINTS else None)
    if len(points) < MIN_TREND_POINTS:
        return ReadingTrend(median(values), values[0], values[-1])
    slope = compute_median_slope(points)
    seen = slope * reading.worse * (points[-1][0] - points[0][0])
    if min(seen, max(values) - min(values)) <= reading.resolution:
        return ReadingTrend(
            median(values), values[0], values[-1], min(slope * reading.worse, 0.0) * reading.worse * WEEK_S
        )
    noise = compute_slope_noise(points, slope) * WEEK_S
    return ReadingTrend(median(values), values[0], values[-1], slope * WEEK_S, noise, len(points))


def compute_slope_noise(points: Sequence[tuple[float, float]], slope: float) -> float:
    """Return the standard error of a slope, by the distances of the points from the line, without the farthest."""
    times = [at for at, _ in points]
    middle = fmean(times)
    levels = [value - slope * (at - middle) for at, value in points]
    level = median(levels)
    squares = sorted((one - level) ** 2 for one in levels)[:-1]
    freedom = len(points) - 3
    return sqrt(sum(squares) / freedom / sum((at - middle) ** 2 for at in times)) if freedom > 0 else inf


def list_points(times: Sequence[float], row: Sequence[float]) -> list[tuple[float, float]]:
    """Return the times at which a reading was read, and its values."""
    return [(at, value) for at, value in zip(times, row, strict=True) if not isnan(value)]
