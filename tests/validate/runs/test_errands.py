"""What a task on another machine delivers is whole at any moment; what Slurm says, or does not, is understood."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assay.adapters.slurm.jobs import UNPLACED_TASK, ArrayTask, query_tasks
from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.outcome import Outcome, SuiteRun
from assay.validate.runs import remote_shard, slurm_array
from assay.validate.runs.remote_shard import (
    _publish_store,
    _write_shard_end,
    read_shard_end,
    read_shard_job,
    write_shard_jobs,
)
from assay.validate.runs.sharding import RunShard
from assay.validate.runs.slurm_array import SlurmArray

RUN = SuiteRun("20261121T205104.123-ab12cd", "2026-11-21T20:51:04+00:00")
DELIVERING = """
import sys
from itertools import count
from pathlib import Path
from assay.validate.runs.remote_shard import _publish_store
from assay.model.outcome import Outcome, SuiteRun
from assay.ledger.runs.writer import OutcomeWriter

local, shared = map(Path, sys.argv[1:])
writer = OutcomeWriter(local, SuiteRun("r", "2026-11-21T20:51:04+00:00"))
for number in count():
    for place in range(500):
        writer(Outcome(f"suites/a.py::test_{number}", f"a/n1/{place}", "n1", "fail", f"why {number} {place}"))
    writer.flush()
    _publish_store(local, shared)
"""


def shard(home: Path, number: int = 3, **environment: str) -> RunShard:
    store = home / "runs" / "r" / f"share-{number}.sqlite"
    store.parent.mkdir(parents=True, exist_ok=True)
    OutcomeWriter(store, RUN).close()
    return RunShard(
        number, ("pytest", "--assay-store", str(store)), home, environment, store, store.with_suffix(".log")
    )


def test_what_is_to_be_judged_comes_back_as_it_was_written_and_only_its_owner_reads_it(tmp_path):
    one = shard(tmp_path, ASSAY_LEDGER="postgresql://me:hunter2@host/fleet")
    write_shard_jobs(tmp_path, [one])
    found = read_shard_job(tmp_path, 3)
    assert found.shard.environment == {"ASSAY_LEDGER": "postgresql://me:hunter2@host/fleet"}
    assert found.shard == RunShard(3, one.command, one.folder, found.shard.environment, one.store, one.log)
    assert stat.S_IMODE((tmp_path / "shard_jobs.json").stat().st_mode) == 0o600


def test_what_is_delivered_is_one_file_with_all_that_was_written_while_writing_goes_on(tmp_path):
    local, shared = tmp_path / "local.sqlite", tmp_path / "shared" / "share-1.sqlite"
    shared.parent.mkdir()
    writer = OutcomeWriter(local, RUN)
    writer(Outcome("suites/a.py::test_a", "a/n1", "n1", "pass"))
    writer.flush()
    _publish_store(local, shared)
    assert [path.name for path in shared.parent.iterdir()] == ["share-1.sqlite"]
    connection = sqlite3.connect(shared)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()
    assert read_shard_end(shared) is None
    writer(Outcome("suites/a.py::test_a", "a/n2", "n2", "pass"))
    writer.close()
    _write_shard_end(local, "lost: pytest ended with 3")
    _publish_store(local, shared)
    assert read_shard_end(shared) == "lost: pytest ended with 3"
    with StoredRun.open(shared) as stored:
        assert len(list(stored.outcomes())) == 2


@pytest.mark.slow
def test_who_is_killed_while_delivering_leaves_a_whole_file(tmp_path):
    shared = tmp_path / "share-1.sqlite"
    for wait in (0.0, 0.011, 0.023, 0.037):
        local = tmp_path / f"local-{wait}.sqlite"
        process = subprocess.Popen([sys.executable, "-c", DELIVERING, local, shared])
        before = shared.stat().st_mtime_ns if shared.exists() else 0
        while not shared.exists() or shared.stat().st_mtime_ns == before:
            time.sleep(0.001)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with StoredRun.open(shared) as stored:
            assert stored.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert stored.counts()["fail"] % 500 == 0
            assert stored.counts()["fail"] > 0


def test_a_shared_folder_that_is_away_for_a_while_costs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(remote_shard, "DELIVERY_INTERVAL_S", 0.0)
    store, shared = tmp_path / "local.sqlite", tmp_path / "shared" / "share-1.sqlite"
    OutcomeWriter(store, RUN).close()
    changing = f"import os, time; time.sleep(0.4); os.utime({str(store)!r}, (9, 9)); time.sleep(0.8)"
    for there in (False, True):
        os.utime(store, (1, 1))
        if there:
            shared.parent.mkdir()
        process = subprocess.Popen([sys.executable, "-c", changing])
        assert remote_shard._wait_and_deliver(process, [], store, shared) == 0
        assert shared.exists() is there


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Programs that say what a test lets them, in place of Slurm's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def program(name: str, prints: str = "", complains: str = "", code: int = 0) -> None:
        (folder / f"{name}.out").write_text(prints)
        (folder / f"{name}.err").write_text(complains)
        script = f"#!/bin/sh\ncat {folder}/{name}.out\ncat {folder}/{name}.err >&2\nexit {code}\n"
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)

    program("sbatch", "7;cluster\n")
    program("squeue")
    program("scancel")
    return program


def test_slurms_rows_are_read_and_what_is_none_is_passed_over(programs):
    rows = [
        "1|RUNNING|None|n1",
        "2|PENDING|Resources|",
        "3|NODE_FAIL|NodeDown|n3",
        "N/A|CANCELLED|Resources|",
        "slurm: hi",
    ]
    programs("squeue", "\n".join(rows))
    assert query_tasks("7") == {
        1: ArrayTask("RUNNING", "", "n1"),
        2: ArrayTask("PENDING", "Resources"),
        3: ArrayTask("NODE_FAIL", "NodeDown", "n3"),
        UNPLACED_TASK: ArrayTask("CANCELLED", "Resources"),
    }


def test_a_slurm_that_does_not_answer_is_not_taken_for_one_that_knows_nothing(programs):
    programs("squeue", complains="slurm_load_jobs error: Unable to contact slurm controller\n", code=1)
    assert query_tasks("7") is None
    programs("squeue", complains="slurm_load_jobs error: Invalid job id specified\n", code=1)
    assert query_tasks("7") == {}


def test_what_was_delivered_counts_whatever_slurm_says(programs, tmp_path, monkeypatch):
    monkeypatch.setattr(slurm_array, "SLURM_POLL_S", 0.0)
    shards = [shard(tmp_path, number) for number in (1, 2, 3)]
    array = SlurmArray(2)
    array.start(shards, 60)
    (folder,) = (tmp_path / "runs" / "r").glob("slurm-*")
    programs("squeue", complains="Unable to contact slurm controller", code=1)
    assert array.collect_ended() == []
    done = tmp_path / "done.sqlite"
    OutcomeWriter(done, RUN).close()
    _write_shard_end(done, "")
    _publish_store(done, folder / "share-2.sqlite")
    assert [(one.shard.number, one.failure) for one in array.collect_ended()] == [(2, "")]
    programs("squeue", "1|FAILED|NonZeroExitCode|n1\n3|RUNNING|None|n2\n")
    (folder / "1.out").write_text("Traceback\nNo such file\n\n")
    (ended,) = array.collect_ended()
    assert ended.failure == ("lost: Slurm says FAILED (NonZeroExitCode) on n1, and it delivered no end: No such file")
    assert [one.number for one in array.list_running()] == [3]
    programs("squeue", complains="Invalid job id specified", code=1)
    assert array.collect_ended() == []  # its last file may be seen here later than that it ended
    monkeypatch.setitem(slurm_array.LATE_DELIVERY_S, "FORGOTTEN", 0.0)
    assert [one.failure for one in array.collect_ended()] == ["lost: Slurm no longer knows it, and it delivered no end"]
    array.stop()
    assert not folder.exists()


def test_why_all_tasks_wait_is_told(programs, tmp_path, monkeypatch):
    monkeypatch.setattr(slurm_array, "SLURM_POLL_S", 0.0)
    monkeypatch.setattr(slurm_array, "WAITING_NOTICE_S", 0.0)
    lines: list[str] = []
    array = SlurmArray(2, notify=lines.append)
    array.start([shard(tmp_path, number) for number in (1, 2)], 60)
    programs("squeue", "1|PENDING|PartitionDown|\n2|PENDING|PartitionDown|\n")
    array.collect_ended()
    array.collect_ended()
    assert lines[1:] == ["2 tasks of Slurm job array 7 waiting: PartitionDown"]
    programs("squeue")
    array.stop()
    assert lines[2:] == ["cancelling Slurm job array 7"]
