"""The interval of a share, such as of the warnings that were right."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist


def find_share_interval(hits: int, of: int, quantile: float) -> tuple[float, float] | None:
    """Return the interval of a share by Wilson's formula; None of nothing. `quantile`: 0.95 for 90 % confidence."""
    if not of:
        return None
    z = NormalDist().inv_cdf(quantile)
    share, spread = hits / of, z * z / of
    middle, half = share + spread / 2, z * sqrt(share * (1 - share) / of + spread / (4 * of))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))
