"""What history answers: when a verdict turned, what flaps, what moved more than it does by itself, how pools did."""

from __future__ import annotations

from datetime import timedelta

import pytest

from assay.ledger.history.queries import WINDOW_RUNS, OutcomeQuery, query_flaky_checks, query_turns
from tests.ledger.history.recorded_history import query_outcomes

OTHER = "suites/production/test_nic.py::test_link"


def a_past(reports, said, *verdicts: str, **more) -> list[str]:
    """Keep a run a day with these verdicts, the last of them today; return the runs."""
    ago = range(len(verdicts) - 1, -1, -1)
    return [
        reports.kept([said(verdict, evidence=f"e{days}", **more)], timedelta(days=days))
        for days, verdict in zip(ago, verdicts, strict=True)
    ]


def test_only_what_turned_is_told_with_what_it_was(reports, said) -> None:
    runs = a_past(reports, said, "pass", "pass", "fail", "fail", "pass")
    with reports.asked() as history:
        found = query_turns(history, days=30)
    assert [(one.run, one.was, one.verdict) for one in found] == [(runs[2], "pass", "fail"), (runs[4], "fail", "pass")]
    assert found[0].reason == "it is a fail"


def test_a_check_that_failed_at_first_is_told_and_one_that_passed_is_not(reports, said) -> None:
    reports.kept([said("fail"), said("pass", node="n2"), said("error", node="n3")])
    with reports.asked() as history:
        assert [(one.node, one.was, one.verdict) for one in query_turns(history, days=1)] == [
            ("n1", "", "fail"),
            ("n3", "", "error"),
        ]


@pytest.mark.parametrize(
    ("of", "wanted"),
    [
        (OutcomeQuery(nodes=["n2"]), {"n2"}),
        (OutcomeQuery(subjects=["h100-a/n3/gpu0"]), {"n3"}),
        (OutcomeQuery(checks=[OTHER]), {"n4"}),
        (OutcomeQuery(pattern="test_li*"), {"n4"}),
        (OutcomeQuery(pattern="suites/production/test_gpu*"), {"n1", "n2", "n3"}),
        (OutcomeQuery(nodes=["n1", "n4"], pattern="*temperature"), {"n1"}),
        (OutcomeQuery(nodes=["n9"]), set()),
    ],
)
def test_only_what_is_asked_for_is_told(reports, said, of, wanted) -> None:
    reports.kept([*(said(node=node) for node in ("n1", "n2", "n3")), said(node="n4", check=OTHER)])
    with reports.asked() as history:
        assert {one.outcome.node for one in query_outcomes(history, of, days=1)} == wanted


def test_days_that_are_further_back_are_not_looked_at(reports, said) -> None:
    a_past(reports, said, "fail", "pass", "fail")
    with reports.asked() as history:
        assert len(query_outcomes(history, days=1)) == 2
        assert len(query_outcomes(history, days=0)) == 1


def test_without_any_history_there_is_nothing_to_tell(reports) -> None:
    with reports.asked() as history:
        assert (query_outcomes(history, days=90), query_turns(history, days=90), query_flaky_checks(history)) == (
            [],
            [],
            [],
        )


def test_what_turns_again_and_again_flaps(reports, said) -> None:
    a_past(reports, said, "pass", "fail", "pass", "fail", "pass")
    with reports.asked() as history:
        (flap,) = query_flaky_checks(history)
    assert (flap.times, flap.judged, flap.verdict) == (4, 5, "pass")


def test_failing_once_and_recovering_is_no_flapping(reports, said) -> None:
    a_past(reports, said, "pass", "fail", "fail", "pass", "pass")
    with reports.asked() as history:
        assert query_flaky_checks(history) == []


def test_what_could_not_be_told_turns_nothing(reports, said) -> None:
    a_past(reports, said, "fail", "error", "fail", "skip", "fail", "error", "pass", "skip", "fail")
    with reports.asked() as history:
        assert query_flaky_checks(history) == []


def test_flapping_is_of_the_last_judgements_only(reports, said) -> None:
    a_past(reports, said, "pass", "fail", "pass", "fail", *["pass"] * (WINDOW_RUNS - 2))
    with reports.asked() as history:
        assert query_flaky_checks(history) == []
