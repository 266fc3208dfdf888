"""The value of a limit that history suggests, from profiles made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.model.backtest_report import LimitRecord, LimitSide
from assay.trends.limits.known_limits import KnownLimit
from assay.trends.limits.limit_profiles import LimitProfile
from assay.trends.limits.limit_review import ReviewedLimit, find_behaviour, judge_suggestion, suggest_value

QUIET = LimitRecord(failures=1, alarms=0, right=0, wrong=0, unclear=0, foreseen=0, lead_days=None)
VAIN = replace(QUIET, alarms=9, wrong=9)


def make_profile(
    bins: dict[float, int], side: LimitSide = "at_most", value: float = 85.0, noise: float | None = 1.0
) -> LimitProfile:
    """Return the profile of 100 parts on 100 nodes; `bins`: healthy days by distance to the limit, in tenths."""
    limit = KnownLimit(1, "c", "heat", "°C", side, value, "a.yaml:1", ("hgx",), 9000, 100)
    counted = [(round(distance * 10), days, days) for distance, days in sorted(bins.items())]
    record = VAIN if any(distance < 0 for distance in bins) else QUIET
    return LimitProfile(limit, record, 100, 100, noise, 0.1, counted, varies=False)


def suggest(profile: LimitProfile) -> float | None:
    return suggest_value(ReviewedLimit(profile, find_behaviour(profile)))


def test_a_limit_that_nothing_comes_near_becomes_tighter() -> None:
    assert suggest(make_profile({20: 5, 25: 8000})) == 66, "65 is the worst of the healthy, and one noise more"
    assert suggest(make_profile({20: 5, 25: 8000}, "at_least", 200.0)) == 219


def test_alarms_in_vain_make_it_looser() -> None:
    assert suggest(make_profile({-4.5: 10, 25: 8000})) == 91
    assert suggest(make_profile({-4.5: 10, 25: 8000}, "at_least", 200.0)) == 194


def test_the_budget_lets_some_healthy_days_pass() -> None:
    assert suggest(make_profile({20: 9, 25: 1_000_000})) == 61, "10 alarms in a million node-days"
    assert suggest(make_profile({20: 11, 25: 1_000_000})) == 66


@pytest.mark.parametrize(
    "profile",
    [
        make_profile({9: 50, 25: 8000}),
        make_profile({20: 499}),
        make_profile({20: 8000}, noise=None),
        make_profile({20: 8000}, "equals"),
        replace(make_profile({20: 8000}), varies=True),
        replace(make_profile({20: 8000}), record=replace(QUIET, failures=0)),
        replace(make_profile({20: 8000}), parts=19),
        make_profile({-4.5: 9, 25: 1_000_000}),
        replace(make_profile({-4.5: 10, 25: 8000}), record=replace(VAIN, right=1)),
    ],
    ids=[
        "near",
        "few days",
        "no noise",
        "equals",
        "varies",
        "nothing failed",
        "few parts",
        "it would be tighter",
        "it was right once",
    ],
)
def test_there_is_no_suggestion_without_a_reason(profile: LimitProfile) -> None:
    assert suggest(profile) is None


@pytest.mark.parametrize(("tried", "is_better"), [(1, True), (2, True), (3, False), (300, False)])
def test_the_more_limits_are_tried_the_less_may_be_chance(tried: int, is_better: bool) -> None:
    """One alarm ended, and was right. Of 8,000 days of parts, 30 were before a failure: the chance is 0.00375."""
    one = ReviewedLimit(profile := make_profile({20: 5, 25: 7995}), find_behaviour(profile))
    found = judge_suggestion(one, 66, replace(QUIET, alarms=1, right=1, foreseen=1), tried)
    assert (round(found.chance, 5), found.is_better) == (0.00375, is_better)
