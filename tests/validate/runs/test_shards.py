"""Shards are cut so that no process grows large, and run some at a time; however one ends, people are told in words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.cli.output import ProgressLines, show_progress
from assay.declare.loader import load_fleet
from assay.ledger.runs.reader import find_run
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.outcome import Outcome, SuiteRun
from assay.validate.runs import shard_processes
from assay.validate.runs.completeness import DueOutcomes, RunProgress, count_due_by_pool
from assay.validate.runs.shard_processes import PYTEST, LocalProcesses, keep_pytest_ready
from assay.validate.runs.sharding import (
    MAX_SHARD_NODES,
    MAX_SHARD_OUTCOMES,
    EndedShard,
    RunShard,
    count_shards,
    describe_exit,
)
from assay.validate.runs.subjects import MIN_RACKS_PER_SHARD, NodeSelection
from tests.support.places import ROOT

validate_app = load_verb("validate")

pytest_plugins = ["pytester"]

RUN = SuiteRun("r", "2026-11-21T12:00:00+00:00")


@pytest.mark.parametrize(
    ("nodes", "due", "jobs", "extra", "expected"),
    [
        (1, 600, 1, [], 1),
        (1, 600, 8, [], 1),  # a node is judged whole
        (8, 5000, 3, [], 3),
        (159, 100_000, 1, [], 1),
        (1590, 1_000_000, 2, [], 10),
        (10_000, 20_000, 4, [], 12),  # few checks, many nodes
        (10_000, 6_000_000, 2, ["-k", "pcie and gpu3"], 2),
        (10_000, 6_000_000, 2, ["-k", "not nvme"], 60),
        (10_000, 6_000_000, 2, ["-x"], 60),
    ],
)
def test_a_shard_is_as_large_as_memory_allows_and_each_job_gets_as_many(nodes, due, jobs, extra, expected):
    assert count_shards(nodes, due, jobs, extra) == expected
    if not extra and nodes > jobs:
        assert expected % jobs == 0
        assert nodes / expected <= MAX_SHARD_NODES
        assert due / expected <= MAX_SHARD_OUTCOMES


@pytest.mark.parametrize("shares", [1, 2, 3, 5, 16])
def test_shares_of_a_fleet_are_all_of_it_once_and_racks_stay_whole_where_there_are_enough(shares):
    fleet = load_fleet(ROOT)
    racks: dict[str, list[str]] = {}
    for node in fleet.nodes.values():
        racks.setdefault(f"{node.pool}/rack-{node.rack}", []).append(node.name)
    cut = [NodeSelection(fleet, tuple(fleet.nodes), share, shares) for share in range(1, shares + 1)]
    for kind in ("node", "gpu", "rack", "fabric", "switch", "rail"):
        whole = NodeSelection(fleet, tuple(fleet.nodes)).subjects(kind)
        assert sorted(one for share in cut for one in share.subjects(kind)) == sorted(whole)
    assert sorted(name for share in cut for name in share.own_nodes()) == sorted(fleet.nodes)
    if len(racks) >= MIN_RACKS_PER_SHARD * shares:
        for share in cut:
            for subject, _ in share.subjects("rack"):
                assert set(racks[str(subject)]) <= set(share.own_nodes())


MARKED = "import pathlib; from assay.validate.judging.session_outcome_file import mark_judged; mark_judged(STORE);"
"""What a process does that has judged everything."""


def shard(folder: Path, number: int, code: str) -> RunShard:
    store = folder / f"{number}.sqlite"
    command = (sys.executable, "-c", code.replace("STORE", f"pathlib.Path({str(store)!r})"))
    OutcomeWriter(store, RUN).close()
    return RunShard(number, command, folder, {"NUMBER": str(number)}, store, store.with_suffix(".log"))


def through(shards: LocalProcesses, count: int) -> list[EndedShard]:
    """Return how all ended, and see that there were never more than two at a time."""
    found: list[EndedShard] = []
    end = time.monotonic() + 60
    while len(found) < count:
        assert len(shards.list_running()) <= 2
        assert time.monotonic() < end
        found += shards.collect_ended()
        time.sleep(0.01)
    return sorted(found, key=lambda one: one.shard.number)


def test_shards_wait_for_each_other_and_say_how_they_ended(tmp_path):
    codes = [
        "import os; print(os.environ['NUMBER'])",
        MARKED + "raise SystemExit(5)",
        "print('ERROR suites/x.py  no such thing'); print('more'); raise SystemExit(2)",
        "import os; os.kill(os.getpid(), 9)",
        "raise SystemExit(3)",
    ]
    shards = LocalProcesses(2)
    shards.start([shard(tmp_path, number, code) for number, code in enumerate(codes, 1)], 60)
    assert [one.failure for one in through(shards, len(codes))] == [
        "lost: pytest ended with 0: 1",
        "",
        "lost: pytest ended with 2: ERROR suites/x.py  no such thing",
        "lost: pytest was killed by SIGKILL",
        "lost: pytest ended with 3 and printed nothing",
    ]
    assert (tmp_path / "1.log").read_text() == "1\n"
    assert shards.list_running() == []


def test_at_the_deadline_a_shard_ends_with_all_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr("assay.validate.runs.shard_processes.SHARD_INTERRUPT_GRACE_S", 0.2)
    code = f"""
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
time.sleep(600)
"""
    shards = LocalProcesses(1)
    shards.start([shard(tmp_path, 1, code)], 600)
    until = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < until
        time.sleep(0.01)
    shards._running = [type(one)(one.shard, one.process, 0.0) for one in shards._running]
    (ended,) = shards.collect_ended()
    assert ended.failure == "deadline: its shard did not end within 600 s"
    wait_for_end(int((tmp_path / "pid").read_text()))


CHECK_OF_ITS_PROCESS = """
import os

def test_of_its_process():
    assert os.environ["NUMBER"] == "1"
    assert "ASSAY_STARTED_BY" in os.environ
    print(os.getpid())
"""


def write_pytest_shard(folder: Path, *arguments: str) -> RunShard:
    (folder / "test_it.py").write_text(CHECK_OF_ITS_PROCESS)
    command = (*PYTEST, "test_it.py", "-q", "-s", "-p", "no:cacheprovider", *arguments)
    return replace(shard(folder, 1, ""), command=command)


@pytest.fixture
def forker(tmp_path):
    """The process that has imported what shards need; it ends with the test."""
    keep_pytest_ready(tmp_path, lambda: True)
    process, orders = shard_processes._FORKERS[os.getpid()]
    yield process
    shard_processes._FORKERS.pop(os.getpid(), None)
    orders.close()
    assert process.wait(60) is not None, "it ends when nobody can order anything any more"


def start(judging: RunShard) -> shard_processes.ShardProcess:
    return shard_processes.start_pytest(judging, judging.command, judging.environment)


def test_each_shard_is_a_process_of_its_own_that_is_forked_and_keeps_nothing(tmp_path, forker, monkeypatch):
    judging = write_pytest_shard(tmp_path)
    keep_pytest_ready(tmp_path, lambda: True)
    pids = []
    for value in ("first", ""):
        (monkeypatch.setenv if value else monkeypatch.delenv)("OF_ONE_JUDGEMENT", *filter(None, [value]))
        (tmp_path / "test_it.py").write_text(
            f"import os, sys, assay\ndef test_it():\n  assert os.getpid() == os.getpgrp()\n"
            f"  assert os.environ.get('OF_ONE_JUDGEMENT', '') == {value!r}\n"
            f"  assert not hasattr(assay, 'planted')\n  assay.planted = sys.argv.append('planted')\n"
            f"  assert os.listdir('/proc/self/fd')[:3] == ['0', '1', '2']\n  print(os.getpid(), os.getppid())\n"
        )
        process = start(judging)
        assert process.wait(60) == 0, judging.log.read_text()
        pids.append(process.pid)
        assert f"{process.pid} {forker.pid}" in judging.log.read_text().splitlines()
    assert len({*pids, forker.pid}) == 3


def test_the_exit_code_is_that_of_pytest(tmp_path, forker):
    process = start(write_pytest_shard(tmp_path, "--no-such-option"))
    assert process.wait(60) == pytest.ExitCode.USAGE_ERROR
    assert "--no-such-option" in (tmp_path / "1.log").read_text()


HANGING = "import time\n\ndef test_it():\n    print('begun')\n    time.sleep(600)\n"


def start_hanging(folder: Path) -> shard_processes.ShardProcess:
    judging = write_pytest_shard(folder, "-p", "assay.validate.plugin")
    (folder / "test_it.py").write_text(HANGING)
    process, until = start(judging), time.monotonic() + 60
    while "begun" not in judging.log.read_text():
        assert time.monotonic() < until
        time.sleep(0.02)
    assert process.poll() is None
    return process


def test_a_forked_shard_that_is_killed_or_late_says_so_and_the_next_goes_on(tmp_path, forker):
    killed = start_hanging(tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        killed.wait(0.01)
    os.killpg(killed.pid, signal.SIGSEGV)
    assert killed.wait(60) == -signal.SIGSEGV
    assert start(write_pytest_shard(tmp_path)).wait(60) == 0


def test_shards_end_with_their_forker_and_the_next_starts_without_it(tmp_path, forker):
    hanging = start_hanging(tmp_path)
    forker.kill()
    assert hanging.wait(60) == -signal.SIGKILL
    wait_for_end(hanging.pid)
    after = start(write_pytest_shard(tmp_path))
    assert isinstance(after, subprocess.Popen)
    assert after.wait(60) == 0


RUN_OF_ITS_OWN = """
import os, pathlib, signal, sys
from tests.validate.runs import test_shards
folder = pathlib.Path(sys.argv[1])
test_shards.keep_pytest_ready(folder, lambda: True)
(folder / "pid").write_text(str(test_shards.start_hanging(folder).pid))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_neither_forker_nor_shard(tmp_path):
    where = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    run = subprocess.run([sys.executable, "-c", RUN_OF_ITS_OWN, str(tmp_path)], env=where, check=False)
    assert run.returncode == -signal.SIGKILL
    wait_for_end(int((tmp_path / "pid").read_text()))


def wait_for_end(pid: int) -> None:
    stat, until = Path(f"/proc/{pid}/stat"), time.monotonic() + 60
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until
        time.sleep(0.01)


def test_stopping_leaves_nothing_running_and_nothing_waiting(tmp_path):
    shards = LocalProcesses(1)
    shards.start([shard(tmp_path, number, "import time; time.sleep(600)") for number in (1, 2)], 600)
    (begun,) = shards._running
    shards.stop()
    assert begun.process.returncode is not None
    assert (shards.list_running(), shards.collect_ended()) == ([], [])
    assert not (tmp_path / "2.log").exists()


def test_a_signal_without_a_name_is_told_by_its_number(tmp_path):
    assert describe_exit(-60, tmp_path / "none") == "lost: pytest was killed by signal 60"


def test_how_far_a_run_is_is_counted_by_pool(fleet_copy, tmp_path):
    fleet = load_fleet(fleet_copy.root)
    due = DueOutcomes.of_selection(NodeSelection(fleet, tuple(fleet.nodes)), ["zap"])
    pools = count_due_by_pool(due)
    assert pools.total() == len(due)
    assert {"h100-a", "byo-b"} <= pools.keys()
    one, two = shard(tmp_path, 1, ""), shard(tmp_path, 2, "")
    for number, each in enumerate((one, two)):
        writer = OutcomeWriter(each.store, RUN)
        for check in range(3):
            writer(Outcome(f"suites/x.py::test_{check}", f"h100-a/n000{number}", f"n000{number}", "pass"))
        writer.close()
    progress = RunProgress(due)
    assert progress.count([one])["h100-a"] == (3, pools["h100-a"])
    assert progress.count([two], newly_ended=[one])["h100-a"] == (6, pools["h100-a"])
    two.store.write_text("not to be read just now")
    assert Counter({pool: done for pool, (done, _) in progress.count([two]).items()}).total() == 3


def test_a_log_gets_a_line_now_and_then(capsys):
    with show_progress("judged") as show:
        assert isinstance(show, ProgressLines)
        show({"h100-a": (5, 100), "byo-b": (0, 100)})
        show._printed_at -= 60
        show({"h100-a": (50, 100), "byo-b": (1, 100)})
        show({"h100-a": (51, 100), "byo-b": (1, 100)})
    assert capsys.readouterr().err == "judged 51 of 200 (26%)\n"


def test_a_terminal_gets_a_bar_for_each_pool(monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with show_progress("judged") as show:
        show({"h100-a": (5, 100), "byo-b": (0, 100)})
        show({"h100-a": (50, 100), "byo-b": (1, 100)})
        time.sleep(0.2)
    said = capfd.readouterr().err
    assert "h100-a" in said
    assert "byo-b" in said


def test_more_than_fits_on_a_page_is_told_as_a_number(fleet_copy, monkeypatch):
    monkeypatch.setattr("assay.cli.verbs.validate.MAX_LINES_SHOWN", 1)
    fleet_copy.suite(
        "import pytest\n"
        "@pytest.mark.phase('zap')\n"
        "def test_x(gpu):\n"
        "    assert gpu.pcie.width == gpu.pcie.generation, gpu.name\n"
    )
    fleet_copy.collected("n0003")
    done = CliRunner().invoke(validate_app, ["--fleet", str(fleet_copy.root), "--node", "n0003", "--phase", "zap"])
    assert done.exit_code == 1
    run = find_run(fleet_copy.root / "reports", "last").parent.name
    assert f"1 line more: `assay results {run}` shows all of them" in done.stdout
