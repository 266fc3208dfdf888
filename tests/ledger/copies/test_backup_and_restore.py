"""A ledger goes into one file, and a ledger comes of that file, on either database: the same, or not at all."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from sqlalchemy import text
from typer.testing import CliRunner

from assay.cli.app import app
from assay.ledger.connection import open_reading_engine, parse_ledger_url
from assay.ledger.copies import backup
from assay.ledger.copies import backup as copies
from assay.ledger.errors import SCHEMA_VERSION, BrokenLedgerError, LedgerError
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Measurement, Outcome, SuiteRun
from tests.ledger.forgers import drop_guards
from tests.ledger.test_ledgers_of_older_versions import make_old, read_version

AT = "2026-11-22T12:00:00+00:00"


def fill(place: Path | str) -> Path | str:
    """Write three entries, and two runs of a node with two GPUs, one of which fails in the second one."""
    ledger = Ledger.open(place)
    ledger.append(*(LedgerEntry(f"e{at}", AT, "hold", "n1", {"who": "ann", "reason": "röt"}) for at in range(3)))
    for number, verdict in enumerate(("pass", "fail")):
        told = [
            Outcome("suites/a.py::test_a", f"p/n1/gpu{gpu}", "n1", verdict if gpu else "pass", "x" * 600 * gpu,
                    evidence_at=AT, measurements=(Measurement("m", 0.1 + gpu),))
            for gpu in range(2)
        ]  # fmt: skip
        ledger.record(SuiteRun(f"r{number}", AT), told)
    ledger.close()
    return place


def read_all(place: Path | str) -> Any:
    ledger = Ledger.open_for_reading(place)
    told = (
        ledger.entries(),
        [*ledger.iter_runs()],
        ledger.outcomes(),
        ledger.latest(),
        ledger.chain_ends(),
        ledger.verify(),
    )
    ledger.close()
    return told


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a ledger is restored."""
    if request.param == "sqlite":
        return tmp_path / "restored" / "ledger.sqlite"
    from tests.support.real_postgres import new_database

    return new_database(request.getfixturevalue("postgres"))


def test_a_ledger_moves_through_a_file_to_either_database_and_goes_on(place, target, tmp_path):
    told = read_all(fill(place))
    file = tmp_path / "backup.sqlite"
    backed_up = copies.back_up(place, file)
    assert read_all(file) == told, "a backup is read as it is"
    assert copies.restore(file, target) == backed_up == copies.CopiedLedger(told[4], SCHEMA_VERSION)
    assert read_all(target) == told
    ledger = Ledger.open(target)
    assert ledger.append(LedgerEntry("e1", AT, "hold", "n1", {}), LedgerEntry("e9", AT, "hold", "n1", {})) == [
        False,
        True,
    ]
    assert ledger.record(SuiteRun("r9", AT), [Outcome("suites/new.py::test_new", "p/n2", "n2", "pass", evidence_at=AT)])
    assert ledger.verify() == []
    assert len(ledger.outcomes()) == 5
    with pytest.raises(Exception, match="append-only"), ledger._engine.begin() as connection:
        connection.execute(text("DELETE FROM entry"))
    ledger.close()
    assert sorted(path.name for path in tmp_path.iterdir() if "backup" in path.name) == ["backup.sqlite"]


@pytest.mark.parametrize("schema", [4, 5])
def test_a_backup_of_an_older_ledger_is_restored_with_the_present_schema(place, tmp_path, schema):
    old, file = make_old(place, schema), tmp_path / "backup.sqlite"
    with pytest.warns(UserWarning, match="an older assay") if isinstance(place, Path) else nullcontext():
        copied = copies.back_up(old, file)
    assert read_version(old) == schema, "it stays as it was"
    if isinstance(old, Path):
        assert copied.version == schema, "the older assay can read its backup"
        with pytest.warns(UserWarning, match="an older assay"):
            copies.restore(file, tmp_path / "restored.sqlite")
    else:
        copies.restore(file, tmp_path / "restored.sqlite")
    upgraded = Ledger.open(old)
    upgraded.close()
    assert read_all(tmp_path / "restored.sqlite") == read_all(old)


def test_a_backup_is_whole_while_others_write(place, tmp_path):
    ledger = Ledger.open(fill(place))
    original = copies.copy_file, copies.copy_into_new_file

    def write_then(copy: Callable[..., None]) -> Callable[..., None]:
        def copied(*words: Any) -> None:
            ledger.append(LedgerEntry("late", AT, "hold", "n1", {}))
            copy(*words)

        return copied

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "copy_file", write_then(original[0]))
        patch.setattr(copies, "copy_into_new_file", write_then(original[1]))
        copied = copies.back_up(place, tmp_path / "backup.sqlite")
    assert copied.ends["entry"][0] in (3, 4)
    assert ledger.head() == 4
    assert Ledger.open_for_reading(tmp_path / "backup.sqlite").verify() == []
    ledger.close()


def test_no_ledger_with_entries_is_replaced(target, tmp_path):
    copies.back_up(fill(tmp_path / "a.sqlite"), tmp_path / "backup.sqlite")
    ledger = Ledger.open(target)
    ledger.append(LedgerEntry("mine", AT, "hold", "n1", {}))
    ledger.close()
    with pytest.raises(LedgerError, match="holds 1 entry and 0 runs; a backup replaces none"):
        copies.restore(tmp_path / "backup.sqlite", target)
    assert [entry.id for entry in read_all(target)[0]] == ["mine"]


def test_a_ledger_without_entries_is_filled(target, tmp_path):
    copies.back_up(fill(tmp_path / "a.sqlite"), tmp_path / "backup.sqlite")
    Ledger.open(target).close()
    copies.restore(tmp_path / "backup.sqlite", target)
    assert read_all(target) == read_all(tmp_path / "a.sqlite")


def change(file: Path) -> None:
    ledger = Ledger.open(file)
    with ledger._engine.begin() as connection:
        drop_guards(connection)
        connection.execute(text("UPDATE entry SET body = '{}' WHERE seq = 2"))
    ledger.close()


def test_a_changed_ledger_is_not_backed_up_and_a_changed_backup_is_not_restored(target, tmp_path):
    fill(tmp_path / "a.sqlite")
    copies.back_up(tmp_path / "a.sqlite", tmp_path / "backup.sqlite")
    change(tmp_path / "a.sqlite")
    with pytest.raises(BrokenLedgerError, match=r"entry 2 .* was changed"):
        copies.back_up(tmp_path / "a.sqlite", tmp_path / "other.sqlite")
    change(tmp_path / "backup.sqlite")
    with pytest.raises(BrokenLedgerError, match=r"entry 2 .* was changed"):
        copies.restore(tmp_path / "backup.sqlite", target)
    assert not (tmp_path / "other.sqlite").exists()
    if isinstance(target, Path):
        assert list(target.parent.iterdir()) == []
    else:
        assert read_all(target)[:4] == ([], [], [], [])


@pytest.mark.parametrize("step", ["copy_file", "copy_rows", "_verify", "_publish"])
def test_a_restore_that_is_killed_leaves_no_ledger_and_can_be_repeated(target, tmp_path, step):
    copies.back_up(fill(tmp_path / "a.sqlite"), tmp_path / "backup.sqlite")
    original = getattr(backup if step == "_publish" else copies, step)

    def die_after(*words: Any) -> Any:
        if step != "_publish":  # after which it is whole
            original(*words)
        os.kill(os.getpid(), signal.SIGKILL)

    if not (child := os.fork()):
        setattr(backup if step == "_publish" else copies, step, die_after)
        copies.restore(tmp_path / "backup.sqlite", target)
        os._exit(0)
    was_killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    if was_killed:
        assert not target.exists() if isinstance(target, Path) else read_all(target)[:4] == ([], [], [], [])
        copies.restore(tmp_path / "backup.sqlite", target)
    else:
        assert step == "copy_rows" if isinstance(target, Path) else step in ("copy_file", "_publish"), "not on this way"
    assert read_all(target) == read_all(tmp_path / "a.sqlite")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Ask `assay ledger` in a fleet repository without nodes."""
    (tmp_path / "inventory").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASSAY_LEDGER", raising=False)
    return lambda *words: CliRunner().invoke(app, ["ledger", *words])


def test_the_commands_say_what_they_did(ask, tmp_path):
    fill(tmp_path / ".assay/ledger.sqlite")
    done = ask("backup", "copy.sqlite")
    seal = ask("verify", "--format", "json").stdout
    assert done.stdout.splitlines() == [
        "copy.sqlite is a copy of the ledger: 3 entries, 2 runs; every hash is verified",
        f"  its seal is {json.loads(seal)['seal']}",
    ]
    (tmp_path / ".assay/ledger.sqlite").rename(tmp_path / "moved.sqlite")
    told = json.loads(ask("restore", "copy.sqlite", "--format", "json").stdout)
    assert (told["entries"], told["runs"], told["seal"]) == (3, 2, json.loads(seal)["seal"])
    change(tmp_path / "copy.sqlite")
    (tmp_path / ".assay/ledger.sqlite").unlink()
    broken = ask("restore", "copy.sqlite")
    assert (broken.exit_code, broken.stdout.splitlines()[0]) == (1, "the ledger is broken: nothing was restored")


def test_wrong_input_is_told(ask, tmp_path):
    (tmp_path / "text").write_text("no ledger")
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as database:
        database.execute("CREATE TABLE t (a)")
    for words, said in (
        (("backup", "copy"), "there is no ledger yet"),
        (("restore", "nothing"), "there is no such file"),
        (("restore", "text"), "is no ledger"),
        (("restore", "other.sqlite"), "no ledger"),
    ):
        with pytest.raises(AssayError, match=said):
            raise ask(*words).exception  # type: ignore[misc]
    fill(tmp_path / ".assay/ledger.sqlite")
    for words, said in (
        (("backup", "text"), "there is such a file already"),
        (("backup", "no/where"), "there is no such folder"),
        (("restore", "text"), "is no ledger"),
        (("restore", ".assay/ledger.sqlite"), "holds 3 entries and 2 runs"),
    ):
        with pytest.raises(AssayError, match=said):
            raise ask(*words).exception  # type: ignore[misc]
    assert (tmp_path / "text").read_text() == "no ledger"


def test_a_backup_is_one_file_that_needs_no_right_to_write(tmp_path):
    copies.back_up(fill(tmp_path / "a.sqlite"), tmp_path / "backup.sqlite")
    with closing(sqlite3.connect(tmp_path / "backup.sqlite")) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    engine = open_reading_engine(parse_ledger_url(tmp_path / "backup.sqlite"))
    engine.dispose()
    assert not list(tmp_path.glob("backup.sqlite-*"))
