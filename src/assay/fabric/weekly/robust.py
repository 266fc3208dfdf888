"""Statistics that a few bad values do not bend: medians instead of means."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

OUTLIER = 3.5
"""From this modified z-score on a value is an outlier (Iglewicz and Hoaglin, How to Detect and Handle Outliers)."""
FEWEST = 8
"""With fewer peers than this nobody stands out."""
MOST = 16
_MAD_OF_NORMAL = 0.6745
_MEAN_DEVIATION_OF_NORMAL = 1.253314


def scores(values: Sequence[float]) -> list[float]:
    """Return how far each value is from the median of all, as a modified z-score; 0 where all are equal.

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
    """Return the median of the slopes between all pairs of points (Theil and Sen), 0 for fewer than two.

    Of many points `MOST` are taken, evenly: the pairs grow with their square.
    """
    step = -(-len(points) // MOST)
    points = points[:: max(step, 1)]
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for number, earlier in enumerate(points)
        for later in points[number + 1 :]
        if later[0] != earlier[0]
    ]
    return median(slopes) if slopes else 0.0
