"""What a statistic says by its own past, however heavy the tail of another measurement is."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.decide.trends.days import OWN_FROM, OWN_TO, list_compared_days
from assay.decide.trends.measured_days import Grid
from assay.decide.trends.part_evidence import Tail, find_middle, learn_tail, make_course, measure_growth, rank_scores
from assay.decide.trends.part_findings import ADDS, add_evidence

NAN = float("nan")


@given(st.lists(st.one_of(st.just(NAN), st.floats(-9, 9)), min_size=1, max_size=9), st.floats(-9, 9))
def test_the_middle_is_that_of_the_values_that_are_there(values: list[float], near: float) -> None:
    there = sorted(value for value in values if value == value)
    (middle,) = find_middle(np.array([values]), near=np.array([near]))
    if not there:
        assert np.isnan(middle)
        return
    low, high = there[(len(there) - 1) // 2], there[len(there) // 2]
    assert middle == (high if abs(high - near) < abs(low - near) else low)
    assert find_middle(np.array([values]))[0] == pytest.approx((low + high) / 2)
    assert np.isnan(find_middle(np.array([values]), least=len(there) + 1)[0])


@pytest.mark.parametrize("draw", ["normal", "exponential", "pareto"])
def test_evidence_is_the_logarithm_of_how_rare_a_score_is(draw: str) -> None:
    chance = np.random.default_rng(5)
    sample = {
        "normal": chance.normal,
        "exponential": chance.exponential,
        "pareto": lambda size: chance.pareto(3, size),
    }[draw]
    tail = learn_tail(sample(size=20_000))
    others = tail.weigh(sample(size=2_000_000))
    for evidence in (2, 3, 4, 5):
        rare = max(1.0, float((others >= evidence).sum()))
        assert np.log10(2_000_000 / rare) == pytest.approx(evidence, abs=1.1)


def test_with_little_of_the_past_the_usual_tail_holds() -> None:
    tail = learn_tail(np.array([1.0] * 59))
    assert list(tail.weigh(np.array([3.0, 8.0, NAN]))) == [0, pytest.approx(4.3, abs=0.02), 0]
    assert tail == Tail(tail.known)


def test_values_that_many_healthy_parts_reach_are_as_rare_as_these() -> None:
    known = np.r_[np.zeros(990), np.full(10, 7.0)]
    assert learn_tail(known).weigh(np.array([0.0, 7.0])) == pytest.approx([0.0, 2.0])
    assert learn_tail(known).weigh(np.array([70.0]))[0] > 3


def grow(*values: float, ends: int = 0) -> list[float | None]:
    days = np.arange(len(values), dtype=np.int32)
    held = np.zeros((1, len(values)), np.int16)
    held[0, ends or len(values) :] = 1
    (growth,) = measure_growth(Grid(days, np.array([values]), held, held))
    return [None if np.isnan(value) else float(value) for value in growth]


def test_the_growth_of_a_counter_says_nothing_of_resets_wild_values_other_parts_and_the_end_of_its_bits() -> None:
    assert grow(5, 7, 7, 12) == [None, 2, 0, 5]
    assert grow(5, NAN, 9, 1, 4) == [None, None, 2, None, 3], "a reset, and two days in one step"
    assert grow(5, 900, 7) == [None, None, 1], "a wild value"
    assert grow(5, 7, 20, 22, ends=2) == [None, 2, None, 2], "another part"
    assert grow(250, 255, 255) == [None, 5, None], "eight bits"


@given(st.integers(15_000, 25_000))
def test_of_a_large_fleet_the_same_days_are_read_whatever_day_is_judged(day: int) -> None:
    days = list_compared_days(day)
    own = [one for one in days if day - OWN_FROM <= one <= day - OWN_TO]
    assert {one % 2 for one in own} == {0}
    assert len(own) >= (OWN_FROM - OWN_TO) // 2
    assert days[-21:] == [*range(day - 20, day + 1)]


GAUGE, COUNTER = ADDS


@pytest.mark.parametrize(
    ("said", "sum_of_all"),
    [
        ([(4.0, GAUGE), (2.4, GAUGE), (2.4, GAUGE)], 4.0),
        ([(4.0, GAUGE), (3.0, GAUGE)], 4.5),
        ([(4.0, GAUGE), (2.4, COUNTER)], 4.9),
        ([(4.0, COUNTER), (2.4, GAUGE)], 4.0),
        ([(3.0, COUNTER), (3.0, COUNTER), (1.0, COUNTER)], 4.5),
        ([(1.0, GAUGE), (0.5, COUNTER)], 1.0),
    ],
)
def test_other_measurements_add_what_a_gauge_has_beyond_more_than_a_counter(
    said: list[tuple[float, float]], sum_of_all: float
) -> None:
    for order in permutations(said):
        sums = np.zeros((3, 2))
        for strength, adds in order:
            add_evidence(sums, np.array([1]), np.array([strength]), adds)
        assert (sums[1] + sums[2]).tolist() == pytest.approx([0.0, sum_of_all])


def test_a_sum_of_counters_counts_by_its_rank_among_healthy_parts_of_past_weeks() -> None:
    past = np.zeros((10, 101))
    past[:, :10] = 1.0
    past[:, 100] = 9.0  # it failed: it teaches nothing
    today = np.array([*[0.0] * 98, 0.5, 2.0, 9.0])
    evidence = rank_scores(np.vstack([today, past]), np.arange(101) < 100)[0]
    assert evidence[:98].max() == 0.0, "no sum, no evidence"
    assert evidence[98:].tolist() == pytest.approx([1.0, 3.0, 3.0]), "100 of 1,000 reached 0.5, and none more than 1"


@pytest.mark.parametrize(("day", "is_told"), [(105, False), (115, True)])
def test_the_level_of_a_part_that_came_within_75_days_may_be_its_own(day: int, is_told: bool) -> None:
    days, held = np.arange(120, dtype=np.int32), np.zeros((25, 120), np.int16)
    held[3, 40:] = 1
    values = np.random.default_rng(1).normal(0, 1, held.shape) + 9 * held
    course = make_course("heat", Grid(days, values, held, np.zeros_like(held)), np.ones(25, bool), counts=False)
    level = course.score(day, 20)["level"]
    assert np.isfinite(level[:3]).all()
    assert (level[3] > 5) == is_told
