"""Whether parts fail early, at random or because they wear out: the shape of a Weibull distribution of their lives.

Below 1, the hazard falls with age; at 1, it stays; above 1, it rises.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from assay.trends.parts.survival_curves import Life

LEAST_FAILURES = 20
ROUNDS, CLOSE = 60, 1e-9
Z_95 = 1.959964
MOST_STEP = 0.5


class WeibullShape(NamedTuple):
    """The shape, and the interval in which it is with 95 % confidence."""

    shape: float
    low: float
    high: float

    def describe(self) -> str:
        """Return what it means."""
        if self.low > 1:
            return "wears out"
        return "fails early" if self.high < 1 else "no ageing seen"


def estimate_shape(lives: Iterable[Life]) -> WeibullShape | None:
    """Return the shape of greatest likelihood, by Newton on its logarithm. None below 20 failures.

    The scale is solved out: scale^shape = Σ(left^shape − entered^shape) / failures.
    """
    known = [life for life in lives if life.left > life.entered]
    failed = [math.log(life.left) for life in known if life.failed]
    if len(failed) < LEAST_FAILURES:
        return None
    longest = max(life.left for life in known)
    scaled = Counter((life.entered / longest, life.left / longest) for life in known)
    mean_log = sum(failed) / len(failed) - math.log(longest)
    log_shape = 0.0
    for _ in range(ROUNDS):
        shape = math.exp(log_shape)
        gradient, curvature = _find_slopes(scaled, shape, mean_log)
        if curvature >= 0:
            return None
        step = max(-MOST_STEP, min(MOST_STEP, -gradient / curvature))
        log_shape += step
        if abs(step) < CLOSE:
            reach = Z_95 / math.sqrt(-curvature * len(failed))
            return WeibullShape(shape, shape * math.exp(-reach), shape * math.exp(reach))
    return None


def _find_slopes(scaled: Mapping[tuple[float, float], int], shape: float, mean_log: float) -> tuple[float, float]:
    """Return first and second derivative, by log shape, of the profile log-likelihood of one failure.

    `scaled`: how many lives there are from one age to another, as parts are bought together.
    """
    total = first = second = 0.0
    for (entered, left), count in scaled.items():
        for age, sign in ((left, count), (entered, -count)):
            if age > 0:
                weight, log_age = sign * age**shape, math.log(age)
                total, first = total + weight, first + weight * log_age
                second += weight * log_age * log_age
    ratio = first / total
    by_shape = 1 / shape + mean_log - ratio
    by_shape_twice = -1 / shape**2 - (second / total - ratio * ratio)
    return shape * by_shape, shape * by_shape + shape * shape * by_shape_twice
