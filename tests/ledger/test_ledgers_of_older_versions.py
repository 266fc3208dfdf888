"""A ledger that an older assay wrote is upgraded when it is opened for writing, and keeps all that it held."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, inspect, text

from assay.ledger.errors import SCHEMA_VERSION, UPGRADED_VERSIONS, LedgerReadWarning
from assay.ledger.location import read_all_entries
from assay.ledger.store import Ledger
from assay.model.evidence import UNKNOWN_BASIS, EvidenceBasis
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Outcome, SuiteRun
from tests.support.forked_assay import run_assay
from tests.support.real_postgres import new_database

RECORDINGS = Path(__file__).parent / "recordings"
AT = "2026-11-22T12:00:00+00:00"
RUN = SuiteRun("20261122T120000.000-00000a", AT, ("production",), ("n0001",), "c0ffee", False, "5" * 64, "bo")


@pytest.fixture
def old(place: Path | str) -> Path | str:
    """A ledger as an assay of schema 4 wrote it: two entries, and two runs with two outcomes each."""
    return make_old(place, 4)


def make_old(place: Path | str, schema: int) -> Path | str:
    """Make a ledger of an older schema from its recording."""
    if isinstance(place, Path):
        place.parent.mkdir(parents=True)
        with sqlite3.connect(place) as database:
            database.executescript((RECORDINGS / f"schema-{schema}.sqlite.sql").read_text())
        database.close()
    else:
        engine = create_engine(place.replace("postgresql:", "postgresql+psycopg:"))
        with engine.begin() as connection:
            connection.connection.cursor().execute((RECORDINGS / f"schema-{schema}.postgresql.sql").read_text())
        engine.dispose()
    return place


def test_an_old_ledger_is_upgraded_when_it_is_opened_for_writing_and_nothing_is_lost(old):
    entries = read_all_entries(old) if isinstance(old, Path) else []
    ledger = Ledger.open(old)
    assert [entry.id for entry in ledger.entries()] == ["e1", "e2"]
    assert not entries or entries == ledger.entries()
    latest = {one.outcome.check.rpartition("::")[2]: one.outcome for one in ledger.latest("n0001")}
    assert {check: one.verdict for check, one in latest.items()} == {"test_heat": "pass", "test_power": "fail"}
    assert latest["test_heat"].measurements[0].value == 63.5
    assert {(one.basis, one.judged_by) for one in latest.values()} == {(UNKNOWN_BASIS, "")}
    assert ledger.verify() == []
    ledger.close()


def test_a_ledger_of_schema_5_is_upgraded_and_goes_on_with_rows_for_several_subjects(place):
    ledger = Ledger.open(make_old(place, 5))
    before = ledger.latest()
    assert [(one.outcome.subject, one.outcome.verdict) for one in before] == [
        ("a/n0001/gpu0", "pass"),
        ("a/n0001/gpu1", "pass"),
        ("a/n0001", "fail"),
    ]
    assert [len(ledger.outcomes(run.id)) for run in ledger.iter_runs()] == [3, 3]
    assert [one.outcome.measurements[0].value for one in before[:2]] == [62.5, 63.5]
    assert {(one.outcome.basis, one.outcome.judged_by) for one in before} == {(EvidenceBasis(2, "boot-1"), "cd" * 32)}
    assert ledger.verify() == []
    told = [replace(one.outcome, evidence_at=AT) for one in before]
    assert ledger.record(RUN, told)
    assert [one.outcome for one in ledger.latest()] == [one.outcome for one in ledger.outcomes(RUN.id)] == told
    assert ledger.verify() == []
    with ledger._engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM outcome WHERE numbers <> ''")).scalar() == 1
        assert connection.execute(text("SELECT count(*) FROM newest")).scalar() == 2, "of the GPUs and of the node"
    ledger.close()


def test_an_upgraded_ledger_goes_on(old):
    ledger = Ledger.open(old)
    ledger.append(LedgerEntry("e3", AT, "hold", "n0001", {"who": "bo", "reason": "r", "until": ""}))
    basis = EvidenceBasis(3, "boot-1")
    told = Outcome("suites/a.py::test_a", "a/n0001", "n0001", "pass", basis=basis, judged_by="abc", evidence_at=AT)
    assert ledger.record(RUN, [told])
    ledger.close()
    again = Ledger.open_for_reading(old)
    assert {(one.outcome.basis, one.outcome.judged_by) for one in again.latest("n0001")} == {
        (UNKNOWN_BASIS, ""),
        (basis, "abc"),
    }
    assert again.verify() == []
    again.close()


@pytest.mark.parametrize("change", ["verdict = 0", "reason = reason + 1", "basis = 1, judged_by = 1"])
def test_an_outcome_of_before_the_upgrade_is_still_covered_by_its_hash(old, change):
    ledger = Ledger.open(old)
    with ledger._engine.begin() as connection:
        for trigger in ("DROP TRIGGER outcome_no_update",) if isinstance(old, Path) else ():
            connection.execute(text(trigger))
        if not isinstance(old, Path):
            connection.execute(text("ALTER TABLE outcome DISABLE TRIGGER USER"))
        connection.execute(text(f"UPDATE outcome SET {change} WHERE seq = 2"))
    assert ledger.verify()
    ledger.close()


def test_the_ledger_stays_append_only_after_the_upgrade(old):
    ledger = Ledger.open(old)
    for table in ("assay_ledger", "outcome", "entry"):
        column = "version" if table == "assay_ledger" else "seq"
        with pytest.raises(Exception, match="append-only"), ledger._engine.begin() as connection:
            connection.execute(text(f"UPDATE {table} SET {column} = 9"))
    ledger.close()


@pytest.mark.parametrize("schema", UPGRADED_VERSIONS)
def test_an_old_ledger_is_read_as_it_is_and_stays_so(place, schema):
    make_old(place, schema)
    with pytest.warns(LedgerReadWarning, match="an older assay wrote this ledger; it was read from a copy"):
        reader = Ledger.open_for_reading(place)
    told = reader.entries(), [*reader.iter_runs()], reader.latest(), reader.chain_ends()
    assert reader.verify() == []
    reader.close()
    assert read_version(place) == schema
    upgraded = Ledger.open(place)
    assert (upgraded.entries(), [*upgraded.iter_runs()], upgraded.latest(), upgraded.chain_ends()) == told
    assert told[0]
    assert told[2]
    upgraded.close()


def read_version(place: Path | str) -> int:
    engine = create_engine(f"sqlite:///{place}" if isinstance(place, Path) else place.replace(":", "+psycopg:", 1))
    with engine.connect() as connection:
        version: int = connection.execute(text("SELECT version FROM assay_ledger")).scalar_one()
    engine.dispose()
    return version


@pytest.mark.parametrize("schema", UPGRADED_VERSIONS)
def test_an_upgraded_ledger_has_the_tables_and_triggers_of_a_new_one(place, schema, request):
    other = (
        place.parent / "new.sqlite" if isinstance(place, Path) else new_database(request.getfixturevalue("postgres"))
    )
    found = []
    for where in (make_old(place, schema), other):
        ledger = Ledger.open(where)
        with ledger._engine.connect() as connection:
            found.append(describe_schema(connection))
        ledger.close()
    assert found[0] == found[1]


def describe_schema(connection: Connection) -> Any:
    """Return columns, indexes and triggers of each table."""
    seen = inspect(connection)
    if connection.dialect.name == "sqlite":
        triggers = "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'"
    else:
        triggers = "SELECT trigger_name, event_object_table, action_statement FROM information_schema.triggers"
    tables = {
        table: (
            sorted((one["name"], str(one["type"]), one["nullable"]) for one in seen.get_columns(table)),
            sorted((str(one["name"]), one["column_names"]) for one in seen.get_indexes(table)),
        )
        for table in seen.get_table_names()
    }
    return tables, {tuple(row) for row in connection.execute(text(triggers))}


def test_a_second_process_finds_the_ledger_upgraded(old):
    first, second = Ledger.open(old), Ledger.open(old)
    assert [len(one.entries()) for one in (first, second)] == [2, 2]
    first.close()
    second.close()


def test_a_schema_4_ledger_of_a_later_commit_that_has_the_columns_is_upgraded_too(tmp_path):
    where = tmp_path / "ledger.sqlite"
    Ledger.open(where).close()
    with sqlite3.connect(where) as database:
        database.executescript("DROP TRIGGER assay_ledger_no_update; UPDATE assay_ledger SET version = 4;")
        database.executescript(
            "CREATE TRIGGER assay_ledger_no_update BEFORE UPDATE ON assay_ledger "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        )
    database.close()
    Ledger.open(where).close()
    with sqlite3.connect(where) as database:
        assert database.execute("SELECT version FROM assay_ledger").fetchall() == [(SCHEMA_VERSION,)]
    database.close()


def test_verbs_read_an_old_ledger_and_say_how_it_is_upgraded(tmp_path, old_file):
    for folder in (".assay", "inventory"):
        (tmp_path / folder).mkdir()
    shutil.copy(old_file, tmp_path / ".assay/ledger.sqlite")
    done = run_assay("ledger", "verify", "--fleet", tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stdout[:35]) == (0, "the ledger is unchanged: 2 entries,")
    assert "assay ledger upgrade" in done.stderr
    upgraded = run_assay("ledger", "upgrade", "--fleet", tmp_path, cwd=tmp_path)
    assert (upgraded.returncode, upgraded.stdout[:27]) == (0, "the ledger has schema versi")
    assert run_assay("ledger", "verify", "--fleet", tmp_path, cwd=tmp_path).stderr == ""


@pytest.fixture
def old_file(tmp_path: Path) -> Path:
    """The same, as a file."""
    with sqlite3.connect(tmp_path / "old.sqlite") as database:
        database.executescript((RECORDINGS / "schema-4.sqlite.sql").read_text())
    database.close()
    return tmp_path / "old.sqlite"
