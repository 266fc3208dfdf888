"""How far from usual a reading must be to stand out, so that a healthy week rarely names a port.

A week compares thousands of readings, so some are far from usual by chance alone. The budget is for the whole report:
at most about one healthy week in 20 names a port. Each kind of comparison has a part of it, shared by all comparisons
of that kind (Bonferroni): the more ports and groups a fabric has, the farther away a reading must be.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, pi, sqrt
from statistics import NormalDist

OUTLIER_BUDGET = 0.025
"""The share of healthy weeks that may name an outlier."""
DRIFT_BUDGET = 0.02
"""The share of healthy weeks that may name a drift. Events that repeat have `chance` of the design."""
FREEDOM_A_MEMBER = 0.8
"""The robust spread of a group is about as exact as the standard deviation of a group of 80 % of its size."""
MIN_CHANCE = 1e-12


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
