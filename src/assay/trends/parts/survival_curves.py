"""How many parts still work after a time: the estimator of Kaplan and Meier, with Greenwood's band.

A life counts from `entered` to `left`, in days of service: a part that was watched only later, or moved to another
group, is at risk from then on (left truncation). A life that ends without a failure says only that it lasted so long.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

CONFIDENCE = 0.95
LEAST_AT_RISK = 10
"""With fewer parts at risk, a curve is no longer shown."""


class Life(NamedTuple):
    """A part between two ages, in days of service. `failed`: it failed at `left`."""

    entered: float
    left: float
    failed: bool


class RiskStep(NamedTuple):
    """An age at which parts failed: how many did, and how many were at risk just before."""

    days: float
    failed: int
    at_risk: int


class SurvivalPoint(NamedTuple):
    """The share that still works from an age on, and the band in which it is with 95 % confidence."""

    days: float
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SurvivalCurve:
    """The steps of a group, from (0, 1) on. `last`: the greatest age at which enough parts were at risk."""

    points: tuple[SurvivalPoint, ...]
    failures: int
    days: float
    last: float

    def at(self, days: float) -> SurvivalPoint | None:
        """Return what still works at an age, None where too few parts were seen."""
        if days > self.last:
            return None
        return self.points[bisect_right(self.points, days, key=lambda point: point.days) - 1]


def estimate_survival(lives: Iterable[Life]) -> SurvivalCurve:
    """Return the curve of a group.

    The band is Greenwood's variance on the scale log(−log S), so that it stays between 0 and 1 (Kalbfleisch, Prentice).
    """
    known = [life for life in lives if life.left > life.entered]
    points, share, spread = [SurvivalPoint(0.0, 1.0, 1.0, 1.0)], 1.0, 0.0
    for step in list_risk_steps(known):
        share *= 1 - step.failed / step.at_risk
        left = step.at_risk - step.failed
        spread = spread + step.failed / (step.at_risk * left) if left else math.inf
        points.append(SurvivalPoint(step.days, share, *_find_band(share, spread)))
    days = sum(life.left - life.entered for life in known)
    return SurvivalCurve(tuple(points), sum(life.failed for life in known), days, _find_last(known))


def _find_last(lives: Sequence[Life]) -> float:
    """Return the last age at which enough parts were at risk."""
    at_risk, last = 0, 0.0
    for days, change in sorted(_count_changes(lives).items()):
        last = days if at_risk >= LEAST_AT_RISK else last
        at_risk += change
    return last


def _count_changes(lives: Sequence[Life]) -> Counter[float]:
    """Return by how many lives more are at risk just after each age."""
    changes = Counter(life.entered for life in lives)
    changes.subtract(life.left for life in lives)
    return changes


def list_risk_steps(lives: Iterable[Life]) -> Iterator[RiskStep]:
    """Yield the ages at which parts failed. Who enters at an age is at risk just after it; who leaves, still at it."""
    known = list(lives)
    failed = Counter(life.left for life in known if life.failed)
    at_risk = 0
    for days, change in sorted(_count_changes(known).items()):
        if failed[days]:
            yield RiskStep(days, failed[days], at_risk)
        at_risk += change


def _find_band(share: float, spread: float) -> tuple[float, float]:
    """Return the band of a share. `spread`: Greenwood's sum, the variance of log S."""
    if share <= 0 or math.isinf(spread):
        return 0.0, 1.0 if share > 0 else 0.0
    reach = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2) * math.sqrt(spread) / math.log(share)
    return share ** math.exp(-reach), share ** math.exp(reach)
