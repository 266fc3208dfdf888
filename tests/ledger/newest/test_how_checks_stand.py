"""How checks stand: passes counted, and failures with the row since the last pass, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from assay.ledger.newest import counts
from assay.ledger.store import Ledger
from assay.model.outcome import Outcome, SuiteRun

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
DRIVER, BIOS, HEAT = "suites/z.py::test_driver", "suites/z.py::test_bios", "suites/p.py::test_heat"


def at(minute: int) -> str:
    return (START + timedelta(minutes=minute)).isoformat()


def tell(ledger: Ledger, minute: int, **reasons: str) -> None:
    """Record a run in which the driver of each node fails for a reason, or passes ("")."""
    told = [
        Outcome(check, f"a/{node}{part}", node, "fail" if reason and check == DRIVER else "pass",
                reason if check == DRIVER else "", evidence_at=at(minute), judged_by="h")
        for node, reason in reasons.items()
        for check, part in ((DRIVER, ""), (BIOS, "/gpu0"), (BIOS, "/gpu1"), (HEAT, ""))
    ]  # fmt: skip
    ledger.record(
        SuiteRun(f"run-{minute}", at(minute), spec_commit=f"c{minute}"), told, START + timedelta(minutes=minute)
    )


@pytest.fixture(params=["by node", "by check"])
def told(request, ledger: Ledger, monkeypatch) -> Ledger:
    """A ledger in which n1 failed, was mended and failed twice; n2 always failed; n3 always passed."""
    if request.param == "by check":
        monkeypatch.setattr(counts, "MANY_SUBJECTS", 0)
    for minute, first in enumerate(("driver 1", "", "driver 1", "driver 2", "driver 1")):
        tell(ledger, minute, n1=first, n2="driver 9", n3="")
    return ledger


def test_a_failure_comes_with_the_row_since_its_last_pass(told):
    first, second = sorted(told.standings([DRIVER, BIOS]).failures, key=lambda one: one.recorded.outcome.node)
    assert first.recorded.run == "run-4"
    assert first.row == ((at(2), "driver 1"), (at(3), "driver 2"))
    assert (first.passed_s, first.passed_revision) == ((START + timedelta(minutes=1)).timestamp(), "c1")
    assert second.row == ((at(0), "driver 9"),)
    assert (second.passed_s, second.passed_revision) == (0, "")


def test_passes_are_counted_with_what_judged_them(told):
    passes = told.standings([DRIVER, BIOS]).passes
    found = {(one.node, one.check): (one.subjects, one.judged_by, one.seen_at, one.revision) for one in passes}
    assert found == {
        ("n3", DRIVER): (1, "h", at(4), "c4"),
        **{(node, BIOS): (2, "h", at(4), "c4") for node in ("n1", "n2", "n3")},
    }


def test_the_standings_of_some_nodes_are_read_alone(told):
    found = told.standings([DRIVER], ["n1", "n3", "n9"])
    assert ([one.node for one in found.passes], [one.recorded.outcome.node for one in found.failures]) == (
        ["n3"],
        ["n1"],
    )
    assert told.standings([DRIVER], ["n9"]) == counts.CheckStandings()
    assert len(told.standings([DRIVER], [f"n{number}" for number in range(1000)]).failures) == 2


def test_checks_that_nobody_ran_stand_nowhere(ledger):
    assert ledger.standings([DRIVER]) == counts.CheckStandings()
    assert ledger.standings([]) == counts.CheckStandings()
