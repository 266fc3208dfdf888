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

from assay.harness import slurm
from assay.harness.errand import LEDGER, Errand, copy, how, write_down
from assay.harness.shards import Ended, Shard, overdue
from assay.harness.slurm import ELSEWHERE, FORGOTTEN, Task
from assay.model.spans import counted

PREFIX, ATTEMPT = "assay-", "slurm-"
"""How the names of our jobs begin, and those of folders that attempts deliver into."""
CARRIED = ("PATH", "LANG", "LC_ALL", "TZ")
"""What tasks learn of our environment. Slurm would hand on all of it, credentials too."""
POLL_S, TELL_S = 1.0, 30.0
PATIENCE_S = 60.0
"""For a task to end that was told to."""
LAST_WORDS_S = {"COMPLETED": 60.0, FORGOTTEN.state: 60.0, "NODE_FAIL": 15.0}
"""How long after a task ended so its last file may still come: shared folders tell late, and a node that Slurm has
given up may live."""


class SlurmArray:
    """`Shards` in one job array, at most `jobs` at a time. `words` are more options for sbatch; `tell` hears a line.

    Raises Trouble where there is no Slurm.
    """

    def __init__(self, jobs: int, words: Sequence[str] = (), tell: Callable[[str], None] = lambda _: None) -> None:
        slurm.must_be_here()
        self._jobs, self._words, self._tell = jobs, words, tell
        self._left: dict[int, Errand] = {}
        self._running: list[Shard] = []
        self._since: dict[int, float] = {}
        self._late: dict[int, float] = {}
        self._over: dict[int, float] = {}
        self._folder: Path | None = None
        self._job, self._deadline_s = "", 0.0
        self._next_look = self._next_word = 0.0

    def start(self, shards: Sequence[Shard], deadline_s: float) -> None:
        """End what an earlier attempt has left, keep what it has delivered, and submit the array. Raises Trouble."""
        if not shards:
            return
        run = shards[0].store.parent
        _end(slurm.named(PREFIX + run.name))
        _take_leftovers(run, shards)
        self._deadline_s = deadline_s
        self._folder = folder = Path(tempfile.mkdtemp(prefix=ATTEMPT, dir=run))
        environment = {name: os.environ[name] for name in CARRIED if name in os.environ}
        errands = write_down(folder, [_with_ledger(shard, folder) for shard in shards], environment)
        self._left = {one.shard.number: one for one in errands}
        self._job = slurm.submit(_script(folder), self._options(run.name, folder))
        self._tell(f"job array {self._job} of Slurm: {counted(len(shards), 'task')}, at most {self._jobs} at once")

    def look(self) -> list[Ended]:
        """Return those that ended since the last look; between two, it asks nobody for a second."""
        if time.monotonic() < self._next_look:
            return []
        found = slurm.tasks(self._job)  # first, so that a task which is over has delivered what it will
        over = [(number, said) for number in self._left if (said := self._how(number, found)) is not None]
        ended = [Ended(self._left.pop(number).shard, said) for number, said in over]
        if found is not None:
            self._running = [one.shard for number, one in self._left.items() if number in found and found[number].runs]
            self._say(found)
        self._next_look = time.monotonic() + POLL_S
        return ended

    def running(self) -> list[Shard]:
        """Return those that run on a node."""
        return self._running

    def stop(self) -> None:
        """Cancel what runs or waits, and keep what it has delivered."""
        if self._job and self._left:
            self._tell(f"cancels job array {self._job}")
            _end([self._job])
        for errand in self._left.values():
            _bring(errand)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._left, self._running, self._job, self._folder = {}, [], "", None

    def _options(self, run: str, folder: Path) -> list[str]:
        """Return what sbatch is told: what a site may change, what it is told on top, and what must be so."""
        minutes = math.ceil((self._deadline_s + PATIENCE_S) / 60)  # should nobody be left to end a task
        places = ",".join(map(str, self._left))
        return [
            *("--ntasks=1", "--cpus-per-task=1", f"--time={minutes}"),
            *self._words,
            *(f"--array={places}%{self._jobs}", f"--job-name={PREFIX}{run}", "--export=NIL", "--no-requeue"),
            *(f"--chdir={folder}", "--output=%a.out"),
        ]

    def _how(self, number: int, found: dict[int, Task] | None) -> str | None:
        """Return how a shard ended, None while it goes on, waits, or may yet be seen to have ended."""
        errand, now = self._left[number], time.monotonic()
        said = _bring(errand)
        if said is not None or found is None:
            return said
        task = found.get(number) or found.get(ELSEWHERE, FORGOTTEN)
        if number in self._late:
            return overdue(self._deadline_s) if task.over or now - self._late[number] > PATIENCE_S else None
        if not task.over:
            self._hold_to_deadline(number, task)
            return None
        if now - self._over.setdefault(number, now) < LAST_WORDS_S.get(task.state, 0.0):
            return None
        return _reason(task, errand.folder / f"{number}.out")

    def _hold_to_deadline(self, number: int, task: Task) -> None:
        now = time.monotonic()
        if task.runs and now - self._since.setdefault(number, now) > self._deadline_s:
            self._late[number] = now
            slurm.cancel(f"{self._job}_{number}")

    def _say(self, found: dict[int, Task]) -> None:
        """Say now and then what tasks wait for, where none of them runs."""
        waits = Counter(one.reason for one in found.values() if one.state == "PENDING")
        if self._running or not waits or time.monotonic() < self._next_word:
            return
        if self._next_word:
            self._tell(f"{counted(waits.total(), 'task')} of job array {self._job} waiting: {', '.join(waits)}")
        self._next_word = time.monotonic() + TELL_S


def _script(folder: Path) -> str:
    words = shlex.join([sys.executable, "-m", "assay.harness.errand", str(folder)])
    return f'#!/bin/sh\nexec {words} "$SLURM_ARRAY_TASK_ID"\n'


def _reason(task: Task, printed: Path) -> str:
    """Return why a shard has no end, in Slurm's words and in the last of its own."""
    lines = printed.read_text(errors="replace").split("\n") if printed.exists() else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    kind = "deadline" if task.state in ("TIMEOUT", "DEADLINE") else "lost"
    said = "has forgotten it" if task is FORGOTTEN else f"says {task}"
    return f"{kind}: Slurm {said}, and no end was delivered{f': {last[:300]}' if last else ''}"


def _end(jobs: Sequence[str]) -> None:
    """Cancel jobs, and wait a while until nothing of them runs."""
    slurm.cancel(*jobs)
    until = time.monotonic() + PATIENCE_S
    while not all(map(_is_over, jobs)) and time.monotonic() < until:
        time.sleep(0.2)


def _is_over(job: str) -> bool:
    found = slurm.tasks(job)
    return found is not None and all(task.over for task in found.values())


def _bring(errand: Errand) -> str | None:
    """Put what a task has delivered in the place of its store; return how it ended, None where more is to come."""
    try:
        errand.delivered.replace(errand.shard.store)
    except FileNotFoundError:
        return None
    return how(errand.shard.store)


def _take_leftovers(run: Path, shards: Sequence[Shard]) -> None:
    """Keep what an attempt has delivered whose parent was killed before it looked."""
    for folder in sorted(run.glob(f"{ATTEMPT}*")):
        for shard in shards:
            _bring(Errand(shard, folder))
        shutil.rmtree(folder, ignore_errors=True)


def _with_ledger(shard: Shard, folder: Path) -> Shard:
    """Return the shard with a copy of the fleet's ledger, where that is a file: only this machine may open it."""
    ledger = shard.environment.get(LEDGER, "")
    if not ledger or "://" in ledger:
        return shard
    ours = folder / "ledger.sqlite"
    if not ours.exists():
        copy(Path(ledger), ours)
    return replace(shard, environment={**shard.environment, LEDGER: str(ours)})
