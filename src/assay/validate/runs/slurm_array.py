"""Runs shards as the tasks of one Slurm job array, on machines that share the fleet's folder and this Python.

A task's deliveries in the shared folder decide how its shard ended. Slurm says which tasks run, and how a task ended
that did not deliver its end. Each attempt has a delivery folder of its own: a task of an earlier attempt that could
not be ended, on a machine that was cut off, writes to files that are never read.
"""

from __future__ import annotations

import math
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from assay.adapters.slurm import jobs as slurm_jobs
from assay.adapters.slurm.client import require_slurm
from assay.adapters.slurm.jobs import FORGOTTEN_TASK, JOB_NAME_PREFIX, UNPLACED_TASK, ArrayTask
from assay.model.text.lists import format_count
from assay.validate.runs.remote_shard import (
    SHARD_LEDGER_VARIABLE,
    RemoteShard,
    copy_database,
    read_shard_end,
    write_shard_jobs,
)
from assay.validate.runs.sharding import EndedShard, RunShard, describe_timeout

ATTEMPT_PREFIX = "slurm-"
"""Prefix of the delivery folders of attempts."""
PASSED_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TZ")
"""Environment variables that tasks receive. Slurm would pass on all of them, credentials too."""
SLURM_POLL_S, WAITING_NOTICE_S = 1.0, 30.0
CANCEL_GRACE_S = 60.0
"""Time for a cancelled task to end."""
LATE_DELIVERY_S = {"COMPLETED": 60.0, FORGOTTEN_TASK.state: 60.0, "NODE_FAIL": 15.0}
"""How long to wait for the last delivery of a task in this state: a shared folder may show a file late, and a node
that Slurm has given up may still run."""


class SlurmArray:
    """A ShardRunner with one job array, at most `jobs` tasks at a time.

    `sbatch_options` are added to sbatch's; `notify` receives lines for the user. Raises AssayError without Slurm.
    """

    def __init__(
        self, jobs: int, sbatch_options: Sequence[str] = (), notify: Callable[[str], None] = lambda _: None
    ) -> None:
        require_slurm("sbatch", "squeue", "scancel")
        self._jobs = jobs
        self._sbatch_options = sbatch_options
        self._notify = notify
        self._left: dict[int, RemoteShard] = {}
        self._running: list[RunShard] = []
        self._started_at: dict[int, float] = {}
        self._cancelled_at: dict[int, float] = {}
        self._ended_at: dict[int, float] = {}
        self._folder: Path | None = None
        self._job, self._deadline_s = "", 0.0
        self._next_poll = self._next_notice = 0.0

    def start(self, shards: Sequence[RunShard], deadline_s: float) -> None:
        """Cancel an earlier attempt, keep what it delivered, and submit the array. Raises AssayError."""
        if not shards:
            return
        run = shards[0].store.parent
        _cancel_and_wait(slurm_jobs.find_jobs_by_name(JOB_NAME_PREFIX + run.name))
        _take_earlier_deliveries(run, shards)
        self._deadline_s = deadline_s
        self._folder = folder = Path(tempfile.mkdtemp(prefix=ATTEMPT_PREFIX, dir=run))
        passed = [f"{name}={os.environ[name]}" for name in PASSED_VARIABLES if name in os.environ]
        remotes = write_shard_jobs(folder, [_with_ledger(shard, folder) for shard in shards])
        self._left = {remote.shard.number: remote for remote in remotes}
        command = shlex.join([sys.executable, "-m", "assay.validate.runs.remote_shard", str(folder)])
        script = f'#!/bin/sh\nexport {shlex.join(passed)}\nexec {command} "$SLURM_ARRAY_TASK_ID"\n'
        self._job = slurm_jobs.submit_array(script, self._options(run.name, folder))
        tasks = format_count(len(shards), "task")
        self._notify(f"submitted Slurm job array {self._job}: {tasks}, at most {self._jobs} at once")

    def collect_ended(self) -> list[EndedShard]:
        """Return the shards that ended since the last call. Slurm is queried at most once a second."""
        if time.monotonic() < self._next_poll:
            return []
        tasks = slurm_jobs.query_tasks(self._job)  # before the deliveries: a task that has ended delivers no more
        ends = [(number, end) for number in self._left if (end := self._describe_end(number, tasks)) is not None]
        ended = [EndedShard(self._left.pop(number).shard, end) for number, end in ends]
        if tasks is not None:
            running = [number for number in self._left if number in tasks and tasks[number].is_running]
            self._running = [self._left[number].shard for number in running]
            self._report_waiting(tasks)
        self._next_poll = time.monotonic() + SLURM_POLL_S
        return ended

    def list_running(self) -> list[RunShard]:
        """Return the shards that run on a node."""
        return self._running

    def stop(self) -> None:
        """Cancel the tasks that run or wait, and keep what they delivered."""
        if self._job and self._left:
            self._notify(f"cancelling Slurm job array {self._job}")
            _cancel_and_wait([self._job])
        for remote in self._left.values():
            _take_delivery(remote)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._left = {}
        self._running = []
        self._job = ""
        self._folder = None

    def _options(self, run: str, folder: Path) -> list[str]:
        """Return the options of sbatch: defaults, the site's own, which override them, and those that must hold."""
        minutes = math.ceil((self._deadline_s + CANCEL_GRACE_S) / 60)  # ends a task where this process was killed
        indices = ",".join(map(str, self._left))
        return [
            *("--ntasks=1", "--cpus-per-task=1", f"--time={minutes}"),
            *self._sbatch_options,
            *(f"--array={indices}%{self._jobs}", f"--job-name={JOB_NAME_PREFIX}{run}", "--export=NIL", "--no-requeue"),
            *(f"--chdir={folder}", "--output=%a.out"),
        ]

    def _describe_end(self, number: int, tasks: dict[int, ArrayTask] | None) -> str | None:
        """Return how a shard failed ("" for not at all), None while it runs, waits, or may still deliver its end."""
        remote, now = self._left[number], time.monotonic()
        end = _take_delivery(remote)
        if end is not None or tasks is None:
            return end
        task = tasks.get(number) or tasks.get(UNPLACED_TASK, FORGOTTEN_TASK)
        if number in self._cancelled_at:
            is_gone = task.is_over or now - self._cancelled_at[number] > CANCEL_GRACE_S
            return describe_timeout(self._deadline_s) if is_gone else None
        if not task.is_over:
            if task.is_running and now - self._started_at.setdefault(number, now) > self._deadline_s:
                self._cancelled_at[number] = now
                slurm_jobs.cancel_jobs(f"{self._job}_{number}")
            return None
        if now - self._ended_at.setdefault(number, now) < LATE_DELIVERY_S.get(task.state, 0.0):
            return None
        return _describe_missing_end(task, remote.folder / f"{number}.out")

    def _report_waiting(self, tasks: dict[int, ArrayTask]) -> None:
        """Report every 30 seconds what tasks wait for, while none of them runs."""
        reasons = Counter(task.reason for task in tasks.values() if task.state == "PENDING")
        if self._running or not reasons or time.monotonic() < self._next_notice:
            return
        if self._next_notice:
            waiting = format_count(reasons.total(), "task")
            self._notify(f"{waiting} of Slurm job array {self._job} waiting: {', '.join(reasons)}")
        self._next_notice = time.monotonic() + WAITING_NOTICE_S


def _describe_missing_end(task: ArrayTask, printed: Path) -> str:
    """Return why a task ended without delivering its end: Slurm's state, and the last line that the task printed."""
    lines = printed.read_text(errors="replace").split("\n") if printed.exists() else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    kind = "deadline" if task.state in ("TIMEOUT", "DEADLINE") else "lost"
    state = "no longer knows it" if task is FORGOTTEN_TASK else f"says {task}"
    return f"{kind}: Slurm {state}, and it delivered no end{f': {last[:300]}' if last else ''}"


def _cancel_and_wait(jobs: Sequence[str]) -> None:
    """Cancel jobs, and wait until none of their tasks runs, for a minute at most."""
    slurm_jobs.cancel_jobs(*jobs)
    deadline = time.monotonic() + CANCEL_GRACE_S
    while not all(map(_is_over, jobs)) and time.monotonic() < deadline:
        time.sleep(0.2)


def _is_over(job: str) -> bool:
    tasks = slurm_jobs.query_tasks(job)
    return tasks is not None and all(task.is_over for task in tasks.values())


def _take_delivery(remote: RemoteShard) -> str | None:
    """Replace a shard's store by the delivered one. Return the delivered end, None where more will come."""
    try:
        remote.delivered_store.replace(remote.shard.store)
    except FileNotFoundError:
        return None
    return read_shard_end(remote.shard.store)


def _take_earlier_deliveries(run: Path, shards: Sequence[RunShard]) -> None:
    """Take the deliveries of attempts whose parent process was killed."""
    for folder in sorted(run.glob(f"{ATTEMPT_PREFIX}*")):
        for shard in shards:
            _take_delivery(RemoteShard(shard, folder))
        shutil.rmtree(folder, ignore_errors=True)


def _with_ledger(shard: RunShard, folder: Path) -> RunShard:
    """Return the shard with a copy of the ledger, where that is a SQLite file: other machines cannot open it safely."""
    ledger = shard.environment.get(SHARD_LEDGER_VARIABLE, "")
    if not ledger or "://" in ledger:
        return shard
    copy = folder / "ledger.sqlite"
    if not copy.exists():
        copy_database(Path(ledger), copy)
    return replace(shard, environment={**shard.environment, SHARD_LEDGER_VARIABLE: str(copy)})
