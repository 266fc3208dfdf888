"""Drift over a day: planted drifts are found with their uncertainty, and healthy nodes are left in peace."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.specs.burn_in import BurnIn, BurnInPhase, BurnInWindow
from assay.validate.active.drift_against_neighbours import (
    DriftFinding,
    Point,
    compute_gpu_rates,
    estimate_slope,
    find_drifts,
    list_slow_gpus,
)
from bench.burn_in_days import PlantedDrift, make_day


@pytest.mark.parametrize(
    "drift",
    [
        PlantedDrift("temperature", 10),
        PlantedDrift("memory_temperature", 10),
        PlantedDrift("clock", 5),
        PlantedDrift("gflops", 5),
        PlantedDrift("corrected", 192),
    ],
)
def test_a_planted_drift_is_found_on_its_gpu_and_nowhere_else(day: BurnIn, drift: PlantedDrift) -> None:
    found = find_drifts(day, make_day(day, 7, drift))
    assert [(one.measure, one.subject) for one in found] == [(drift.measure, "gpu5")]
    planted = -drift.per_day if drift.measure in ("clock", "gflops") else drift.per_day
    assert found[0].low <= planted <= found[0].high, "the interval holds what was planted"
    assert "at 99.99%" in found[0].format()


def test_healthy_days_are_left_in_peace(day: BurnIn) -> None:
    assert [find_drifts(day, make_day(day, seed)) for seed in range(8)] == [[]] * 8


def test_a_common_change_is_no_drift_of_one_gpu(day: BurnIn) -> None:
    windows = [
        replace(window, gpus={name: {**one, "temperature": 60 + window.hours} for name, one in window.gpus.items()})
        for window in make_day(day, 3)
    ]
    assert find_drifts(day, windows) == []


def test_another_load_is_no_drift(day: BurnIn) -> None:
    def hotter(window: BurnInWindow) -> BurnInWindow:
        gpu5 = window.gpus["gpu5"]
        rise = 15 if window.phase in ("together", "right-results") else 0
        return replace(window, gpus={**window.gpus, "gpu5": {**gpu5, "temperature": gpu5["temperature"] + rise}})

    assert find_drifts(day, [hotter(window) for window in make_day(day, 4)]) == []


def test_unequal_power_claims_nothing_about_heat(day: BurnIn) -> None:
    windows = [
        replace(window, gpus={**window.gpus, "gpu5": {**window.gpus["gpu5"], "power": 500.0}})
        for window in make_day(day, 5, PlantedDrift("temperature", 12))
    ]
    assert find_drifts(day, windows) == []


def test_a_counter_that_begins_again_after_a_reboot_is_no_drift(day: BurnIn) -> None:
    windows = [
        replace(window, corrected={"gpu0": int(4 * window.hours) if window.hours < 12 else int(4 * window.hours) - 48})
        for window in make_day(day, 6)
    ]
    assert find_drifts(day, windows) == []


@given(st.integers(0, 11), st.integers(0, 3))
def test_too_few_windows_or_neighbours_claim_nothing(windows: int, gpus: int) -> None:
    phases = [BurnInPhase(name="heat", hours=24, parts=["gpu_burn"])]
    limits = {"temperature": {"per_day": 1.0}, "gflops": {"per_day": 1.0}}
    spec = BurnIn.model_validate(
        {"kind": "BurnIn", "name": "x", "sources": ["us"], "phases": phases, "drift": {"limits": limits}}
    )
    day = make_day(spec, 1, PlantedDrift("temperature", 50))
    few = [replace(one, gpus={name: one.gpus[name] for name in [*one.gpus][5 - min(gpus, 1) : 6]}) for one in day]
    assert find_drifts(spec, few if gpus < 2 else day[:windows]) == []


@given(
    st.floats(-5, 5),
    st.lists(st.floats(-100, 100), min_size=1, max_size=3),
    st.integers(4, 20),
)
def test_a_straight_line_gives_its_slope_whatever_the_levels_of_its_blocks(
    slope: float, levels: list[float], count: int
) -> None:
    points = [
        Point(block * 100 + hour, level + slope * hour, block)
        for block, level in enumerate(levels)
        for hour in range(count)
    ]
    found = estimate_slope(points, 0.9999)
    assert found is not None
    assert math.isclose(found.per_day, 24 * slope, abs_tol=1e-6)
    assert found.low <= found.per_day <= found.high


@given(st.lists(st.floats(-1e6, 1e6), max_size=30), st.integers(1, 4))
def test_an_interval_always_holds_its_slope(values: list[float], blocks: int) -> None:
    points = [Point(float(hour), value, hour % blocks) for hour, value in enumerate(values)]
    found = estimate_slope(points, 0.99)
    assert found is None or found.low <= found.per_day <= found.high


def test_a_few_wild_readings_do_not_make_a_drift() -> None:
    points = [Point(hour / 4, 80.0 if hour in (93, 95) else math.sin(hour * 7.0), "a") for hour in range(96)]
    found = estimate_slope(points, 0.9999)
    assert found is not None
    assert found.low < 0 < found.high


def test_slow_gpus_are_told_only_where_there_are_enough_to_compare_with(day: BurnIn) -> None:
    rates = compute_gpu_rates(make_day(day, 1)) | {"gpu3": 45_000.0}
    assert list(list_slow_gpus(day.drift, rates, [51_000.0] * 39)) == []
    (line,) = list_slow_gpus(day.drift, rates, [51_000.0] * 40)
    assert line == "gpu3: 45000 Gflop/s, -11.8 % of the median 51000 of 40 GPUs; rank 1 from below"


def test_a_finding_says_change_interval_and_limit() -> None:
    finding = DriftFinding("temperature", "gpu5", 8.1, 6.0, 10.2, 5.0, 96, 0.9999, holds=True)
    assert finding.format() == (
        "gpu5: temperature against its neighbours at equal power changed by +8.1 °C a day "
        "(+6.0 to +10.2 at 99.99%), limit 5"
    )
