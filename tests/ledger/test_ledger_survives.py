"""Killed writers, crowds of writers, and files that are no ledgers."""

from __future__ import annotations

import random
import sqlite3
import time
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from assay.ledger.location import SqliteEntries
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Outcome, SuiteRun
from tests.ledger.forks import Forked

AT = "2026-11-21T12:00:00+00:00"


def glance_at(file: Path) -> list[LedgerEntry]:
    """Read a ledger as a verb does that only looks."""
    return SqliteEntries(file).entries()


def write_on(line: Connection, place: Any, name: str) -> None:
    """Append a pair of entries and a run, and acknowledge them, until killed."""
    ledger = Ledger.open(place)
    for number in count(1):
        ledger.append(*(LedgerEntry(f"{name}-{number}-{half}", AT, "hold", "n1") for half in "ab"))
        judged = [Outcome("c", f"a/n{i}", f"n{i}", "pass") for i in range(3)]
        ledger.record(SuiteRun(f"{name}-{number}", AT), judged)
        line.send(number)


def race(line: Connection, place: Any, node: str) -> None:
    """Open the ledger; once told, append sixty entries and say how many of them were new."""
    ledger = Ledger.open(place)
    line.send("ready")
    line.recv()
    line.send(sum(ledger.append(LedgerEntry(f"e{i}", AT, "hold", node))[0] for i in range(60)))


def count_new(racers: list[Forked]) -> int:
    """Let racers start when all are ready; return how many entries were new to them."""
    assert [racer.hear() for racer in racers] == ["ready"] * len(racers)
    for racer in racers:
        racer.say()
    new = sum(racer.hear() for racer in racers)
    assert [racer.end() for racer in racers] == [0] * len(racers)
    return new


def test_a_writer_killed_at_any_moment_loses_nothing_acknowledged_and_breaks_nothing(place):
    chance = random.Random(79)
    Ledger.open(place).close()
    for turn in range(3):
        writer = Forked(write_on, place, f"w{turn}")
        acknowledged = [writer.hear()]
        time.sleep(chance.uniform(0, 0.2))
        acknowledged += writer.kill()
        ledger = Ledger.open(place)
        mine = [entry.id for entry in ledger.entries() if entry.id.startswith(f"w{turn}-")]
        assert len(mine) in (2 * len(acknowledged), 2 * len(acknowledged) + 2), "an append is whole or not there"
        runs = [run.id for run in ledger.iter_runs() if run.id.startswith(f"w{turn}-")]
        assert len(runs) in (len(acknowledged), len(acknowledged) + 1)
        assert all(len(ledger.outcomes(run)) == 3 for run in runs[-2:]), "a run is whole or not there"
        ledger.close()


def test_two_processes_that_append_the_same_ids_make_one_row_each(place):
    Ledger.open(place).close()
    racers = [Forked(race, place, name) for name in ("left", "right")]
    assert count_new(racers) == 60, "each id was new to exactly one of them"
    entries = Ledger.open(place).entries()
    assert sorted(entry.id for entry in entries) == sorted(f"e{i}" for i in range(60))
    assert [entry.seq for entry in entries] == sorted(entry.seq for entry in entries)


def test_processes_that_open_a_new_ledger_at_once_found_it_once(tmp_path):
    racers = [Forked(race, tmp_path / "ledger.sqlite", "n") for _ in range(3)]
    assert count_new(racers) == 60


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    stranger = tmp_path / "ledger.sqlite"
    stranger.write_text("Dear diary, today the fans were loud. " * 40)
    before = stranger.read_bytes()
    for look in (Ledger.open, glance_at):
        with pytest.raises(AssayError, match="no ledger") as told:
            look(stranger)
        assert str(stranger) in str(told.value)
    assert stranger.read_bytes() == before


def test_a_database_of_something_else_is_refused(tmp_path):
    stranger = tmp_path / "ledger.sqlite"
    sqlite3.connect(stranger).executescript("CREATE TABLE recipes (name TEXT)")
    for look in (Ledger.open, glance_at):
        with pytest.raises(AssayError, match="recipes"):
            look(stranger)


def test_a_ledger_of_another_version_is_refused(tmp_path):
    where = tmp_path / "ledger.sqlite"
    Ledger.open(where).close()
    other = sqlite3.connect(where)
    other.executescript("DROP TRIGGER assay_ledger_no_update; UPDATE assay_ledger SET version = 7")
    other.close()
    for look in (Ledger.open, glance_at):
        with pytest.raises(AssayError, match="schema version 7"):
            look(where)


def test_a_locked_ledger_says_so_after_its_patience_and_works_again_when_it_is_free(tmp_path):
    where = tmp_path / "ledger.sqlite"
    ledger = Ledger.open(where, patience_s=0.1)
    bully = sqlite3.connect(where, isolation_level=None)
    bully.execute("BEGIN IMMEDIATE")
    with pytest.raises(AssayError, match="locked"):
        ledger.append(LedgerEntry("a", AT, "hold"))
    assert ledger.entries() == [], "reading goes on"
    bully.execute("ROLLBACK")
    assert ledger.append(LedgerEntry("a", AT, "hold")) == [True]


def test_a_server_that_does_not_answer_is_named_without_its_password():
    with pytest.raises(AssayError, match=r"127\.0\.0\.1") as told:
        Ledger.open("postgresql://ann:hunter2@127.0.0.1:1/fleet", patience_s=1)
    assert "hunter2" not in str(told.value)


def test_another_kind_of_database_is_no_place_for_a_ledger():
    with pytest.raises(AssayError, match="mysql"):
        Ledger.open("mysql://ann:hunter2@db/fleet")


def test_a_place_that_cannot_be_written_is_trouble_and_no_traceback():
    with pytest.raises(AssayError):
        Ledger.open(Path("/proc/assay/ledger.sqlite"))


def test_a_glance_sees_what_the_ledger_holds_and_makes_nothing(tmp_path):
    where = tmp_path / "ledger.sqlite"
    assert glance_at(where) == []
    assert not where.exists()
    ledger = Ledger.open(where)
    ledger.append(LedgerEntry("a", AT, "hold", "n1", {"who": "ann", "reason": "45 °C"}))
    ledger.record(SuiteRun("r", AT), [Outcome("c", "a/n1", "n1", "pass")])
    assert glance_at(where) == ledger.entries()
