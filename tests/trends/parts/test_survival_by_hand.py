"""Curves, log-rank tests and Weibull shapes: by a published trial, by planted shapes, and by what must not matter."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.trends.parts.log_rank import compare_groups, find_chi_square_tail
from assay.trends.parts.survival_curves import Life, estimate_survival
from assay.trends.parts.weibull_shape import estimate_shape

# Remissions of leukaemia in weeks (Freireich 1963): under 6-MP, of which some were still going on, and under placebo.
TREATED = [Life(0, weeks, True) for weeks in (6, 6, 6, 7, 10, 13, 16, 22, 23)] + [
    Life(0, weeks, False) for weeks in (6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)
]
PLACEBO = [Life(0, w, True) for w in (1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23)]
lives = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 40), st.booleans()).map(lambda t: Life(t[0], t[0] + t[1], t[2])),
    min_size=1,
    max_size=30,
)


def test_the_curve_of_a_published_trial() -> None:
    curve = estimate_survival(TREATED)
    told = {round(point.days): round(point.share, 3) for point in curve.points}
    assert told == {0: 1.0, 6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    by_23 = curve.points[-1]
    assert (round(by_23.low, 3), round(by_23.high, 3)) == (0.188, 0.680), "as R's survfit with log-log"
    assert curve.failures == 9
    assert curve.at(13) == curve.points[4]
    assert curve.at(33) is None, "fewer than ten were still at risk"


def test_the_log_rank_test_of_a_published_trial() -> None:
    p = compare_groups({"treated": TREATED, "placebo": PLACEBO})
    assert p == pytest.approx(4.17e-5, rel=0.01), "chi-square 16.79 with one degree of freedom"


@pytest.mark.parametrize(
    ("statistic", "degrees", "tail"),
    [(3.841, 1, 0.05), (11.070, 5, 0.05), (21.666, 9, 0.01), (0, 3, 1), (9.210, 2, 0.01)],
)
def test_the_tail_of_the_chi_square_as_in_tables(statistic: float, degrees: int, tail: float) -> None:
    assert find_chi_square_tail(statistic, degrees) == pytest.approx(tail, rel=0.001)


@given(lives)
def test_a_curve_only_falls_and_stays_in_its_band(group: Sequence[Life]) -> None:
    points = estimate_survival(group).points
    assert points[0].share == 1
    for before, after in pairwise(points):
        assert after.share <= before.share
        assert after.low - 1e-12 <= after.share <= after.high + 1e-12


@given(lives, lives, st.integers(1, 30))
def test_a_life_that_is_told_in_two_pieces_is_the_same_life(
    one: Sequence[Life], other: Sequence[Life], at: int
) -> None:
    cut = [piece for life in one for piece in _cut(life, at + 0.5)]
    assert estimate_survival(cut).points == estimate_survival(one).points
    whole, pieces = compare_groups({"a": one, "b": other}), compare_groups({"a": cut, "b": other})
    assert whole == pieces or whole == pytest.approx(pieces, abs=1e-9)


def _cut(life: Life, at: float) -> list[Life]:
    if not life.entered < at < life.left:
        return [life]
    return [Life(life.entered, at, False), Life(at, life.left, life.failed)]


@given(lives, lives, lives)
def test_the_order_of_groups_does_not_matter(a: Sequence[Life], b: Sequence[Life], c: Sequence[Life]) -> None:
    p, other = compare_groups({"a": a, "b": b, "c": c}), compare_groups({"x": c, "y": a, "z": b})
    assert (p is None) == (other is None)
    assert p is None or other is None or p == pytest.approx(other, abs=1e-6)


@pytest.mark.parametrize("shape", [0.7, 1.0, 2.6])
def test_a_planted_shape_is_found(shape: float) -> None:
    found = estimate_shape(_plant(shape, 4000))
    assert found is not None
    assert found.low <= shape <= found.high
    assert found.high / found.low < 1.2
    assert found.describe() == {0.7: "fails early", 1.0: "no ageing seen", 2.6: "wears out"}[shape]


def _plant(shape: float, number: int) -> list[Life]:
    """Lives by a Weibull, of parts that were seen from some age on, and not for ever."""
    chance, found = random.Random(5), []
    for _ in range(number):
        entered = chance.choice((0.0, chance.uniform(0, 300)))
        fails, ends = chance.weibullvariate(500, shape), entered + chance.uniform(1, 600)
        if fails > entered:
            found.append(Life(entered, min(fails, ends), fails <= ends))
    return found


def test_few_failures_have_no_shape() -> None:
    assert estimate_shape([Life(0, 10 + number, number < 19) for number in range(100)]) is None


def test_nothing_is_claimed_without_failures() -> None:
    assert compare_groups({"a": [Life(0, 5, False)] * 30, "b": [Life(0, 9, False)] * 30}) is None
    assert compare_groups({"a": TREATED}) is None
    assert math.isclose(estimate_survival([]).points[0].share, 1)
