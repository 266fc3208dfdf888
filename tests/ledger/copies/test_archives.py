"""Old entries move into an archive: states stay the same, the chain holds, and whoever changes either is found."""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from sqlalchemy import text
from typer.testing import CliRunner

from assay.act.schedules.due_slots import SLOTS
from assay.cli.app import app
from assay.decide.state.node_projection import project_node_states
from assay.ledger.copies import archive as entry_archive
from assay.ledger.copies import backup
from assay.ledger.copies.archive import ARCHIVABLE_KINDS, ArchivedHistory, check_archives, find_archived_history
from assay.ledger.copies.seal import make_seal
from assay.ledger.copies.sealing import find_contradictions
from assay.ledger.errors import BrokenLedgerError
from assay.ledger.location import read_all_entries
from assay.ledger.store import Ledger
from assay.model.entries.registry import CONTENT_CLASSES
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from tests.ledger.forgers import drop_guards
from tests.support.places import ROOT

START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = START + timedelta(days=40)
CUT = START + timedelta(days=10)
RECORDED = json.loads((ROOT / "tests/data/recorded_entries.json").read_text())


def make_entries(days: int = 20) -> Iterator[LedgerEntry]:
    """Yield what a fleet of one node writes in so many days: slots, of which one never ended, failed observations."""
    body = {"pool": "p", "state": "production", "serial": "S", "reason": "r", "place": ""}
    yield LedgerEntry("n", START.isoformat(), "node.enrolled", "n1", body)
    yield LedgerEntry("h", START.isoformat(), "hold", "n1", {"who": "ann", "reason": "röt"})
    for day in range(days):
        at = (START + timedelta(days=day)).isoformat()
        slot = {"schedule": "daily", "part": "p", "does": "x", "slot": at, "attempt": 1}
        yield LedgerEntry(f"b{day}", at, "schedule.begun", "", slot)
        if day != 3:
            yield LedgerEntry(f"r{day}", at, "schedule.ran", "", {**slot, "ended": "done", "reason": "", "nodes": day})
        yield LedgerEntry(f"o{day}", at, "observe.failed", "n1", {"channel": "ssh", "reason": "refused"})
    once = {"schedule": "once", "part": "p", "does": "x", "slot": START.isoformat(), "attempt": 1}
    yield LedgerEntry("once", START.isoformat(), "schedule.begun", "", once)
    yield LedgerEntry("once-ran", START.isoformat(), "schedule.ran", "", {**once, "ended": "done", "reason": ""})


def fill(place: Path | str) -> Path | str:
    ledger = Ledger.open(place)
    ledger.append(*make_entries())
    ledger.close()
    return place


def archive(place: Path | str, file: Path, before: datetime = CUT) -> entry_archive.ArchivePlan:
    return entry_archive.archive_entries(place, file, before, "ann", NOW)


def verify(place: Path | str) -> list[str]:
    ledger = Ledger.open_for_reading(place)
    problems = ledger.verify()
    ledger.close()
    return problems


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """A ledger in a file, of which an archive was made."""
    fill(tmp_path / "ledger.sqlite")
    archive(tmp_path / "ledger.sqlite", tmp_path / "a.gz")
    return tmp_path / "ledger.sqlite"


def describe(place: Path | str) -> Any:
    entries = read_all_entries(place)
    slots = SLOTS.fold(entries)
    lines = {line: (one.find_newest(), one.find_unfinished()) for line, one in slots._histories.items()}
    return project_node_states(entries), lines


def test_old_entries_move_and_what_decisions_rest_on_stays(place, tmp_path):
    ledger = Ledger.open(fill(place))
    before, seal, states = ledger.entries(), make_seal(ledger.chain_ends()), describe(place)
    assert entry_archive.plan_archive(place, CUT).kinds == (
        kinds := {"schedule.begun": 9, "schedule.ran": 9, "observe.failed": 10}
    )
    moved = archive(place, tmp_path / "a.gz")
    assert (moved.kinds, moved.entries, moved.until) == (kinds, 28, (START + timedelta(days=9)).isoformat())
    assert describe(place) == states
    assert verify(place) == []
    assert find_contradictions(ledger, seal) == [], "seals of before still fit"
    lines = list(entry_archive.read_archive(tmp_path / "a.gz"))
    there = [
        LedgerEntry(*(line[name] for name in ("id", "at", "kind", "node")), json.loads(line["body"]), line["seq"])
        for line in lines
    ]
    left = [entry for entry in ledger.entries() if entry.kind != "entries.archived"]
    assert sorted([*left, *there], key=lambda entry: entry.seq) == before, "nothing is lost"
    (checked,) = check_archives(place, [])
    assert (checked.entries, checked.is_here, checked.problems) == (28, True, ())
    assert find_archived_history(place, "n1") == [ArchivedHistory(str(tmp_path / "a.gz"), 10, moved.until)]
    assert ledger.append(before[10], LedgerEntry("new", NOW.isoformat(), "hold", "n1", {})) == [False, True]
    assert ledger.entries_by_node(["n1"], ["observe.failed"])["n1"][0].id == "o10"
    ledger.close()
    assert verify(place) == []


def test_a_second_archive_has_what_the_first_one_left_and_a_backup_has_both(place, tmp_path):
    fill(place)
    first = archive(place, tmp_path / "a.gz")
    assert archive(place, tmp_path / "none.gz").entries == 0
    assert not (tmp_path / "none.gz").exists()
    second = archive(place, tmp_path / "b.gz", CUT + timedelta(days=20))
    assert (first.entries, second.entries) == (28, 28)
    assert verify(place) == []
    assert [one.problems for one in check_archives(place, [])] == [(), ()]
    assert [one.entries for one in find_archived_history(place, "n1")] == [10, 10]
    backup.back_up(place, tmp_path / "backup.sqlite")
    (tmp_path / "a.gz").rename(tmp_path / "moved.gz")
    assert [one.is_here for one in check_archives(tmp_path / "backup.sqlite", [])] == [False, True]
    told = check_archives(tmp_path / "backup.sqlite", [tmp_path / "moved.gz"])
    assert [(one.is_here, one.problems) for one in told] == [(True, ()), (True, ())]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entry SET at = '2020-01-01T00:00:00+00:00' WHERE id = 'o2'",
        "UPDATE entry SET body = '{}' WHERE id = 'o2'",
        "UPDATE entry SET body = '@2' WHERE id = 'o2'",
        "UPDATE entry SET body = '@1' WHERE id = 'h'",
        "UPDATE entry SET body = '@1' WHERE id = 'o15'",
        "UPDATE entry SET hash = 'ab' WHERE id = 'o2'",
        "DELETE FROM entry WHERE id = 'o2'",
        "DELETE FROM entry WHERE kind = 'entries.archived'",
        "UPDATE entry SET body = replace(body, '\"archived\"', '\"Archived\"') WHERE kind = 'entries.archived'",
    ],
)
def test_whoever_changes_what_is_left_is_found(local, change):
    assert verify(local) == []
    ledger = Ledger.open(local)
    with ledger._engine.begin() as connection:
        drop_guards(connection)
        connection.execute(text(change))
    assert ledger.verify()
    ledger.close()


def test_whoever_changes_an_archive_is_found_even_with_the_ledger_on_his_side(local, tmp_path):
    lines = gzip.decompress((tmp_path / "a.gz").read_bytes()).decode().replace("refused", "granted", 1)
    (tmp_path / "a.gz").write_bytes(gzip.compress(lines.encode()))
    assert check_archives(local, [])[0].problems == (f"{tmp_path}/a.gz: somebody changed this archive",)
    strange = check_archives(local, [tmp_path / "a.gz"])[-1]
    assert "no archive of the ledger" in strange.problems[0]
    ledger = Ledger.open(local)
    with ledger._engine.begin() as connection:
        drop_guards(connection)
        (body,) = connection.execute(text("SELECT body FROM entry WHERE kind = 'entries.archived'")).one()
        told = json.loads(body)
        forged = json.dumps(told | {"sha256": entry_archive.hash_archive(tmp_path / "a.gz")})
        connection.execute(text("UPDATE entry SET body = :body WHERE kind = 'entries.archived'"), {"body": forged})
    ledger.close()
    assert "is not the one that the ledger knows" in check_archives(local, [])[0].problems[0]


def test_entries_stay_append_only_beside_it(place, tmp_path):
    archive(fill(place), tmp_path / "a.gz")
    ledger = Ledger.open(place)
    for statement in ("UPDATE entry SET body = '@1'", "DELETE FROM entry"):
        with pytest.raises(Exception, match="append-only"), ledger._engine.begin() as connection:
            connection.execute(text(statement))
    ledger.close()


def test_a_changed_ledger_is_not_archived(tmp_path):
    place = fill(tmp_path / "ledger.sqlite")
    ledger = Ledger.open(place)
    with ledger._engine.begin() as connection:
        drop_guards(connection)
        connection.execute(text("UPDATE entry SET body = '{}' WHERE id = 'h'"))
    ledger.close()
    with pytest.raises(BrokenLedgerError):
        archive(place, tmp_path / "a.gz")
    assert not (tmp_path / "a.gz").exists()


def test_entries_that_others_archived_meanwhile_are_archived_once(place, tmp_path, monkeypatch):
    fill(place)
    write = entry_archive._write

    def let_others_be_first(*words: Any) -> str:
        monkeypatch.setattr(entry_archive, "_write", write)
        archive(place, tmp_path / "others.gz")
        return write(*words)

    monkeypatch.setattr(entry_archive, "_write", let_others_be_first)
    with pytest.raises(AssayError, match="others archived some of these entries meanwhile"):
        archive(place, tmp_path / "mine.gz")
    assert verify(place) == []
    assert [one.file for one in check_archives(place, [])] == [str(tmp_path / "others.gz")]


@pytest.mark.parametrize("step", ["_write", "_replace"])
def test_a_kill_in_the_middle_loses_nothing(place, tmp_path, step):
    before = read_all_entries(fill(place))
    original = getattr(entry_archive, step)

    def die_after(*words: Any) -> None:
        original(*words)
        os.kill(os.getpid(), signal.SIGKILL)

    if not (child := os.fork()):
        setattr(entry_archive, step, die_after)
        archive(place, tmp_path / "a.gz")
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert read_all_entries(place) == before
    assert verify(place) == []
    assert (tmp_path / "a.gz").exists() == (step == "_replace"), "the file is whole before the ledger changes"
    assert archive(place, tmp_path / "again.gz").entries == 28


def test_no_state_rests_on_the_kinds_that_may_go():
    entries = [
        LedgerEntry(f"e{at}", one["at"], one["kind"], one["node"], one["body"], at)
        for at, one in enumerate(RECORDED, 1)
    ]
    left = [entry for entry in entries if entry.kind not in ARCHIVABLE_KINDS]
    assert len(left) < len(entries)
    assert project_node_states(left) == project_node_states(entries)
    assert set(ARCHIVABLE_KINDS) <= CONTENT_CLASSES.keys()


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Ask assay in a folder with a ledger."""
    (tmp_path / "inventory").mkdir()
    fill(tmp_path / ".assay/ledger.sqlite")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_WHO", "ann")
    monkeypatch.delenv("ASSAY_LEDGER", raising=False)
    return lambda *words: CliRunner().invoke(app, words)


def test_the_command_shows_first_and_moves_with_yes(ask, tmp_path):
    shown = ask("ledger", "archive", "a.gz", "--before", "2026-01-11").stdout
    assert shown.endswith("would move to a.gz; nothing is moved without --yes\n")
    assert "10 observe.failed" in shown
    assert not (tmp_path / "a.gz").exists()
    moved = json.loads(ask("ledger", "archive", "a.gz", "--before", "2026-01-11", "--yes", "--format", "json").stdout)
    assert (moved["moved"], moved["entries"], moved["kinds"]["observe.failed"]) == (True, 28, 10)
    assert (
        f"  {tmp_path}/a.gz holds 28 entries, each of them the one that the ledger knows"
        in ask("ledger", "verify").stdout
    )
    assert f"10 older entries stand in the archive {tmp_path}/a.gz" in ask("history", "n1").stdout
    assert json.loads(ask("history", "n1", "--format", "json").stdout)["archived"][0]["entries"] == 10
    (tmp_path / "a.gz").rename(tmp_path / "b.gz")
    gone = ask("ledger", "verify")
    assert (gone.exit_code, "a.gz is not here: nobody can verify 28 entries" in gone.stdout) == (0, True)
    assert "b.gz holds 28 entries" in ask("ledger", "verify", "--archive", "b.gz").stdout
    (tmp_path / "b.gz").write_bytes(b"junk")
    changed = ask("ledger", "verify", "--archive", "b.gz")
    assert (changed.exit_code, "b.gz: this is no archive of the ledger" in changed.stdout) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a.gz",), "no day is given"),
        (("a.gz", "--before", "2026-01-01", "--older-than", "3"), "no day is given, or two are"),
        (("a.gz", "--before", "soon"), "'soon' is no date"),
        (("a.gz", "--before", "2999-01-01"), "is in the future"),
        ((".assay", "--older-than", "1", "--yes"), "there is such a file already"),
        (("no/where.gz", "--older-than", "1", "--yes"), "there is no such folder"),
    ],
)
def test_wrong_input_is_told(ask, words, said):
    with pytest.raises(AssayError, match=said):
        raise ask("ledger", "archive", *words).exception  # type: ignore[misc]
