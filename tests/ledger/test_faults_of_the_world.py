"""Full disks, ledgers that others hold, clocks that step back, servers that end: said in words, and nothing lost."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay.decide.state.node_projection import project_node_states
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Outcome, SuiteRun
from tests.support.real_postgres import new_database
from tests.support.small_disk import run_on_small_disk

AT = "2026-11-21T12:00:00+00:00"
LEDGER = """
import sys
from pathlib import Path
from tests.support.ballast import fill
from assay.model.errors import AssayError
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Outcome, SuiteRun
disk = Path(sys.argv[1])
ledger, at, acknowledged, runs, said = Ledger.open(disk / "ledger.sqlite"), "2026-11-21T12:00:00+00:00", [], [], []
def append(name, times=1):
    ledger.append(*(LedgerEntry(f"{name}-{i}", at, "hold", "n1", {"reason": "x" * 400}) for i in range(times)))
    acknowledged.extend(f"{name}-{i}" for i in range(times))
def record(name):
    ledger.record(SuiteRun(name, at), [Outcome("c", f"a/n{i}", f"n{i}", "fail", f"hot {name} {i}") for i in range(200)])
    runs.append(name)
append("first", 20)
record("first")
fill(disk)
for number in range(50):
    for deed in (append, record):
        try:
            deed(f"full-{number}")
        except AssayError as trouble:
            said.append(str(trouble))
    if len(said) > 4:
        break
assert len(said) > 4, "it never became full"
assert all("the disk that holds the ledger is full" in one for one in said), said
assert [one.id for one in ledger.entries()] == acknowledged, "reading goes on, and nothing acknowledged is lost"
assert [one.id for one in ledger.iter_runs()] == runs
assert ledger.verify() == []
(disk / "ballast").unlink()
append("after", 20)
record("after")
assert [one.id for one in ledger.entries()] == acknowledged
assert ledger.verify() == []
print(said[0])
"""
EVIDENCE = """
import sys
from pathlib import Path
from tests.support.ballast import fill
from assay.model.errors import AssayError
from datetime import UTC, datetime
from assay.model.evidence import EvidenceDocument
from assay.observe.evidence_store import EvidenceStore
disk = Path(sys.argv[1])
store = EvidenceStore(disk / "evidence")
def document(number):
    at = datetime(2026, 11, 21, 12, number, tzinfo=UTC)
    return EvidenceDocument("n1", at, {"probe": {"lines": {"value": [f"{number} {i}" for i in range(2000)]}}})
first = document(0)
digest = store.store_latest(first)
fill(disk)
try:
    store.store_latest(document(1))
    raise SystemExit("the disk was not full")
except AssayError as trouble:
    said = str(trouble)
assert "No space left on device" in said, said
assert store.latest("n1") == first == store.get(digest), "the newest that was kept is there, and whole"
left = [path.name for path in disk.rglob("*.part")]
assert not left, f"half-written files take up room: {left}"
(disk / "ballast").unlink()
assert store.get(store.store_latest(document(2))) == document(2) == store.latest("n1")
print(said)
"""


def test_a_full_disk_loses_nothing_of_the_ledger_and_room_is_all_that_it_needs(tmp_path):
    said = run_on_small_disk(tmp_path / "disk", "1500k", "-c", LEDGER, tmp_path / "disk")
    assert "make room; nothing acknowledged was lost" in said


def test_a_full_disk_leaves_the_newest_evidence_whole(tmp_path):
    said = run_on_small_disk(tmp_path / "disk", "1m", "-c", EVIDENCE, tmp_path / "disk")
    assert str(tmp_path / "disk") in said


HOLDER = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_ledger_that_another_process_holds_is_waited_for_and_then_said_to_be_locked(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.sqlite", patience_s=0.2)
    ledger.append(LedgerEntry("a", AT, "hold"))
    words = [sys.executable, "-c", HOLDER, str(tmp_path / "ledger.sqlite")]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout
        holder.stdout.readline()
        for write in (
            lambda: ledger.append(LedgerEntry("b", AT, "hold")),
            lambda: ledger.record(SuiteRun("r", AT), [Outcome("c", "a/n1", "n1", "pass")]),
            lambda: ledger.claim_lease("rack-1", "a", 5),
        ):
            with pytest.raises(AssayError, match="locked by another process") as told:
                write()
            assert "wait for it, or end the process" in str(told.value)
        assert [one.id for one in ledger.entries()] == ["a"], "reading goes on"
        holder.communicate("let go\n")
    assert ledger.append(LedgerEntry("b", AT, "hold")) == [True]
    assert ledger.verify() == []


def test_a_clock_that_steps_back_changes_no_order(ledger):
    times = ["2026-11-21T12:00:00+00:00", "2026-11-21T11:00:00+00:00", "2026-11-21T12:30:00+00:00"]
    enrolled = LedgerEntry("e", times[0], "node.enrolled", "n1", {"pool": "a", "state": "seatrial"})
    moves = [("seatrial", "zap"), ("zap", "test")]
    told = [
        LedgerEntry(f"t{n}", at, "transition", "n1", {"from": origin, "to": target, "decision": ""})
        for n, (at, (origin, target)) in enumerate(zip(times[1:], moves, strict=True))
    ]
    ledger.append(enrolled)
    ledger.append(told[0])
    after = ledger.head()
    ledger.append(told[1])
    assert [one.at for one in ledger.entries()] == times
    assert [one.id for one in ledger.entries(after=after)] == ["t1"], "news is what was written later"
    assert project_node_states(ledger.entries())["n1"].state == "test"
    assert ledger.verify() == []


def test_a_server_that_was_ended_is_said_to_be_gone_and_the_next_call_after_its_start_works(server):
    ledger = Ledger.open(new_database(server.socket), patience_s=2)
    ledger.append(LedgerEntry("a", AT, "hold"))
    for how in (signal.SIGINT, signal.SIGKILL):
        server.end(how)
        for call in (
            ledger.entries,
            lambda: ledger.append(LedgerEntry("never", AT, "hold")),
            lambda: ledger.wait(9, 0.1),
        ):
            with pytest.raises(AssayError, match="database says") as told:
                call()
            assert "check that it runs and may be reached" in str(told.value)
            assert "Traceback" not in str(told.value)
        with pytest.raises(AssayError), ledger.exclusive_section("deciding", patience_s=1):
            pass
        server.start()
        assert ledger.append(LedgerEntry(how.name, AT, "hold")) == [True]
        with ledger.exclusive_section("deciding", patience_s=1):
            assert ledger.claim_lease("rack-1", "a", 5)
    assert [one.id for one in ledger.entries()] == ["a", "SIGINT", "SIGKILL"]
    assert ledger.verify() == []
    ledger.close()


@pytest.mark.slow
def test_a_server_that_ends_while_somebody_waits_or_is_inside_a_section_is_trouble_too(server):
    ledger = Ledger.open(new_database(server.socket), patience_s=2)
    with pytest.raises(AssayError, match="database says"), ledger.exclusive_section("deciding"):
        server.end(signal.SIGKILL)
    server.start()
    ended = threading.Timer(0.3, server.end, [signal.SIGKILL])
    ended.start()
    with pytest.raises(AssayError, match="database says"):
        ledger.wait(0, 60)
    ended.join()
    server.start()
    assert ledger.entries() == []
    with ledger.exclusive_section("deciding", patience_s=1):
        pass
    ledger.close()


def test_the_time_of_leases_is_the_databases(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    ledger.claim_lease("rack-1", "a", 60)
    with sqlite3.connect(tmp_path / "ledger.sqlite") as database:
        ((now,),) = database.execute("SELECT unixepoch()")
    assert abs(ledger.leases()["rack-1"].until_s - now - 60) < 30
    assert datetime.fromtimestamp(now, UTC).year > 2000
    assert Path(tmp_path / "ledger.sqlite").exists()
