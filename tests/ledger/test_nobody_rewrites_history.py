"""Whatever another hand does to a ledger (triggers dropped, files edited), the hash chains tell, and name the place."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from assay.ledger.hash_chain import HASHED_FIELDS, HASHED_OUTCOME_FIELDS
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Measurement, Outcome, SuiteRun
from tests.ledger.forks import Forked

AT = "2026-11-21T12:00:00+00:00"
HOT = Measurement("gpu_temperature", 91.0, "°C", at_most=90.0, source="specs/nodes/hgx-h100.yaml:41")
FREE = {
    "sqlite": "SELECT 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT DISTINCT 'DROP TRIGGER ' || trigger_name || ' ON ' || event_object_table "
    "FROM information_schema.triggers WHERE trigger_schema = 'public' "
    "UNION SELECT 'DROP TRIGGER ' || relname || '_append_only ON ' || quote_ident(relname) FROM pg_class "
    "WHERE relname IN ('entry', 'run', 'text', 'outcome', 'measurement', 'assay_ledger')",
}


def write_on(line, place, name):
    ledger, number = Ledger.open(place), 0
    while True:
        number += 1
        ledger.append(*(LedgerEntry(f"{name}-{number}-{i}", AT, "hold") for i in range(20)))
        told = [Outcome("c", f"a/n{i}", f"n{i}", "fail", f"hot {number}") for i in range(9)]
        ledger.record(SuiteRun(f"{name}-{number}", AT), told)
        line.send(number)


def entry(number: int, kind: str = "hold") -> LedgerEntry:
    return LedgerEntry(f"e{number}", AT, kind, f"n{number}", {"who": "ann", "reason": f"fans, 45 °C, {number}"})


def told(number: int, verdict: str = "pass") -> list[Outcome]:
    reason = "" if verdict == "pass" else f"too hot, {number}"
    plain = {"verdict": verdict, "reason": reason, "evidence_at": AT}
    numbers = (HOT, Measurement("fans", number))
    return [Outcome("heat", f"a/n{n}", f"n{n}", measurements=numbers, **plain) for n in range(3)]  # type: ignore[arg-type]


@pytest.fixture
def history(tmp_path: Path) -> Ledger:
    return written(Ledger.open(tmp_path / "ledger.sqlite"))


def written(ledger: Ledger) -> Ledger:
    """Write eight entries and three runs of three outcomes each, and take the guards away."""
    ledger.append(*map(entry, range(1, 5)))
    for number, verdict in enumerate(("pass", "fail", "pass"), 1):
        ledger.record(SuiteRun(f"r{number}", AT, phases=("production",), who="ann"), told(number, verdict))
        ledger.append(entry(number + 4))
    ledger.append(entry(8))
    with ledger._engine.begin() as connection:
        for (statement,) in connection.execute(text(FREE[connection.dialect.name])).all():
            connection.execute(text(statement))
    return ledger


def tamper(ledger: Ledger, *deeds: str) -> list[str]:
    with ledger._engine.begin() as connection:
        for deed in deeds:
            connection.execute(text(deed))
    return ledger.verify()


def test_a_ledger_that_nobody_touched_is_whole(ledger):
    assert ledger.verify() == []
    ledger.append(*map(entry, range(700)))
    ledger.append(entry(3), entry(900))
    ledger.record(SuiteRun("empty", AT), [])
    ledger.record(SuiteRun("r", AT), told(1))
    ledger.record(SuiteRun("r", AT), told(2, "fail"))
    assert ledger.verify() == []
    assert {name: seq for name, (seq, _) in ledger.chain_ends().items()} == {"entry": 701, "run": 2}


EDITS = ["id = 'e99'", "at = '2026-11-21T12:00:01+00:00'", "kind = 'release'", "node = 'n9'", "body = '{}'"]


@pytest.mark.parametrize("edit", [*EDITS, "hash = '0'"])
def test_an_entry_that_was_edited_is_named(history, edit):
    found = tamper(history, f"UPDATE entry SET {edit} WHERE seq = 3")
    assert found[0].startswith("entry 3 (")
    assert "was changed" in found[0]


def test_an_entry_that_was_taken_out_is_named(history):
    assert "entry 3 is missing before entry 4 (hold of n4" in tamper(history, "DELETE FROM entry WHERE seq = 3")[0]


def test_entries_that_were_taken_out_and_renumbered_are_found(history):
    found = tamper(
        history,
        "DELETE FROM entry WHERE seq = 3",
        *(f"UPDATE entry SET seq = {seq - 1} WHERE seq = {seq}" for seq in range(4, 9)),
    )
    assert "entry 3 (hold of n4" in found[0]


@pytest.mark.parametrize("last", [1, 3])
def test_lines_that_were_taken_off_the_end_are_missed(history, last):
    assert tamper(history, f"DELETE FROM entry WHERE seq > {8 - last}") == [
        f"the chain ends with entry 8, not with entry {8 - last}, the last that is here"
    ]


def test_two_entries_that_were_swapped_are_found(history):
    found = tamper(
        history,
        "UPDATE entry SET seq = 99 WHERE seq = 3",
        "UPDATE entry SET seq = 3 WHERE seq = 4",
        "UPDATE entry SET seq = 4 WHERE seq = 99",
    )
    assert [line.partition(" (")[0] for line in found[:2]] == ["entry 3", "entry 4"]


def test_an_entry_that_was_put_in_at_the_end_is_found(history):
    put = "INSERT INTO entry (seq, id, at, kind, node, body, hash) VALUES (9, 'x', '', 'release', 'n1', '{}', 'abc')"
    assert "entry 9 (release of n1" in tamper(history, put)[0]


OF_A_RUN = {
    "verdict": "UPDATE outcome SET verdict = 0 WHERE seq = 4",
    "node": "UPDATE outcome SET node = node + 1 WHERE seq = 4",
    "run": "UPDATE outcome SET run = 1 WHERE seq = 4",
    "time": "UPDATE outcome SET measured_s = measured_s + 1 WHERE seq = 4",
    "words": "UPDATE text SET key = 'quite cool' WHERE key = 'too hot, 2'",
    "measured": "UPDATE measurement SET value = 20 WHERE outcome = 4 AND value > 90",
    "limit": "UPDATE measurement SET gauge = gauge - 1 WHERE outcome = 4 AND value > 90",
    "measured more": "INSERT INTO measurement (outcome, gauge, value) VALUES (4, 1, 3)",
    "measured less": "DELETE FROM measurement WHERE outcome = 4",
    "who": "UPDATE run SET who = 'bob' WHERE seq = 2",
    "digest": "UPDATE run SET digest = 'abc' WHERE seq = 2",
}


@pytest.mark.parametrize("what", OF_A_RUN)
def test_what_was_changed_of_a_run_is_named_with_its_run(history, what):
    found = tamper(history, OF_A_RUN[what])
    assert found
    assert "run 2 (r2" in found[0] or "run 3 (r3" in found[0]


def test_postgresql_tells_as_sqlite_does(postgres_place):
    whole = written(Ledger.open(postgres_place))
    assert whole.verify() == []
    found = tamper(whole, "UPDATE entry SET node = 'n9' WHERE seq = 3", OF_A_RUN["words"], OF_A_RUN["measured"])
    assert [line.partition(" (")[0] for line in found] == ["entry 3", "what run 2"]
    whole.close()


def test_outcomes_that_no_run_brought_are_found(history):
    put = "INSERT INTO text (key) VALUES ('as if')"
    assert "text that no run brought" in tamper(history, put)[0]


def test_a_verdict_that_stands_as_the_newest_and_is_not_is_found(history):
    found = tamper(history, "UPDATE newest SET outcome = 1 WHERE outcome = 7")
    assert found == [
        "outcome 1 stands as the newest of its kind and is not",
        "outcome 7 is the newest of its kind and does not stand as that",
    ]


def test_one_edit_is_one_problem_and_not_all_that_came_after_it(history):
    assert len(tamper(history, "UPDATE entry SET body = '{}' WHERE seq = 2")) == 1


def test_the_chain_goes_on_over_processes_that_are_killed_while_they_write(place):
    Ledger.open(place).close()
    for turn in range(3):
        writers = [Forked(write_on, place, f"w{turn}{n}") for n in range(2)]
        for writer in writers:
            writer.hear()
        time.sleep(0.05)
        for writer in writers:
            writer.kill()
    assert Ledger.open(place).verify() == []


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
LINES = st.lists(st.tuples(WORDS, WORDS, WORDS, st.dictionaries(WORDS, st.integers() | WORDS, max_size=2)), max_size=6)


@given(LINES, st.lists(st.integers(1, 3), max_size=3))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whatever_is_written_in_whatever_pieces_is_whole(tmp_path: Path, lines, pieces):
    file = tmp_path / "whole.sqlite"
    for path in tmp_path.glob("whole.sqlite*"):
        path.unlink()
    ledger = Ledger.open(file)
    entries = [LedgerEntry(str(number), at, kind, node, body) for number, (at, kind, node, body) in enumerate(lines)]
    for size in [*pieces, 99]:
        ledger.append(*entries[:size])
        entries = entries[size:]
    assert ledger.verify() == []
    ledger.close()


@pytest.mark.parametrize("table", ["run", "outcome", "text", "entry", "measurement"])
def test_a_column_that_a_later_version_adds_breaks_no_chain(history, table):
    added = tamper(history, f'ALTER TABLE "{table}" ADD COLUMN later INTEGER NOT NULL DEFAULT 7')
    assert added == []


def test_the_hashed_fields_of_this_version_are_frozen():
    """Whoever changes one of these breaks every ledger that exists: make a new version of the schema instead."""
    assert HASHED_FIELDS == {
        "entry": ("id", "at", "kind", "node", "body"),
        "run": (
            "id", "at", "phases", "nodes", "spec_commit", "dirty", "suite_hash", "who", "texts", "outcomes", "digest",
        ),
    }  # fmt: skip
    assert HASHED_OUTCOME_FIELDS == (
        "seq", "run", "measured_s", "check", "subject", "node", "verdict", "reason", "fault", "phases", "active",
        "evidence", "evidence_at", "basis", "judged_by", "micros",
    )  # fmt: skip
