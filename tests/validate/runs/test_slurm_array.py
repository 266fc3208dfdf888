"""A real Slurm of three nodes judges the shards of a run; whoever ends what, it comes to what one process comes to."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from assay.cli.app import load_verb
from assay.declare.loader import load_fleet
from assay.ledger.runs.reader import StoredRun, find_run
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.outcome import Outcome
from assay.validate.runs import slurm_array
from assay.validate.runs.run_validation import RunOptions, RunResult, resume_run, run_validation
from assay.validate.runs.shard_processes import LocalProcesses
from assay.validate.runs.sharding import describe_timeout
from assay.validate.runs.slurm_array import SlurmArray
from tests.support.places import ROOT
from tests.support.slurm_cluster import Cluster, cluster, needs_slurm, said, until

validate_app = load_verb("validate")

pytest_plugins = ["pytester"]

NODES = ("n0001", "n0002", "n0003")
SUITE = '''
"""Checks of which one waits at a gate, and that write down that they were called, and what they see of the world."""
import json
import os
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.phase("zap"), pytest.mark.passive]
HOME = Path(__file__).parents[1]


def note(name, subject):
    with (HOME / "calls").open("a") as file:
        file.write(f"{name} {subject}\\n")


def test_fine(gpu, subject):
    note("test_fine", subject)
    assert gpu.pcie.width == 16


def test_ill(gpu, subject):
    note("test_ill", subject)
    assert gpu.pcie.width == 16
    assert "gpu5" not in subject


def test_waits(node, subject):
    note("test_waits", subject)
    (HOME / "seen").write_text(json.dumps(dict(os.environ)))
    name = subject.rpartition("/")[2]
    (HOME / f"group-{name}").write_text(str(os.getpgrp()))
    while (HOME / "gates" / name).exists():
        time.sleep(0.05)
    assert node.host.cpu_threads
'''
KINDS = {"test_fine": "gpu", "test_ill": "gpu", "test_waits": "node"}
EACH = 8 + 8 + 1
COMMAND = [sys.executable, "-c", "from assay.cli.app import main; main()", "validate", "--on", "slurm", "-j", "3"]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Slurm of three nodes."""
    with cluster(tmp_path_factory.mktemp("slurm"), "n1", "n2", "n3") as made:
        yield made


@pytest.fixture
def home(fleet_copy, monkeypatch) -> Path:
    """A fleet with evidence of three nodes, and declared checks of its own."""
    fleet_copy.suite(SUITE)
    fleet_copy.collected(*NODES)
    for path in (fleet_copy.root / "specs" / "checks").glob("*.yaml"):
        path.unlink()
    checks = [{"id": f"suites/test_own.py::{name}", "subject": kind, "phases": ["zap"]} for name, kind in KINDS.items()]
    catalogue = {"kind": "CheckCatalog", "name": "own", "description": "Own.", "owner": "tests", "checks": checks}
    (fleet_copy.root / "specs" / "checks" / "own.yaml").write_text(yaml.safe_dump(catalogue))
    (fleet_copy.root / "gates").mkdir()
    monkeypatch.setattr(slurm_array, "SLURM_POLL_S", 0.2)
    return fleet_copy.root


def begin(home: Path, shards, nodes=NODES, ledger=None, deadline_s: float = 600) -> RunResult:
    evidence = home / ".assay" / "evidence" / "latest"
    asked = {"reports": home / "reports", "ledger": ledger, "clock": SystemClock(), "jobs": len(nodes)}
    return run_validation(
        load_fleet(home), evidence, nodes=nodes, phases=["zap"], options=RunOptions(shards, deadline_s), **asked
    )


def go_on(home: Path, shards) -> RunResult:
    asked = {"reports": home / "reports", "ledger": None, "clock": SystemClock()}
    return resume_run(load_fleet(home), "last", options=RunOptions(shards), **asked)


def last(home: Path) -> RunResult:
    """Return the run that another thread has made: a connection to a file is for one thread."""
    return RunResult(StoredRun.open(find_run(home / "reports", "last")))


def told(result: RunResult) -> set[Outcome]:
    """Return what a run came to, all but how long it took."""
    return {replace(one, duration_s=0.0) for one in result.stored.outcomes()}


def calls(home: Path) -> Counter[str]:
    path = home / "calls"
    return Counter(path.read_text().splitlines()) if path.exists() else Counter()


def close_gates(home: Path, *names: str) -> None:
    for name in names:
        (home / "gates" / name).touch()


def open_gates(home: Path) -> None:
    for path in (home / "gates").iterdir():
        path.unlink()


def wait_at_gates(home: Path, *names: str) -> None:
    until(lambda: all(any(name in call for call in calls(home) if "waits" in call) for name in names))


def live() -> list[str]:
    """Return the arrays of ours that are not over."""
    return sorted(set(said("squeue", "--noheader", "--format=%F").split()))


def places() -> dict[str, str]:
    """Return on which node which task runs, as JOB_PLACE."""
    rows = said("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%N %F_%K").splitlines()
    return dict(row.split() for row in rows)


@pytest.mark.slow
@needs_slurm
def test_the_tasks_of_several_nodes_come_to_what_processes_here_come_to(nodes, home, monkeypatch):
    monkeypatch.setenv("ASSAY_BMC", "root:hunter2")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    ledger, lines = Ledger.open(home / ".assay" / "ledger.sqlite"), []
    here = begin(home, LocalProcesses(3))
    there = begin(home, SlurmArray(3, ["--exclusive"], lines.append), ledger=ledger)
    assert told(there) == told(here)
    assert (there.counts, there.missing, there.complete) == ({"pass": 3 * EACH - 3, "fail": 3}, 0, True)
    (line,) = lines
    job = line.split()[4].rstrip(":")
    assert line == f"submitted Slurm job array {job}: 3 tasks, at most 3 at once"
    tasks = ["squeue", "--states=all", "--noheader", "--array", f"--jobs={job}", "--format=%T %N"]
    until(lambda: sorted(said(*tasks).splitlines()) == ["COMPLETED n1", "COMPLETED n2", "COMPLETED n3"])
    seen = json.loads((home / "seen").read_text())
    assert "ASSAY_BMC" not in seen
    assert (seen["PATH"], seen["PYTHONPATH"]) == (os.environ["PATH"], str(ROOT / "src"))  # the same assay, too
    assert Path(seen["ASSAY_LEDGER"]).name == "ledger.sqlite"
    assert home not in Path(seen["ASSAY_LEDGER"]).parents  # only this machine opens the fleet's own
    assert [path.name for path in there.stored.path.parent.iterdir() if "share" not in path.name] == ["run.sqlite"]


@needs_slurm
@pytest.mark.slow
def test_what_was_cancelled_or_on_a_node_that_failed_is_lost_in_slurms_words_and_judged_by_going_on(nodes, home):
    whole = told(begin(home, LocalProcesses(1)))
    shutil.rmtree(home / "reports")
    (home / "calls").unlink()
    close_gates(home, *NODES)
    running = threading.Thread(target=lambda: begin(home, SlurmArray(3, ["--exclusive"])))
    running.start()
    wait_at_gates(home, *NODES)
    tasks = places()
    said("scancel", tasks["n1"])
    said("scontrol", "update", "nodename=n2", "state=down", "reason=smoke")
    until(lambda: tasks["n1"] not in places().values() and tasks["n2"] not in places().values())
    os.killpg(int((home / "group-n0002").read_text()), signal.SIGKILL)  # a node that fails takes its processes along
    open_gates(home)
    running.join(120)
    result = last(home)
    reasons = Counter(" ".join(one.reason.split()[:4]) for one in result.stored.outcomes(verdicts=["error"]))
    assert reasons.pop("lost: Slurm says CANCELLED") == 1
    # slurmd may end pytest alone first
    assert reasons.keys() <= {"lost: Slurm says NODE_FAIL", "lost: pytest was killed"}
    lost = reasons.total()
    assert 1 <= lost <= EACH  # the last second of a node that fails can be lost, and is judged anew
    assert (result.counts["error"], result.complete, live()) == (1 + lost, False, [])
    said("scontrol", "update", "nodename=n2", "state=resume")
    before = calls(home)
    again = go_on(home, SlurmArray(3))
    assert (told(again), again.complete) == (whole, True)
    assert (calls(home) - before).total() == 1 + lost  # what was judged is not judged again


@needs_slurm
@pytest.mark.slow
def test_who_goes_on_after_a_kill_ends_the_array_that_is_left_and_keeps_what_it_did(nodes, home):
    close_gates(home, *NODES)
    parent = subprocess.Popen([*COMMAND, "--fleet", home, "--phase", "zap", *[f"--node={name}" for name in NODES]])
    wait_at_gates(home, *NODES)
    parent.kill()
    parent.wait()
    (left,) = live()
    arrays: list[list[str]] = []
    shards = SlurmArray(3, notify=lambda _: arrays.append(live()))
    opening = threading.Timer(1.0, until, [lambda: live() not in ([left], [])])
    opening.start()
    running = threading.Thread(target=lambda: go_on(home, shards))
    running.start()
    opening.join()
    open_gates(home)
    running.join(120)
    ((own,),) = arrays
    assert own != left
    result = last(home)
    assert (result.complete, result.counts) == (True, {"pass": 3 * EACH - 3, "fail": 3})
    assert {call: times for call, times in calls(home).items() if times > 1 and "waits" not in call} == {}
    assert list(result.stored.path.parent.glob("slurm-*")) == []


@needs_slurm
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_who_is_told_to_end_cancels_the_array_and_what_was_judged_is_kept(nodes, home, how):
    close_gates(home, *NODES)
    words = [*COMMAND, "--fleet", home, "--phase", "zap", *[f"--node={name}" for name in NODES]]
    parent = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    wait_at_gates(home, *NODES)
    parent.send_signal(how)
    _, printed = parent.communicate(timeout=120)
    assert (parent.returncode, live()) == (130, [])
    assert "cancelling Slurm job array" in printed
    open_gates(home)
    result = go_on(home, LocalProcesses(3))
    assert (result.complete, result.counts) == (True, {"pass": 3 * EACH - 3, "fail": 3})
    assert {call: times for call, times in calls(home).items() if times > 1 and "waits" not in call} == {}


@needs_slurm
@pytest.mark.slow
def test_a_task_past_its_deadline_is_ended_and_what_it_did_is_kept(nodes, home):
    close_gates(home, "n0001")
    result = begin(home, SlurmArray(1), nodes=NODES[:1], deadline_s=8)
    assert {one.reason for one in result.stored.outcomes(verdicts=["error"])} == {describe_timeout(8)}
    assert (result.counts.total(), live()) == (EACH, [])


@needs_slurm
def test_what_sbatch_refuses_is_said_in_its_words(nodes, home):
    with pytest.raises(AssayError, match=r"sbatch refuses the job: .*partition"):
        begin(home, SlurmArray(1, ["--partition=nowhere"]), nodes=NODES[:1])
    assert list(find_run(home / "reports", "last").parent.glob("slurm-*")) == []


def test_without_slurm_or_without_a_reason_for_its_words_the_command_says_so(home, monkeypatch):
    refused = CliRunner().invoke(validate_app, ["--fleet", str(home), "--sbatch", "--partition=checks"])
    assert "--sbatch is for Slurm" in str(refused.exception)
    monkeypatch.setenv("PATH", str(home))
    refused = CliRunner().invoke(validate_app, ["--fleet", str(home), "--on", "slurm"])
    assert "there is no sbatch here" in str(refused.exception)


def test_words_for_sbatch_that_no_shell_would_take_are_refused(home, monkeypatch):
    monkeypatch.setattr(slurm_array, "require_slurm", lambda *_: None)
    refused = CliRunner().invoke(validate_app, ["--fleet", str(home), "--on", "slurm", "--sbatch", "--comment='x"])
    assert "--sbatch cannot be split into words" in str(refused.exception)
