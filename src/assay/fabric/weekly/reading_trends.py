"""The trend of one reading of one port over a week: its median, its ends, and how much it drifts."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from statistics import median

from assay.fabric.weekly.peer_comparison import compute_median_slope
from assay.fabric.weekly.week import WEEK_S, ReadingTrend

MIN_TREND_POINTS = 4
"""With fewer scans there is no drift."""


def make_trend(times: Sequence[float], row: Sequence[float]) -> ReadingTrend | None:
    """Return the trend of the values at these times, None if all are nan."""
    points = list_points(times, row)
    if not points:
        return None
    values = [value for _, value in points]
    if len(set(values)) == 1:  # most lasers and ratios
        return ReadingTrend(values[0], values[0], values[0], 0.0 if len(points) >= MIN_TREND_POINTS else None)
    per_week = compute_median_slope(points) * WEEK_S if len(points) >= MIN_TREND_POINTS else None
    return ReadingTrend(median(values), values[0], values[-1], per_week)


def list_points(times: Sequence[float], row: Sequence[float]) -> list[tuple[float, float]]:
    """Return the times at which a reading was read, and its values."""
    return [(at, value) for at, value in zip(times, row, strict=True) if not isnan(value)]
