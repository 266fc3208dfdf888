"""How a rule has fared, and what its forecasts are worth, by warnings that have ended."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.decide.trends.warning_record import (
    ClosedWarning,
    FailuresSeen,
    ForecastFactors,
    PastWarning,
    close_warnings,
    count_failures,
    find_crossing,
    judge_record,
    learn_past_factors,
    mark_new,
)


def end(outcome: str, actual: float | None = None) -> ClosedWarning:
    return ClosedWarning(actual, outcome)  # type: ignore[arg-type]


def learn(forecast: float, actuals: Iterable[int]) -> ForecastFactors | None:
    """Learn from warnings whose parts failed after so many days."""
    named = {f"n{number}": actual for number, actual in enumerate(actuals)}
    past = [PastWarning(0, (node, ""), forecast, 30, None, None) for node in named]
    return learn_past_factors(past, {(node, ""): [actual] for node, actual in named.items()})


def test_a_record_counts_what_came_of_the_warnings() -> None:
    closed = [end("right", actual=float(days)) for days in range(5, 17)] + [end("wrong")] * 2 + [end("cannot tell")]
    told = judge_record(closed, FailuresSeen(20, 12, 31, 12))
    assert (told.right, told.wrong, told.cannot_tell) == (12, 2, 1)
    assert told.precision == pytest.approx(12 / 14, abs=0.001)
    low, high = told.precision_interval
    assert 0.6 < low < 12 / 14 < high < 0.97
    assert (told.recall, told.recall_of_all) == (0.6, pytest.approx(12 / 31, abs=0.001))
    assert told.lead_days == (10.5, pytest.approx(6.1))


def test_of_nothing_nothing_is_claimed() -> None:
    told = judge_record([])
    assert [
        getattr(told, name) for name in ("precision", "precision_interval", "recall", "recall_of_all", "lead_days")
    ] == [None] * 5


def test_below_thirty_closed_warnings_no_range_is_given() -> None:
    assert learn(20.0, range(2, 31)) is None
    factors = learn(20.0, range(1, 31))
    assert factors is not None
    assert factors.apply(20.0) == (pytest.approx(3.1), pytest.approx(15.5), pytest.approx(27.9))


@given(st.lists(st.integers(1, 100), min_size=30, max_size=60), st.floats(0.1, 100))
def test_a_range_is_ordered_and_scales(actuals: list[int], days: float) -> None:
    factors = learn(10.0, actuals)
    assert factors is not None
    low, middle, high = factors.apply(days)
    assert 0 < low <= middle <= high
    assert factors.apply(2 * days)[1] == pytest.approx(2 * middle)


@pytest.mark.parametrize(
    ("days", "after", "crossed"),
    [
        ([], 0, None),
        ([5, 6], 0, None),
        ([5, 6, 7], 0, 7),
        ([5, 7, 9], 0, 9),
        ([5, 7, 10], 0, None),
        ([1, 2, 3, 4], 3, 4),
    ],
)
def test_a_limit_is_crossed_on_the_third_day_within_five(days: list[int], after: int, crossed: int | None) -> None:
    assert find_crossing(days, after) == crossed


def test_a_crossing_and_the_failure_that_follows_are_one() -> None:
    part = ("n1", "gpu0")
    seen = count_failures([], {part: [112], ("n2", "gpu0"): [120]}, {part: [[108, 109, 110]]}, since=100)
    assert seen == FailuresSeen(with_sign=1, foreseen_with_sign=0, every=2, foreseen=0)


def name_part(day: int, *, crossed: int | None, is_new: bool = True, node: str = "n1") -> PastWarning:
    """Return a part that was named on a day, 10 days before its limit in a straight line."""
    return PastWarning(day, (node, "gpu0"), 10.0, 30, crossed, None, is_new)


def test_each_week_of_a_warning_teaches_the_range_however_long_it_took() -> None:
    warnings = [name_part(0, crossed=40, node=f"n{number}") for number in range(30)]
    weeks = [name_part(day, crossed=40, is_new=False, node=f"n{number}") for number in range(30) for day in (7, 30)]
    assert learn_past_factors(warnings[1:] + weeks, {}) is None, "twenty-nine warnings, of several weeks each"
    factors = learn_past_factors([*warnings, *weeks], {})
    assert factors is not None
    assert factors.apply(10.0) == (pytest.approx(10), pytest.approx(33), pytest.approx(40))


def test_a_failure_ends_a_forecast_and_another_part_of_the_place_does_not() -> None:
    part = ("n1", "gpu0")
    failed = [name_part(0, crossed=40)._replace(ends=None) for _ in range(30)]
    factors = learn_past_factors(failed, {part: [5]})
    assert factors is not None
    assert factors.middle == pytest.approx(5 / failed[0].days_left)
    gone = [name_part(0, crossed=40)._replace(ends=20) for _ in range(30)]
    assert learn_past_factors(gone, {}) is None


def test_only_new_warnings_are_closed() -> None:
    said = [name_part(0, crossed=10), name_part(7, crossed=10, is_new=False), name_part(1, crossed=40, node="n2")]
    ended = list(close_warnings(said, {}, today=60))
    assert [(one.outcome, one.actual_days) for one in ended] == [("right", 10.0), ("wrong", None)]


@pytest.mark.parametrize(
    ("changed", "failed", "outcome"),
    [
        ({}, [], "wrong"),
        ({"days_later": 23}, [], "cannot tell"),
        ({"days_later": 24}, [], "wrong"),
        ({"ends": 120}, [], "cannot tell"),
        ({}, [0], "wrong"),
        ({}, [1], "right"),
        ({}, [30], "right"),
        ({}, [31], "wrong"),
    ],
)
def test_a_past_warning_is_closed_by_what_came_of_the_part(
    changed: dict[str, int], failed: list[int], outcome: str
) -> None:
    said = [name_part(100, crossed=None)._replace(**changed)]
    assert [
        one.outcome for one in close_warnings(said, {("n1", "gpu0"): [100 + day for day in failed]}, today=160)
    ] == [outcome]
    assert list(close_warnings(said, {}, today=130)) == [], "its 30 days are not over"


def test_a_part_is_warned_of_again_after_thirty_days_and_not_when_its_limit_is_crossed_already() -> None:
    named = [name_part(day, crossed=None) for day in (35, 0, 7, 30, 28)]
    assert [(one.day, one.is_new) for one in mark_new(named, {})] == [
        (0, True), (7, False), (28, False), (30, True), (35, False),
    ]  # fmt: skip
    assert not mark_new(named[1:2], {("n1", "gpu0"): [[-1, 3]]})[0].is_new
