"""A full disk, a read-only one, a lock, no permission, damage: verbs that read go on, and say what is wrong."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from sqlalchemy import text

from assay.ledger import sqlite_source
from assay.ledger.errors import LedgerError, LedgerReadWarning
from assay.ledger.location import read_all_entries
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from tests.ledger.forgers import drop_guards
from tests.support.small_disk import run_on_small_disk

AT = "2026-11-21T12:00:00+00:00"
BEGIN = """
import os, subprocess, sys
from pathlib import Path
from tests.support.ballast import fill
from tests.ledger.disk_drill import *
disk = Path(sys.argv[1])
root = make_fleet(disk)
data = root / ".assay"
"""
FULL = """
fill(disk)
check_reading(root, "is full", "bytes free", str(data), "nothing can be recorded until that changes")
check_writing_fails(root, str(root))
code, out, err = ask(root, "hold n1 --reason fan --who ann")
assert "the disk that holds the ledger is full (0 bytes free for" in err and "make room" in err, err
(disk / "ballast").unlink()
check_writing_goes_on(root)
"""
FULL_WITH_LOG = """
(data / "ledger.sqlite").unlink()
write_ledger(root, killed=True)
assert (data / "ledger.sqlite-wal").stat().st_size > 20_000, "the writer died, and all is in the log"
for part in ("", "-shm"):
    if part:
        (data / "ledger.sqlite-shm").unlink()
    fill(disk)
    check_reading(root, "is full")
    (disk / "ballast").unlink()
fill(disk)
check_writing_fails(root, str(root))
(disk / "ballast").unlink()
check_writing_goes_on(root)
"""
READ_ONLY = """
def remount(how):
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)
remount("ro")
apart(lambda: check_reading(root, "read-only", "nothing can be recorded until that changes"))
apart(lambda: check_writing_fails(root, str(root)))
remount("rw")
(data / "ledger.sqlite").unlink()
write_ledger(root, killed=True)
for part in ("", "-shm"):
    if part:
        (data / "ledger.sqlite-shm").unlink()
    remount("ro")
    apart(lambda: check_reading(root, "read-only"))
    remount("rw")
check_writing_goes_on(root)
"""
FOREIGN = """
file = data / "ledger.sqlite"
if len(sys.argv) == 2:
    env = {**os.environ, "DRILL": str(disk)}
    for state in ("may read", "may not read", "may not enter"):
        os.chown(file, 12345, 12345)
        file.chmod(0o600 if state == "may not read" else 0o644)
        os.chown(data, 12345, 12345)
        data.chmod(0o700 if state == "may not enter" else 0o755)
        words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner", sys.executable, *sys.orig_argv[1:]]
        done = subprocess.run([*words, state], capture_output=True, text=True)
        assert done.returncode == 0, (state, done.stdout, done.stderr)
elif sys.argv[2] == "may read":
    for verb in ("status", "explain n1", "history n1", "tickets", "ledger verify"):
        code, out, err = ask(root, verb)
        assert (code, READING[verb] in out) == (0, True), (verb, out, err)
        assert "this user may not write" in err, err
    code, out, err = ask(root, "hold n1 --reason fan --who ann")
    assert code == 2 and "cannot be written" in err and "who owns the file" in err, err
elif sys.argv[2] == "may not enter":
    for verb in ("status", "explain n1", "tickets", "ledger verify", "hold n1 --reason fan --who ann", "validate"):
        code, out, err = ask(root, verb)
        assert code == 2, (verb, out)
        assert "Permission denied" in err and "who owns" in err and "internal error" not in err, (verb, err)
else:
    for verb in ("status", "explain n1", "history n1"):
        code, out, err = ask(root, verb)
        assert (code, out) == (2, ""), (verb, out)
        assert "Permission denied" in err and "who owns" in err, err
    for verb in ("tickets", "ledger verify", "plan --base HEAD", "hold n1 --reason fan --who ann", "validate"):
        code, out, err = ask(root, verb)
        assert code == 2 and "internal error" not in err, (verb, out, err)
    assert ask(root, "show n1")[0] == ask(root, "check")[0] == ask(root, "results")[0] == 0
"""


def drill(tmp_path: Path, script: str) -> None:
    run_on_small_disk(tmp_path / "disk", "24m", "-c", BEGIN + script, tmp_path / "disk")


def test_on_a_full_disk_verbs_read_and_writing_goes_on_after_room_was_made(tmp_path):
    drill(tmp_path, FULL)


@pytest.mark.slow
def test_on_a_full_disk_what_a_killed_writer_left_in_the_log_is_read(tmp_path):
    drill(tmp_path, FULL_WITH_LOG)


@pytest.mark.slow
def test_on_a_read_only_disk_verbs_read_with_and_without_a_log(tmp_path):
    drill(tmp_path, READ_ONLY)


@pytest.mark.slow
def test_a_ledger_of_somebody_else_is_read_where_it_may_be_and_else_its_facts_are_unknown(tmp_path):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv: run as root, apt-get install util-linux")
    begin = BEGIN.replace("root = make_fleet(disk)", 'root = disk / "fleet" if len(sys.argv) > 2 else make_fleet(disk)')
    run_on_small_disk(tmp_path / "disk", "24m", "-c", begin + FOREIGN, tmp_path / "disk")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    ledger.append(*(LedgerEntry(f"e{n}", AT, "hold", "n1", {"who": "ann", "reason": "fan"}) for n in range(3)))
    ledger.close()
    return tmp_path / "ledger.sqlite"


HOLDER = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("PRAGMA locking_mode = EXCLUSIVE")
held.execute("BEGIN EXCLUSIVE")
held.execute("DROP TRIGGER entry_no_update")
held.execute("UPDATE entry SET node = 'n9'")
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_ledger_that_another_process_locks_for_itself_is_read_as_it_was_committed(file, monkeypatch):
    words = [sys.executable, "-c", HOLDER, str(file)]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout
        holder.stdout.readline()
        with pytest.warns(LedgerReadWarning, match="another process holds .* locked: it was read from a copy"):
            ledger = Ledger.open_for_reading(file, patience_s=0.2)
        assert [one.node for one in ledger.entries()] == ["n1"] * 3, "what is not committed is not read"
        assert ledger.verify() == []
        ledger.close()
        with pytest.raises(AssayError, match="locked by another process"):
            Ledger.open(file, patience_s=0.2)
        with pytest.warns(LedgerReadWarning):
            assert len(read_all_entries(file)) == 3, "and that without waiting for the same lock again"
        holder.communicate("let go\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_all_entries(file)) == 3


def test_a_copy_that_fits_nowhere_is_said_and_read_nowhere(file, monkeypatch):
    monkeypatch.setattr(sqlite_source, "SPARE_BYTES", 1 << 60)
    monkeypatch.setattr(sqlite_source.SqliteSource, "_open", cannot_open)
    with pytest.raises(LedgerError, match="bytes free for a copy of the ledger") as told:
        Ledger.open_for_reading(file)
    assert "TMPDIR=" in str(told.value)


def cannot_open(*_: object) -> sqlite3.Connection:
    raise sqlite3.OperationalError("disk I/O error")


def test_a_ledger_that_is_opened_for_reading_cannot_be_written_nor_made(file, tmp_path):
    ledger = Ledger.open_for_reading(file)
    with pytest.raises(AssayError):
        ledger.append(LedgerEntry("x", AT, "hold"))
    with pytest.raises(AssayError):
        Ledger.open_for_reading(tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()


def test_on_postgresql_too(postgres_place):
    writer = Ledger.open(postgres_place)
    writer.append(LedgerEntry("a", AT, "hold"))
    reader = Ledger.open_for_reading(postgres_place, patience_s=0.3)
    assert [one.id for one in reader.entries()] == ["a"]
    assert reader.verify() == []
    with pytest.raises(LedgerError, match="takes no writes"):
        reader.append(LedgerEntry("b", AT, "hold"))
    with writer._engine.begin() as connection:
        connection.execute(text("LOCK TABLE entry IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(LedgerError, match="does not let go"):
            reader.entries()
    assert [one.id for one in reader.entries()] == ["a"]
    reader.close()
    writer.close()


def raise_version(file: Path) -> None:
    ledger = Ledger.open(file)
    with ledger._engine.begin() as connection:
        drop_guards(connection)
        connection.execute(text("UPDATE assay_ledger SET version = 99"))
    ledger.close()


DAMAGES = {
    "no ledger": lambda file: file.write_text("Dear diary, " * 400),
    "damaged": lambda file: file.write_bytes(file.read_bytes()[:4096] + b"\xa5" * (file.stat().st_size - 4096)),
    "of a newer assay": raise_version,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_without_a_ledger_a_verb_says_why_and_what_needs_none_answers(damage, tmp_path):
    from tests.ledger.disk_drill import ask, make_fleet

    root = make_fleet(tmp_path)
    DAMAGES[damage](root / ".assay/ledger.sqlite")
    for verb in ("status", "explain n1", "explain n7", "history n1", "tickets", "schedules", "plan --base HEAD"):
        code, out, err = ask(root, verb)
        assert (code, "nothing changes" in out) == (2, verb.startswith("plan")), (verb, code, out, err)
        assert "ledger.sqlite: " in err, (verb, err)
        assert "→" in err
        assert "internal error" not in err
    for verb in ("ledger verify", "history --serial X", "hold n1 --reason x --who ann", "reconcile --once"):
        assert ask(root, verb)[0] == 2, verb
    for verb in ("show n1", "check", "results", "history --outcomes"):
        assert ask(root, verb)[0] == 0, verb


def test_of_a_server_that_is_gone_no_password_is_told(tmp_path, monkeypatch):
    from tests.ledger.disk_drill import ask, make_fleet

    root = make_fleet(tmp_path)
    monkeypatch.setenv("ASSAY_LEDGER", "postgresql://ann:hunter2@127.0.0.1:1/fleet")
    code, out, err = ask(root, "status")
    assert (code, out) == (2, "")
    assert "check that it runs" in err
    assert "hunter2" not in out + err
