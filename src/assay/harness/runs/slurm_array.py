"""Shards as the tasks of one Slurm job array, over nodes that share the fleet's folder and this Python.

What a task has delivered into the shared folder counts; Slurm is asked for the rest: which tasks run, and how those
ended that delivered no end. Each attempt delivers into a folder of its own, so that a task of an earlier one that
nobody could end, on a node that was cut off, writes to nothing that is read.
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

from assay.harness.runs.remote_shard import (
    SHARD_LEDGER_VARIABLE,
    RemoteShard,
    copy_database,
    read_shard_end,
    write_shard_jobs,
)
from assay.harness.runs.sharding import EndedShard, RunShard, describe_timeout
from assay.model.text_lists import format_count
from assay.schedulers import slurm_jobs
from assay.schedulers.slurm_client import require_slurm
from assay.schedulers.slurm_jobs import FORGOTTEN_TASK, JOB_NAME_PREFIX, UNPLACED_TASK, ArrayTask

ATTEMPT_PREFIX = "slurm-"
"""How the names of the folders start that attempts deliver into."""
PASSED_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ")
"""What tasks learn of our environment. Slurm would hand on all of it, credentials too."""
SLURM_POLL_S, WAITING_NOTICE_S = 1.0, 30.0
CANCEL_GRACE_S = 60.0
"""For a task to end that was told to."""
LATE_DELIVERY_S = {"COMPLETED": 60.0, FORGOTTEN_TASK.state: 60.0, "NODE_FAIL": 15.0}
"""How long after a task ended so its last file may still come: shared folders tell late, and a node that Slurm has
given up may live."""


class SlurmArray:
    """`Shards` in one job array, at most `jobs` at a time. `words` are more options for sbatch; `tell` hears a line.

    Raises AssayError where there is no Slurm.
    """

    def __init__(self, jobs: int, words: Sequence[str] = (), tell: Callable[[str], None] = lambda _: None) -> None:
        require_slurm("sbatch", "squeue", "scancel")
        self._jobs, self._words, self._tell = jobs, words, tell
        self._left: dict[int, RemoteShard] = {}
        self._running: list[RunShard] = []
        self._since: dict[int, float] = {}
        self._late: dict[int, float] = {}
        self._over: dict[int, float] = {}
        self._folder: Path | None = None
        self._job, self._deadline_s = "", 0.0
        self._next_look = self._next_word = 0.0

    def start(self, shards: Sequence[RunShard], deadline_s: float) -> None:
        """End what an earlier attempt has left, keep what it has delivered, and submit the array. Raises AssayError."""
        if not shards:
            return
        run = shards[0].store.parent
        _cancel_and_wait(slurm_jobs.find_jobs_by_name(JOB_NAME_PREFIX + run.name))
        _take_earlier_deliveries(run, shards)
        self._deadline_s = deadline_s
        self._folder = folder = Path(tempfile.mkdtemp(prefix=ATTEMPT_PREFIX, dir=run))
        environment = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
        errands = write_shard_jobs(folder, [_with_ledger(shard, folder) for shard in shards], environment)
        self._left = {one.shard.number: one for one in errands}
        self._job = slurm_jobs.submit_array(_script(folder), self._options(run.name, folder))
        self._tell(f"job array {self._job} of Slurm: {format_count(len(shards), 'task')}, at most {self._jobs} at once")

    def collect_ended(self) -> list[EndedShard]:
        """Return those that ended since the last look; between two, it asks nobody for a second."""
        if time.monotonic() < self._next_look:
            return []
        found = slurm_jobs.query_tasks(self._job)  # first, so that a task which is over has delivered what it will
        over = [(number, said) for number in self._left if (said := self._describe_end(number, found)) is not None]
        ended = [EndedShard(self._left.pop(number).shard, said) for number, said in over]
        if found is not None:
            self._running = [
                one.shard for number, one in self._left.items() if number in found and found[number].is_running
            ]
            self._report_waiting(found)
        self._next_look = time.monotonic() + SLURM_POLL_S
        return ended

    def list_running(self) -> list[RunShard]:
        """Return those that run on a node."""
        return self._running

    def stop(self) -> None:
        """Cancel what runs or waits, and keep what it has delivered."""
        if self._job and self._left:
            self._tell(f"cancels job array {self._job}")
            _cancel_and_wait([self._job])
        for errand in self._left.values():
            _take_delivery(errand)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._left, self._running, self._job, self._folder = {}, [], "", None

    def _options(self, run: str, folder: Path) -> list[str]:
        """Return what sbatch is told: what a site may change, what it is told on top, and what must be so."""
        minutes = math.ceil((self._deadline_s + CANCEL_GRACE_S) / 60)  # should nobody be left to end a task
        places = ",".join(map(str, self._left))
        return [
            *("--ntasks=1", "--cpus-per-task=1", f"--time={minutes}"),
            *self._words,
            *(f"--array={places}%{self._jobs}", f"--job-name={JOB_NAME_PREFIX}{run}", "--export=NIL", "--no-requeue"),
            *(f"--chdir={folder}", "--output=%a.out"),
        ]

    def _describe_end(self, number: int, found: dict[int, ArrayTask] | None) -> str | None:
        """Return how a shard ended, None while it goes on, waits, or may yet be seen to have ended."""
        errand, now = self._left[number], time.monotonic()
        said = _take_delivery(errand)
        if said is not None or found is None:
            return said
        task = found.get(number) or found.get(UNPLACED_TASK, FORGOTTEN_TASK)
        if number in self._late:
            return (
                describe_timeout(self._deadline_s)
                if task.is_over or now - self._late[number] > CANCEL_GRACE_S
                else None
            )
        if not task.is_over:
            self._hold_to_deadline(number, task)
            return None
        if now - self._over.setdefault(number, now) < LATE_DELIVERY_S.get(task.state, 0.0):
            return None
        return _reason(task, errand.folder / f"{number}.out")

    def _hold_to_deadline(self, number: int, task: ArrayTask) -> None:
        now = time.monotonic()
        if task.is_running and now - self._since.setdefault(number, now) > self._deadline_s:
            self._late[number] = now
            slurm_jobs.cancel_jobs(f"{self._job}_{number}")

    def _report_waiting(self, found: dict[int, ArrayTask]) -> None:
        """Say now and then what tasks wait for, where none of them runs."""
        waits = Counter(one.reason for one in found.values() if one.state == "PENDING")
        if self._running or not waits or time.monotonic() < self._next_word:
            return
        if self._next_word:
            self._tell(f"{format_count(waits.total(), 'task')} of job array {self._job} waiting: {', '.join(waits)}")
        self._next_word = time.monotonic() + WAITING_NOTICE_S


def _script(folder: Path) -> str:
    words = shlex.join([sys.executable, "-m", "assay.harness.runs.remote_shard", str(folder)])
    return f'#!/bin/sh\nexec {words} "$SLURM_ARRAY_TASK_ID"\n'


def _reason(task: ArrayTask, printed: Path) -> str:
    """Return why a shard has no end, in Slurm's words and in the last of its own."""
    lines = printed.read_text(errors="replace").split("\n") if printed.exists() else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    kind = "deadline" if task.state in ("TIMEOUT", "DEADLINE") else "lost"
    said = "has forgotten it" if task is FORGOTTEN_TASK else f"says {task}"
    return f"{kind}: Slurm {said}, and no end was delivered{f': {last[:300]}' if last else ''}"


def _cancel_and_wait(jobs: Sequence[str]) -> None:
    """Cancel jobs, and wait a while until nothing of them runs."""
    slurm_jobs.cancel_jobs(*jobs)
    until = time.monotonic() + CANCEL_GRACE_S
    while not all(map(_is_over, jobs)) and time.monotonic() < until:
        time.sleep(0.2)


def _is_over(job: str) -> bool:
    found = slurm_jobs.query_tasks(job)
    return found is not None and all(task.is_over for task in found.values())


def _take_delivery(errand: RemoteShard) -> str | None:
    """Put what a task has delivered in the place of its store; return how it ended, None where more is to come."""
    try:
        errand.delivered_store.replace(errand.shard.store)
    except FileNotFoundError:
        return None
    return read_shard_end(errand.shard.store)


def _take_earlier_deliveries(run: Path, shards: Sequence[RunShard]) -> None:
    """Keep what an attempt has delivered whose parent was killed before it looked."""
    for folder in sorted(run.glob(f"{ATTEMPT_PREFIX}*")):
        for shard in shards:
            _take_delivery(RemoteShard(shard, folder))
        shutil.rmtree(folder, ignore_errors=True)


def _with_ledger(shard: RunShard, folder: Path) -> RunShard:
    """Return the shard with a copy of the fleet's ledger, where that is a file: only this machine may open it."""
    ledger = shard.environment.get(SHARD_LEDGER_VARIABLE, "")
    if not ledger or "://" in ledger:
        return shard
    ours = folder / "ledger.sqlite"
    if not ours.exists():
        copy_database(Path(ledger), ours)
    return replace(shard, environment={**shard.environment, SHARD_LEDGER_VARIABLE: str(ours)})
