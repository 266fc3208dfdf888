"""When a verdict flaps and how far a measurement moves by itself: one rule, whether runs' files or history is asked."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from statistics import median, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.ledger.history.append import append_run as keep_in_history
from assay.ledger.history.flaky import (
    MAX_SAMPLE_NODES,
    MIN_FLAKY_TURNS,
    MIN_VALUES,
    WINDOW_RUNS,
    MeasurementSeries,
    count_flaky_turns,
    estimate_noise,
    estimate_noise_floors,
    exceeds_noise,
    robust_deviation,
    sample_nodes,
)
from assay.ledger.history.flaky import query_flaky_checks as flaps_of_history
from assay.ledger.history.flaky import query_noise as noise_of_history
from assay.ledger.history.parquet_files import history_folder
from assay.ledger.history.queries import OutcomeHistory
from assay.model.outcome import Measurement
from assay.validate.results.comparison_summary import collect_differences
from assay.validate.results.run_comparison import compare_runs

VALUES = st.lists(st.floats(-1000, 1000), min_size=MIN_VALUES, max_size=12)
VERDICTS = st.lists(st.sampled_from(["pass", "fail"]), max_size=WINDOW_RUNS)


@given(VERDICTS)
def test_a_row_of_verdicts_turns_as_often_read_from_its_end(verdicts):
    assert count_flaky_turns(verdicts) == count_flaky_turns(verdicts[::-1])


@given(VERDICTS)
def test_what_flaps_turned_often_enough_and_at_most_twice_as_often_as_it_failed_or_passed(verdicts):
    turned = count_flaky_turns(verdicts)
    assert turned == 0 or MIN_FLAKY_TURNS <= turned <= 2 * min(verdicts.count("fail"), verdicts.count("pass"))


def test_what_broke_once_and_was_mended_once_does_not_flap():
    assert [count_flaky_turns(["pass", "fail", "pass"]), count_flaky_turns(["pass", "fail", "pass", "fail"])] == [0, 3]


@given(VALUES, st.floats(-100, 100))
def test_the_spread_is_of_the_values_and_not_of_where_they_are(values, by):
    assert robust_deviation([value + by for value in values]) == pytest.approx(robust_deviation(values), abs=1e-6)


@pytest.mark.parametrize("number", [5, 7, 9, 10])
def test_the_spread_of_few_normal_values_is_on_average_their_standard_deviation(number):
    chance = random.Random(number)
    drawn = [robust_deviation([chance.gauss(70, 2) for _ in range(number)]) for _ in range(4000)]
    assert sum(drawn) / len(drawn) == pytest.approx(2, rel=0.04)
    assert stdev(drawn) > 0


@given(VALUES, st.floats(0.001, 10))
def test_noise_is_never_less_than_what_is_usual_and_no_value_among_others_is_far(values, floor):
    noise = estimate_noise(values, floor)
    assert noise is not None
    assert noise >= floor
    assert not exceeds_noise(median(values), median(values), noise)


@given(VALUES)
def test_noise_is_not_known_by_few_values_or_where_nothing_usual_is(values):
    assert (
        estimate_noise(values, None)
        is estimate_noise(values, 0.0)
        is estimate_noise(values[: MIN_VALUES - 1], 1.0)
        is None
    )


def test_what_is_usual_is_the_median_of_the_spreads_and_of_nothing_that_never_moved():
    def of(check, wide):
        return {
            MeasurementSeries(check, f"n{by}", 0, "x"): [by * wide * one for one in (-2, -1, 0, 1, 2)]
            for by in (1, 2, 9)
        }

    assert estimate_noise_floors(of("moves", 1) | of("rests", 0)) == {
        ("moves", "x"): robust_deviation([-4, -2, 0, 2, 4])
    }


@given(st.sets(st.text(max_size=3), max_size=400))
def test_a_sample_is_spread_over_all_nodes_and_has_what_is_on_none(nodes):
    chosen = sample_nodes(nodes)
    assert chosen[0] == ""
    assert min(MAX_SAMPLE_NODES, len(nodes)) <= len(chosen) < 2 * MAX_SAMPLE_NODES + 1


@pytest.fixture(scope="module")
def both(keep_in, of, tmp_path_factory):
    """Runs of twelve nodes, judged by chance and not all of them in each, told from their files and by history."""
    home = tmp_path_factory.mktemp("both")
    keep, chance, files = keep_in(home), random.Random(7), []
    for run in range(14):
        outcomes = []
        for node in range(12):
            value = round(40 + 3 * node + chance.uniform(-1, 1) + 40 * (run == 13 and node in (2, 5)), 1)
            two = (Measurement("celsius", value, "°C"), Measurement("celsius", value / 2, "°C"))
            verdict = chance.choice(["pass", "pass", "fail", "error"]) if node % 2 else "pass"
            document = "" if node == 3 else f"{node}-{run - (run % 4 == 3)}"  # now and then the same again
            if chance.random() < 0.8 or run > 11:
                judged = {"measurements": two, "evidence": document, "evidence_at": "2026-11-21T00:00:00+00:00"}
                outcomes.append(of("heat", f"n{node}", verdict, **judged))
        files.append(keep(outcomes))
        keep_in_history(files[-1], history_folder(home / "reports"))
    with (
        compare_runs(files[-2], files[-1]) as comparison,
        OutcomeHistory(history_folder(home / "reports"), datetime(2026, 11, 22, tzinfo=UTC)) as history,
    ):
        yield collect_differences(comparison, files[:-1]), flaps_of_history(history), noise_of_history(history)


def test_runs_and_history_agree_what_flaps(both):
    compared, flaps, _ = both
    changed = {(one.check, one.subject) for one in compared.comparison.changes()}
    told = {(one.check, one.subject): (one.times, one.judged) for one in flaps}
    assert {(one.check, one.subject): (one.flips, one.runs) for one in compared.flaky} == {
        key: said for key, said in told.items() if key in changed
    }
    assert len(compared.flaky) > 2


def test_runs_and_history_agree_how_far_a_measurement_moved(both):
    compared, _, noises = both
    far = sorted((one.subject, one.value, one.median, one.noise, one.count) for one in noises if one.is_far)
    assert sorted((one.subject, one.now, one.usual, one.noise, one.runs) for one in compared.shifted) == far
    assert [one[0] for one in far] == ["h100-a/n2"] * 2 + ["h100-a/n5"] * 2
