"""Statistics that a few bad values do not bend: medians instead of means."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

FEWEST = 8
"""With fewer peers than this nobody stands out."""
_MAD_OF_NORMAL = 0.6745
_MEAN_DEVIATION_OF_NORMAL = 1.253314


def scores(values: Sequence[float]) -> list[float]:
    """Return how far each value is from the median of all, as a modified z-score; 0 where all are equal.

    Beyond 3.5 a value is an outlier (Iglewicz and Hoaglin, How to Detect and Handle Outliers).
    Where more than half of them are equal, and so the median deviation is 0, the mean deviation stands in, as usual for
    this score.
    """
    if not values:
        return []
    middle = median(values)
    deviations = [abs(value - middle) for value in values]
    if spread := median(deviations):
        return [_MAD_OF_NORMAL * (value - middle) / spread for value in values]
    if spread := fmean(deviations):
        return [(value - middle) / (_MEAN_DEVIATION_OF_NORMAL * spread) for value in values]
    return [0.0] * len(values)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the median of the slopes between points half of them apart, 0 for fewer than two.

    Theil's incomplete method: as few slopes as points, each over a long time; a quarter of the points may be wrong.
    """
    half = (len(points) + 1) // 2
    pairs = zip(points, points[half:], strict=False)
    slopes = [(after - before) / (later - earlier) for (earlier, before), (later, after) in pairs if later != earlier]
    return median(slopes) if slopes else 0.0
