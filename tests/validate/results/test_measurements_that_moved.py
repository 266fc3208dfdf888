"""Measurements that moved more than they move by themselves; where that is not known, nothing is claimed."""

from __future__ import annotations

import random

import pytest

from assay.ledger.history.flaky import MIN_VALUES, NOISE_FACTOR, WINDOW_RUNS
from assay.model.outcome import Measurement
from assay.validate.results.run_comparison import compare_runs
from assay.validate.results.shifts import find_shifts


@pytest.fixture
def found(keep, of):
    """Return what moved in the last of runs; `values(node, run)` is what is measured."""

    def of_runs(values, number, evidence=lambda node, run: f"{node}-{run}"):
        files = []
        for run in range(number):
            outcomes = []
            for node in range(6):
                seen = Measurement("gpu_temperature", values(node, run), "°C", None, 85.0, "specs/x.yaml:3")
                about = {
                    "measurements": (seen,),
                    "evidence": evidence(node, run),
                    "evidence_at": "2026-11-21T00:00:00Z",
                }
                outcomes.append(of("heat", f"n{node}", **about))
            files.append(keep(outcomes))
        with compare_runs(files[-2], files[-1]) as comparison:
            return find_shifts(comparison, files[:-1])

    return of_runs


def noisy(node: int, run: int) -> float:
    """Return a temperature that differs from node to node, and by a degree from run to run."""
    return round(40 + 3 * node + random.Random(f"{node} {run}").uniform(-1, 1), 1)


def test_what_moved_far_beyond_its_noise_is_told(found):
    (one,) = found(lambda node, run: noisy(node, run) + 15 * (node == 2 and run == 8), 9)
    assert (one.subject, one.name, one.runs) == ("h100-a/n2", "gpu_temperature", 8)
    assert one.now - one.was > NOISE_FACTOR * one.noise
    assert "°C" in one.line
    assert "in 8 runs before" in one.line


def test_noise_is_not_told(found):
    assert found(noisy, 9) == []


def test_too_few_runs_claim_nothing(found):
    assert found(lambda node, run: noisy(node, run) + 50 * (run == MIN_VALUES - 1), MIN_VALUES) == []


def test_a_number_that_never_moved_has_no_noise_and_nothing_is_claimed(found):
    assert found(lambda node, run: 16.0 if run < 8 else 8.0, 9) == []


def test_where_one_never_moved_what_is_usual_for_others_counts(found):
    def steady(node: int, run: int) -> float:
        return noisy(node, run) if node else 50.0 + 20 * (run == 8)

    assert [one.subject for one in found(steady, 9)] == ["h100-a/n0"]


def test_the_same_evidence_judged_again_is_no_further_measurement(found):
    def jump(node: int, run: int) -> float:
        return noisy(node, min(run, 1)) + 50 * (run == 8)

    assert found(jump, 9, evidence=lambda node, run: f"{node}-{min(run, 1)}") == []


def test_what_moved_and_stayed_there_moved_once(found):
    assert found(lambda node, run: noisy(node, run) + 15 * (node == 2 and run >= 7), 9) == []


def test_numbers_that_no_document_tells_are_each_by_themselves(found):
    def jump(node: int, run: int) -> float:
        return noisy(node, run) + 15 * (node == 2 and run == 8)

    assert [one.runs for one in found(jump, 9, evidence=lambda node, run: "")] == [8]


def test_what_was_measured_long_ago_does_not_count(found):
    (one,) = found(lambda node, run: noisy(node, run) + 30 * (run < 4) + 15 * (node == 2 and run == 15), 16)
    assert (one.runs, one.usual) == (WINDOW_RUNS, pytest.approx(46, abs=1))
