"""When a verdict flaps: one rule, whether runs' files or history is asked."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.ledger.history.append import append_run as keep_in_history
from assay.ledger.history.flaky import MIN_FLAKY_TURNS, WINDOW_RUNS, count_flaky_turns
from assay.ledger.history.flaky import query_flaky_checks as flaps_of_history
from assay.ledger.history.parquet_files import history_folder
from assay.ledger.history.queries import OutcomeHistory
from assay.validate.results.comparison_summary import collect_differences
from assay.validate.results.flaky_outcomes import FLAKY_CANDIDATE_KINDS
from assay.validate.results.run_comparison import compare_runs

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


@pytest.fixture(scope="module")
def both(keep_in, of, tmp_path_factory):
    """Runs of twelve nodes, judged by chance and not all of them in each, told from their files and by history."""
    home = tmp_path_factory.mktemp("both")
    keep, chance, files = keep_in(home), random.Random(7), []
    for run in range(14):
        outcomes = []
        for node in range(12):
            verdict = chance.choice(["pass", "pass", "fail", "error"]) if node % 2 else "pass"
            document = "" if node == 3 else f"{node}-{run - (run % 4 == 3)}"  # now and then the same again
            if chance.random() < 0.8 or run > 11:
                judged = {"evidence": document, "evidence_at": "2026-11-21T00:00:00+00:00"}
                outcomes.append(of("heat", f"n{node}", verdict, **judged))
        files.append(keep(outcomes))
        keep_in_history(files[-1], history_folder(home / "reports"))
    with (
        compare_runs(files[-2], files[-1]) as comparison,
        OutcomeHistory(history_folder(home / "reports"), datetime(2026, 11, 22, tzinfo=UTC)) as history,
    ):
        yield collect_differences(comparison, files[:-1]), flaps_of_history(history)


def test_runs_and_history_agree_what_flaps(both):
    compared, flaps = both
    changed = {(one.check, one.subject) for one in compared.comparison.changes(*FLAKY_CANDIDATE_KINDS)}
    told = {(one.check, one.subject): (one.times, one.judged) for one in flaps}
    assert {(one.check, one.subject): (one.flips, one.runs) for one in compared.flaky} == {
        key: said for key, said in told.items() if key in changed
    }
    assert len(compared.flaky) > 2
