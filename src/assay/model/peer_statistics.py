"""What both trends and the weekly evaluation of a fabric judge by: deviations from peers, slopes, and tails of chance.

The statistics are robust: they use medians instead of means, so that a few bad values do not change them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb, exp, inf, lgamma, pi, sqrt
from statistics import NormalDist, fmean, median, pvariance

TO_SIGMA, MEAN_TO_SIGMA = 1.4826, 1.253314
"""From the median and the mean deviation to the standard deviation, where values are normal."""
CLIPPED_AT, CLIPPED_SQUARE = 2.0, 0.9205
"""Where deviations are cut off, and what the mean square of normal ones is then."""
FREEDOM_A_MEMBER = 0.8
"""The robust spread of a group is about as exact as the standard deviation of a group of 80 % of its size."""
MIN_CHANCE = 1e-12


def find_spread(median_deviation: float, mean_deviation: float) -> float:
    """Return the robust standard deviation; by the mean deviation where more than half of the values are equal."""
    return TO_SIGMA * median_deviation or MEAN_TO_SIGMA * mean_deviation


def compute_z_scores(values: Sequence[float]) -> list[float]:
    """Return the modified z-score of each value: its distance from the median, 0 if all values are equal.

    The spread is the standard deviation, in which a value counts as at most two robust deviations away (Huber, Robust
    Statistics). It is as robust as the median deviation, and more exact where readings come in steps, such as 0.1 dB.
    """
    if not values:
        return []
    middle = median(values)
    deviations = [abs(value - middle) for value in values]
    half = median(deviations)
    spread = find_spread(half, fmean(deviations))
    if half:
        most = CLIPPED_AT * spread
        spread = sqrt(fmean(min(deviation, most) ** 2 for deviation in deviations) / CLIPPED_SQUARE)
    return [(value - middle) / (spread or 1.0) for value in values]


def compute_median_slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the median slope between each point of the first half and its partner in the second, 0 for few points.

    This is Theil's incomplete method: few slopes, each over a long time. A quarter of the points may be wrong.
    """
    half = (len(points) + 1) // 2
    pairs = zip(points, points[half:], strict=False)
    slopes = [(after - before) / (later - earlier) for (earlier, before), (later, after) in pairs if later != earlier]
    return median(slopes) if slopes else 0.0


def compute_slope_noise(points: Sequence[tuple[float, float]], slope: float) -> float:
    """Return the standard error of a slope, by the distances of the points from the line, without the farthest."""
    times = [at for at, _ in points]
    middle = fmean(times)
    levels = [value - slope * (at - middle) for at, value in points]
    level = median(levels)
    squares = sorted((own_level - level) ** 2 for own_level in levels)[:-1]
    freedom = len(points) - 3
    return sqrt(sum(squares) / freedom / sum((at - middle) ** 2 for at in times)) if freedom > 0 else inf


def find_group_bound(members: int, comparisons: int, budget: float) -> float:
    """Return the modified z-score that one of so many comparisons exceeds by chance, in `budget` of all weeks.

    Small groups know neither their median nor their spread well: the bound is that of Student's distribution.
    """
    return find_student_bound(FREEDOM_A_MEMBER * members, budget / comparisons) * sqrt(1 + pi / (2 * members))


@lru_cache(4096)
def find_student_bound(freedom: float, chance: float) -> float:
    """Return the value that Student's t with so many degrees of freedom exceeds with this probability.

    Wallace's approximation (1959); it is within 2 % from 3 degrees on.
    """
    normal = -NormalDist().inv_cdf(max(chance, MIN_CHANCE))
    scaled = normal * (8 * freedom + 3) / (8 * freedom + 1)
    return sqrt(freedom * (exp(min(scaled * scaled / freedom, 50.0)) - 1))


def find_share_interval(hits: int, of: int, quantile: float = 0.95) -> tuple[float, float] | None:
    """Return the interval of a share by Wilson's formula; None of nothing. By default with 90 % confidence."""
    if not of:
        return None
    z = NormalDist().inv_cdf(quantile)
    share, spread = hits / of, z * z / of
    middle, half = share + spread / 2, z * sqrt(share * (1 - share) / of + spread / (4 * of))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


def estimate_beta(counts: Sequence[int], scans: int) -> tuple[float, float]:
    """Return the parameters of the beta distribution of the peers' rates, by moments, with half an event more."""
    mean = (sum(counts) + 0.5) / (len(counts) * scans + 1)
    spread = pvariance([count / scans for count in counts]) if len(counts) > 1 else 0.0
    alone = mean * (1 - mean) / scans
    # the part of the variance that chance alone does not explain
    correlation = min(max((spread - alone) / (mean * (1 - mean) - alone), 0.0), 0.9) if scans > 1 else 0.0
    strength = 1 / correlation - 1 if correlation > 1e-6 else 1e6
    return mean * strength, (1 - mean) * strength


@lru_cache(4096)
def compute_tail(count: int, scans: int, alpha: float, beta: float) -> float:
    """Return the probability of `count` or more scans with the event, by the beta-binomial distribution."""
    most = min(count, scans)
    terms = (
        exp(
            lgamma(scans + 1)
            - lgamma(k + 1)
            - lgamma(scans - k + 1)
            + _log_beta(k + alpha, scans - k + beta)
            - _log_beta(alpha, beta)
        )
        for k in range(most, scans + 1)
    )
    return min(1.0, sum(terms))


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def compute_shared_tail(shared: int, members: int, drawn: int, everybody: int) -> float:
    """Return the chance of `shared` or more of a group's `members` among `drawn` of `everybody`."""
    ways = sum(
        comb(members, hit) * comb(everybody - members, drawn - hit) for hit in range(shared, min(members, drawn) + 1)
    )
    return ways / comb(everybody, drawn)
