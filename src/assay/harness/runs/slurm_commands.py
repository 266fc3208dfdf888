"""What is asked of Slurm, in the words of its own programs. No accounting database is needed."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from assay.model.errors import AssayError

COMMAND_TIMEOUT_S = 30.0
ENDED_STATES = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "LAUNCH_FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
}
ENDED_STATES |= {"PREEMPTED", "REVOKED", "TIMEOUT", "FORGOTTEN"}
"""States in which nothing of a task runs any more. Any other, also one that is unknown here, goes on."""
NO_JOB_MESSAGE = "Invalid job id"


class ArrayTask(NamedTuple):
    """A task of an array: its state, why it is in it ("" for no reason), and on which node ("" for none yet)."""

    state: str
    reason: str = ""
    node: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.state in ENDED_STATES

    @property
    def is_running(self) -> bool:
        """Whether it has a node to run on."""
        return self.state == "RUNNING"

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.state}{why}{f' on {self.node}' if self.node else ''}"


UNPLACED_TASK = -1
"""The place of tasks that have none of their own any more."""
FORGOTTEN_TASK = ArrayTask("FORGOTTEN")
"""What has been over for so long (MinJobAge) that nobody knows how it ended."""


def require_slurm() -> None:
    """Raise Trouble where Slurm's programs are not."""
    if missing := [name for name in ("sbatch", "squeue", "scancel") if not shutil.which(name)]:
        raise AssayError(f"there is no {missing[0]} here", fix="ask from a machine that submits jobs to the cluster")


def submit_array(script: str, words: Sequence[str]) -> str:
    """Submit a script with these options and return the job's number. Raises Trouble in sbatch's words."""
    done = _run_program(["sbatch", "--parsable", *words], script)
    if done is None or done.returncode:
        said = (
            done.stderr.strip().removeprefix("sbatch: error: ") if done else f"no answer within {COMMAND_TIMEOUT_S:g} s"
        )
        raise AssayError(f"sbatch takes no job: {said[:300]}", fix="see --sbatch for what is told to it")
    return done.stdout.strip().partition(";")[0]


def query_tasks(job: str) -> dict[int, ArrayTask] | None:
    """Return every task that Slurm knows of, by its place in the array; None while Slurm does not answer.

    Tasks that were cancelled before they began are known together, at the place ELSEWHERE.
    """
    asked = ["squeue", f"--jobs={job}", "--states=all", "--array", "--noheader", "--format=%K|%T|%r|%N"]
    done = _run_program(asked)
    if done is None or done.returncode:
        return {} if done and NO_JOB_MESSAGE in done.stderr else None
    rows = [line.strip().split("|") for line in done.stdout.splitlines() if line.count("|") == 3]
    return {int(place) if place.isdecimal() else UNPLACED_TASK: _task(*rest) for place, *rest in rows}


def find_jobs_by_name(name: str) -> list[str]:
    """Return the numbers of our jobs of that name that are not over; of an array, that of the whole."""
    done = _run_program(["squeue", f"--user={getpass.getuser()}", f"--name={name}", "--noheader", "--format=%F"])
    return sorted(set(done.stdout.split())) if done and not done.returncode else []


def cancel_jobs(*jobs: str) -> None:
    """Ask Slurm to end jobs, or tasks as JOB_PLACE. Whether they end is seen, not believed."""
    if jobs:
        _run_program(["scancel", *jobs])


def _task(state: str, reason: str, node: str) -> ArrayTask:
    return ArrayTask(state, "" if reason == "None" else reason, node)


def _run_program(command: Sequence[str], given: str | None = None) -> subprocess.CompletedProcess[str] | None:
    """Return how a program of Slurm's ended, None where it did not within its time."""
    try:
        return subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return None
