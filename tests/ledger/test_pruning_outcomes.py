"""Old outcomes go, the newest stay, and the ledger can be verified as before: no change hides behind a pruning."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.outcome import Measurement, Outcome, SuiteRun

START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = START + timedelta(days=40)


def outcomes(day: int) -> list[Outcome]:
    at = (START + timedelta(days=day)).isoformat()
    verdicts = {"a": "pass", "b": "fail" if day % 2 else "pass", "c": "error" if day == 1 else "pass"}
    return [
        Outcome(
            f"suites/x.py::test_{name}", "p/n1", "n1", verdict, f"{name} {day}" * (verdict != "pass"),
            evidence=f"{day:064}", evidence_at=at, measurements=(Measurement("m", float(day)),),
        )
        for name, verdict in verdicts.items()
    ]  # fmt: skip


def fill(ledger: Ledger) -> Ledger:
    for day in range(20):
        ledger.record(SuiteRun(f"run-{day:02}", (START + timedelta(days=day)).isoformat()), outcomes(day))
    return ledger


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger in a file that somebody may change."""
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    yield fill(ledger)
    ledger.close()


def changed(ledger: Ledger, statement: str) -> None:
    """Change the ledger as somebody would who may write to its file."""
    with closing(sqlite3.connect(ledger.file)) as database, database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
        for name in names:
            database.execute(f"DROP TRIGGER {name}")
        database.execute(statement)


def test_old_outcomes_go_and_what_decisions_rest_on_stays(ledger):
    fill(ledger)
    before = START + timedelta(days=10)
    latest = ledger.latest()
    assert ledger.count_prunable(before) == 30 - 1  # the error of day 1 is the newest of its kind
    assert ledger.prune_outcomes(before, "ann", NOW) == 29
    assert [len(ledger.outcomes(f"run-{day:02}")) for day in (0, 1, 9, 10, 19)] == [0, 1, 0, 3, 3]
    assert ledger.latest() == latest
    assert len([*ledger.iter_runs()]) == 20
    assert ledger.verify() == []
    (entry,) = ledger.entries(kinds=["outcomes.pruned"])
    assert (entry.body["deleted"], entry.body["through"], entry.body["who"]) == (29, 10, "ann")
    assert ledger.prune_outcomes(before, "ann", NOW) == 0
    ledger.record(SuiteRun("run-20", NOW.isoformat()), outcomes(39))
    assert ledger.prune_outcomes(NOW + timedelta(days=9), "ann", NOW) > 0
    assert len(ledger.outcomes("run-20")) == 3  # the last run always stays
    assert ledger.verify() == []


def test_nothing_can_be_deleted_beside_it(local):
    local.prune_outcomes(START + timedelta(days=10), "ann", NOW)
    with closing(sqlite3.connect(local.file)) as database:
        for table in ("outcome", "measurement", "entry", "run"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                database.execute(f"DELETE FROM {table}")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE outcome SET verdict = 0 WHERE run = 2",
        "DELETE FROM outcome WHERE run = 2",
        "DELETE FROM outcome WHERE run = 15",
        "UPDATE measurement SET value = 7 WHERE outcome = (SELECT seq FROM outcome WHERE run = 2)",
        "DELETE FROM entry WHERE kind = 'outcomes.pruned'",
        "UPDATE entry SET body = replace(body, '\"deleted\"', '\"Deleted\"')",
    ],
)
def test_whoever_changes_what_is_left_is_found(local, change):
    local.prune_outcomes(START + timedelta(days=10), "ann", NOW)
    assert local.verify() == []
    changed(local, change)
    assert local.verify()


def test_a_ledger_that_was_changed_is_not_pruned(local):
    changed(local, "UPDATE outcome SET verdict = 0 WHERE run = 2")
    with pytest.raises(AssayError, match="cannot be verified"):
        local.prune_outcomes(START + timedelta(days=10), "ann", NOW)
    assert len(local.outcomes("run-00")) == 3


@pytest.mark.slow
def test_the_file_of_a_pruned_ledger_gets_smaller(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    for day in range(6):
        at = (START + timedelta(days=day)).isoformat()
        many = [Outcome("suites/x.py::test", f"p/n{number}", f"n{number}", "pass") for number in range(2000)]
        ledger.record(SuiteRun(f"run-{day}", at), many)
    ledger.append()
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = (tmp_path / "ledger.sqlite").stat().st_size
    assert ledger.prune_outcomes(START + timedelta(days=5), "ann", NOW) == 5 * 2000
    assert ledger.verify() == []
    ledger.close()
    assert (tmp_path / "ledger.sqlite").stat().st_size < before / 2


def test_a_pruned_ledger_that_another_process_reads_keeps_its_file_and_works(tmp_path: Path) -> None:
    ledger = fill(Ledger.open(tmp_path / "ledger.sqlite", patience_s=0.2))
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM outcome").fetchone()
        assert ledger.prune_outcomes(START + timedelta(days=10), "ann", NOW) == 29
        reader.execute("ROLLBACK")
    assert ledger.verify() == []
    ledger.close()


def test_the_evidence_that_is_named_is_that_of_the_outcomes_that_stay(ledger):
    fill(ledger)
    before = START + timedelta(days=10)
    every, staying = set(ledger.iter_named_evidence(None)), set(ledger.iter_named_evidence(before))
    assert every == {f"{day:064}" for day in range(20)}
    assert staying == {f"{day:064}" for day in (1, *range(10, 20))}  # the error of day 1 is the newest of its kind
    ledger.prune_outcomes(before, "ann", NOW)
    (entry,) = ledger.entries(kinds=["outcomes.pruned"])
    assert set(ledger.iter_named_evidence(None)) == staying | {entry.body["digest"]}
