"""A run that is killed, whatever of it and whenever, is gone on with and comes to what it would have come to."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.declare.loader import load_fleet
from assay.ledger.runs.reader import StoredRun, find_run, list_runs
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.outcome import Outcome
from assay.validate.runs.run_validation import RunInterrupted, RunOptions, hold_run_lock, resume_run, run_validation
from assay.validate.runs.shard_processes import LocalProcesses
from tests.support.forked_python import ForkedAssay

validate_app = load_verb("validate")

pytest_plugins = ["pytester"]

NODES = [f"n{number:04}" for number in range(1, 9)]
SUITE = '''
"""Checks that take their time, and write down that they were called."""
import os
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.phase("zap"), pytest.mark.passive]
CALLS = Path(__file__).parents[1] / "calls"


def note(name, subject):
    with CALLS.open("a") as file:
        file.write(f"{name} {subject}\\n")
    held = {"n0004": 0.1, "n0006": 60} if CALLS.with_name("hold").exists() else {}
    time.sleep(held.get(subject.split("/")[1], float(os.environ.get("PACE", "0.002"))))


def test_fine(gpu, subject):
    note("test_fine", subject)
    assert gpu.pcie.width == 16


def test_ill(gpu, subject):
    note("test_ill", subject)
    assert gpu.pcie.width == 16
    assert "gpu5" not in subject


def test_node(node, measure, subject):
    note("test_node", subject)
    measure("threads", node.host.cpu_threads, at_least=1)


def test_ordinary(node, subject, tmp_path):
    note("test_ordinary", subject)
    assert node.host.cpu_threads
'''
KINDS = {"test_fine": "gpu", "test_ill": "gpu", "test_node": "node", "test_ordinary": "node"}
EVERY = len(NODES) * (2 * 8 + 2)
COMMAND = [sys.executable, "-m", "assay", "validate"]
ASKED = ["--phase", "zap", *(word for node in NODES for word in ("--node", node))]


@pytest.fixture
def home(fleet_copy) -> Path:
    """A fleet with evidence of eight nodes, and declared checks of its own."""
    fleet_copy.suite(SUITE)
    fleet_copy.collected(*NODES)
    for path in (fleet_copy.root / "specs" / "checks").glob("*.yaml"):
        path.unlink()
    checks = [{"id": f"suites/test_own.py::{name}", "subject": kind, "phases": ["zap"]} for name, kind in KINDS.items()]
    catalogue = {"kind": "CheckCatalog", "name": "own", "description": "Own.", "owner": "tests", "checks": checks}
    (fleet_copy.root / "specs" / "checks" / "own.yaml").write_text(yaml.safe_dump(catalogue))
    return fleet_copy.root


@pytest.fixture
def asked(home: Path) -> dict:
    """What every run here is asked, in this process."""
    return {"reports": home / "reports", "ledger": None, "clock": SystemClock()}


def begin(home: Path, asked: dict, **more):
    evidence = home / ".assay" / "evidence" / "latest"
    return run_validation(load_fleet(home), evidence, nodes=NODES, phases=["zap"], **asked, **more)


def go_on(home: Path, asked: dict, **more):
    return resume_run(load_fleet(home), "last", **asked, **more)


def told(file: Path) -> set[Outcome]:
    """Return what a run came to, all but how long it took."""
    with StoredRun.open(file) as stored:
        return {replace(one, duration_s=0.0) for one in stored.outcomes()}


def command(home: Path, *words: str) -> subprocess.Popen[bytes]:
    """Begin `assay validate` in a process group of its own."""
    words = (*COMMAND, "--fleet", str(home), *words)
    return ForkedAssay(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0, cwd=home)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def gone(pid: int) -> bool:
    """Return whether a process has ended, waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def until(what, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)


def kept(home: Path) -> set[tuple[str, str]]:
    """Return what is on disk of the only run that there is."""
    found: set[tuple[str, str]] = set()
    for file in filter(has_tables, (home / "reports" / "runs").glob("*/share-*.sqlite")):
        with StoredRun.open(file) as stored:
            found |= {(one.check.rpartition("::")[2], one.subject) for one in stored.outcomes()}
    return found


def has_tables(file: Path) -> bool:
    """Return whether a file was not killed in the moment between its making and its tables."""
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0] > 0


def calls(home: Path) -> Counter[tuple[str, ...]]:
    file = home / "calls"
    return Counter(tuple(line.split()) for line in file.read_text().splitlines()) if file.exists() else Counter()


def killed(home: Path, dice: random.Random, jobs: tuple[int, ...]) -> None:
    """Begin or go on, and kill something of it at some moment."""
    runs = list_runs(home / "reports")
    process = command(home, *(["--resume", "last"] if runs else ASKED), "-j", str(dice.choice(jobs)))
    time.sleep(dice.uniform(0.2, 4.0))
    victims = children(process.pid)
    what = dice.choice(["a child", "the parent", "all"])
    if what == "a child" and victims:
        kill(dice.choice(victims))
        process.wait(120)
        return
    kill(process.pid)
    for pid in victims if what == "all" else []:
        kill(pid)
    process.wait(120)
    until(lambda: all(gone(pid) for pid in victims))


def rounds(dice: random.Random, home: Path, jobs: tuple[int, ...]) -> Iterator[Path]:
    """Kill one run some times, see that nothing is judged again that was kept, and yield its file when it is whole."""
    for _ in range(dice.randint(2, 4)):
        before, done = calls(home), kept(home)
        killed(home, dice, jobs)
        again = calls(home) - before
        assert not done & again.keys(), "what was kept is judged again"
    words = ["--resume", "last"] if list_runs(home / "reports") else ASKED
    while True:
        assert command(home, *words, "-j", "2").wait(300) == 1
        file = find_run(home / "reports", "last")
        with StoredRun.open(file) as stored:
            if stored.is_complete:
                break
        words = ["--resume", "last"]
    yield file


def compare(home: Path, asked: dict, tries: int, seed: int, jobs: tuple[int, ...]) -> None:
    expected = told(begin(home, asked).stored.path)
    assert len(expected) == EVERY
    for number in range(tries):
        shutil.rmtree(home / "reports")
        (home / "calls").unlink()
        for file in rounds(random.Random(seed + number), home, jobs):
            assert told(file) == expected
            assert {path.suffix for path in file.parent.iterdir()} == {".log", ".sqlite"}
            assert len(list(file.parent.glob("*.sqlite"))) == 1


@pytest.mark.slow
def test_a_killed_run_comes_to_the_same_as_an_uninterrupted_one(home, asked, monkeypatch):
    monkeypatch.setenv("PACE", "0.02")
    compare(home, asked, tries=1, seed=6, jobs=(2,))


@pytest.mark.slow(minutes=2)
def test_a_run_killed_at_many_moments_comes_to_the_same_as_an_uninterrupted_one(home, asked, monkeypatch):
    monkeypatch.setenv("PACE", "0.02")
    compare(home, asked, tries=12, seed=100, jobs=(2, 4))


def test_a_shard_that_is_killed_keeps_what_it_had_and_the_rest_is_lost_until_it_is_gone_on_with(home, asked):
    ledger = Ledger.open(home / ".assay" / "ledger.sqlite")
    asked["ledger"] = ledger

    class Killer(LocalProcesses):
        def collect_ended(self):
            if any("n0006" in subject for _, subject in calls(home)):
                for one in (one for one in self._running if one.shard.number == 2):
                    kill(one.process.pid)
            return super().collect_ended()

    (home / "hold").touch()
    result = begin(home, asked, jobs=2, options=RunOptions(Killer(2)))
    (home / "hold").unlink()
    assert not result.complete
    assert {one.reason for one in result.stored.outcomes(verdicts=["error"])} == {"lost: pytest was killed by SIGKILL"}
    assert 0 < result.missing < EVERY / 2
    assert result.counts.total() == EVERY
    lost, before = result.missing, calls(home)
    again = go_on(home, asked)
    assert (again.complete, again.missing, again.counts.total()) == (True, 0, EVERY)
    assert again.counts == {"pass": EVERY - 8, "fail": 8}
    assert (calls(home) - before).total() == lost
    assert [len(ledger.outcomes(run.id)) for run in ledger.iter_runs()] == [EVERY - lost, lost]
    assert Counter(one.outcome.verdict for one in ledger.latest()) == again.counts


def test_what_runs_ends_with_the_process_that_began_it(home):
    process = command(home, *ASKED, "-j", "2")
    until(lambda: calls(home))
    victims = children(process.pid)
    kill(process.pid)
    process.wait()
    assert victims
    until(lambda: all(gone(pid) for pid in victims))


@pytest.mark.slow
def test_ctrl_c_keeps_what_there_is_and_says_how_to_go_on(home):
    words = [*COMMAND, "--fleet", str(home), *ASKED]
    process = ForkedAssay(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0, cwd=home)
    until(lambda: calls(home).total() > 30)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    run = find_run(home / "reports", "last").parent.name
    assert process.returncode == 130
    assert f"assay validate --resume {run}" in said.decode()
    assert len(kept(home)) >= 20
    done = CliRunner().invoke(validate_app, ["--fleet", str(home), "--resume", run])
    assert done.exit_code == 1
    assert f"{EVERY} outcomes on 8 nodes: {EVERY - 8} passed, 8 failed" in done.stdout
    assert max(calls(home).values()) <= 2


def test_an_interruption_in_this_process_is_told_as_one(home, asked):
    class Impatient(LocalProcesses):
        def collect_ended(self):
            raise KeyboardInterrupt

    with pytest.raises(RunInterrupted) as stopped:
        begin(home, asked, options=RunOptions(Impatient(1)))
    assert stopped.value.run == find_run(home / "reports", "last").parent.name


def test_going_on_with_a_complete_run_judges_nothing_and_repeats_its_verdict(home, asked):
    first, before = begin(home, asked, jobs=2), calls(home)
    again = go_on(home, asked)
    assert (again.judged, again.passed, again.counts) == (False, False, first.counts)
    assert calls(home) == before
    done = CliRunner().invoke(validate_app, ["--fleet", str(home), "--resume", "last"])
    assert done.exit_code == 1
    assert "the run is complete: nothing was left to judge" in done.stdout


def test_a_run_that_the_ledger_cannot_take_is_kept_and_recorded_later_without_judging_again(home):
    ledger = Ledger.open(home / ".assay" / "ledger.sqlite")
    with closing(sqlite3.connect(home / ".assay" / "ledger.sqlite")) as damaged:
        damaged.execute("ALTER TABLE run RENAME TO away")
        done = CliRunner().invoke(validate_app, ["--fleet", str(home), *ASKED])
        damaged.execute("ALTER TABLE away RENAME TO run")
    (run,) = list_runs(home / "reports")
    assert isinstance(done.exception, AssayError)
    assert f"then record the outcomes: assay validate --resume {run.parent.name}" in done.exception.fix
    assert [*ledger.iter_runs()] == []
    before = calls(home)
    assert CliRunner().invoke(validate_app, ["--fleet", str(home), "--resume", run.parent.name]).exit_code == 1
    assert calls(home) == before
    assert [one.id for one in ledger.iter_runs()] == [run.parent.name]
    assert ledger.verify() == []
    ledger.close()


def interrupted(home: Path, asked: dict) -> None:
    class Impatient(LocalProcesses):
        def collect_ended(self):
            if calls(home).total() > 20:
                raise KeyboardInterrupt
            return super().collect_ended()

    with pytest.raises(RunInterrupted):
        begin(home, asked, options=RunOptions(Impatient(1)))


def test_other_specs_suites_or_evidence_and_another_process_are_refused(home, asked):
    interrupted(home, asked)
    places = {
        "the specs": home / "specs" / "checks" / "own.yaml",
        "the suites": home / "suites" / "test_own.py",
        "the evidence": home / ".assay" / "evidence" / "latest" / "n0003.json",
    }
    for what, path in places.items():
        was, about = path.read_text(), path.stat()
        path.write_text(was + "\n")
        with pytest.raises(AssayError, match=rf"{what} changed since run .* started") as refused:
            go_on(home, asked)
        assert "start a new run: assay validate" in str(refused.value)
        path.write_text(was)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    fleet = replace(load_fleet(home), commit="f" * 40)
    with pytest.raises(AssayError, match=r"the spec commit changed from .* to ffffffffffff"):
        resume_run(fleet, "last", **asked)
    with hold_run_lock(find_run(home / "reports", "last").parent), pytest.raises(AssayError, match="is judging run"):
        go_on(home, asked)
    (home / ".assay" / "evidence" / "latest" / "n0015.json").write_text("{}")  # of no node that is judged
    assert go_on(home, asked).counts.total() == EVERY


def test_going_on_takes_no_other_selection(home):
    done = CliRunner().invoke(validate_app, ["--fleet", str(home), "--resume", "last", "--node", "n0003"])
    assert isinstance(done.exception, AssayError)
    assert "--resume continues a run with its own selection" in str(done.exception)


def test_a_run_that_plain_pytest_wrote_is_not_gone_on_with(home, asked, fleet_copy):
    fleet_copy.pytest("--assay-node", "n0003", "-k", "test_node")
    folder = home / "reports" / "runs" / "20261121T120000.000-abcdef"
    folder.mkdir(parents=True)
    fleet_copy.written.rename(folder / "run.sqlite")
    with pytest.raises(AssayError, match="was not made by `assay validate`"):
        go_on(home, asked)
