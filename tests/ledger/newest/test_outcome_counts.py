"""What metrics read of outcomes, on each kind of database: counts of new runs, and the oldest passes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from assay.ledger.store import Ledger
from assay.model.outcome import CheckVerdict, Outcome, SuiteRun

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
GPUS, FANS = "suites/production/test_gpu.py::test_gpus", "suites/production/test_host.py::test_fans"


def record(ledger: Ledger, run: str, *told: tuple[str, str, CheckVerdict, int]) -> None:
    """Record a run of (check, node, verdict, age of the evidence in hours)."""
    outcomes = [
        Outcome(check, f"a/{node}", node, verdict, "why", evidence_at=(NOW - timedelta(hours=age)).isoformat())
        for check, node, verdict, age in told
    ]
    ledger.record(SuiteRun(run, NOW.isoformat()), outcomes, NOW)


def test_only_runs_after_a_number_are_counted(ledger: Ledger) -> None:
    assert ledger.count_outcomes(0).runs == 0
    record(ledger, "r1", (GPUS, "n1", "pass", 9), (GPUS, "n2", "pass", 9), (FANS, "n1", "fail", 9))
    first = ledger.count_outcomes(0)
    assert (first.runs, first.last, first.last_at) == (1, ledger.outcomes_head(), NOW.isoformat())
    assert first.outcomes == {(GPUS, "pass"): 2, (FANS, "fail"): 1}
    record(ledger, "r2", (GPUS, "n1", "error", 1))
    assert ledger.count_outcomes(first.last).outcomes == {(GPUS, "error"): 1}
    assert ledger.count_outcomes(ledger.outcomes_head()).last == ledger.outcomes_head()


def test_the_oldest_pass_of_a_node_is_over_its_checks_and_each_check_counts_with_its_newest(ledger: Ledger) -> None:
    record(ledger, "r1", (GPUS, "n1", "pass", 9), (FANS, "n1", "pass", 5), (GPUS, "n2", "fail", 5))
    both = {GPUS, FANS}
    assert ledger.oldest_passes(both) == {"n1": (NOW - timedelta(hours=9)).timestamp()}
    record(ledger, "r2", (GPUS, "n1", "pass", 1), (GPUS, "n2", "pass", 2))
    hours = {"n1": 5, "n2": 2}
    assert ledger.oldest_passes(both) == {node: (NOW - timedelta(hours=age)).timestamp() for node, age in hours.items()}
    assert set(ledger.oldest_passes(both, ["n2"])) == {"n2"}
    assert ledger.oldest_passes({FANS}).keys() == {"n1"}
    assert ledger.oldest_passes(set()) == ledger.oldest_passes({"suites/none.py::test_none"}) == {}
