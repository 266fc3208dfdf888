"""Submits, queries and cancels our own jobs in Slurm, and tells which customers' jobs are on a node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from assay.adapters.scheduler import CustomerJob
from assay.adapters.slurm.client import (
    ENDED_JOB_STATES,
    MAX_MESSAGE_LENGTH,
    WAITING_JOB_STATES,
    SlurmClient,
    SlurmJob,
    format_epoch,
    read_user_name,
)
from assay.model.errors import AssayError

JOB_NAME_PREFIX = "assay-"
"""Names of our own jobs start so: probes (`assay-probe`), runs (`assay-RUN`), spare work (`assay-spare-ID`)."""
COMMAND_TIMEOUT_S = 30.0
NO_JOB_MESSAGE = "Invalid job id"
UNPLACED_TASK = -1
"""The index of all tasks that Slurm shows together: those that were cancelled before they started."""


class ArrayTask(NamedTuple):
    """A task of a job array: its state, the reason for it ("" for none), and its node ("" for none yet)."""

    state: str
    reason: str = ""
    node: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.state in ENDED_JOB_STATES or self == FORGOTTEN_TASK

    @property
    def is_running(self) -> bool:
        """Whether it runs on a node."""
        return self.state == "RUNNING"

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.state}{reason}{f' on {self.node}' if self.node else ''}"


FORGOTTEN_TASK = ArrayTask("FORGOTTEN")
"""A task that ended so long ago (MinJobAge) that Slurm no longer knows how."""


def submit_array(script: str, options: Sequence[str]) -> str:
    """Submit a script with these options of sbatch. Return the job's number. Raises AssayError with sbatch's reason."""
    done = SlurmClient().run(["sbatch", "--parsable", *options], script, COMMAND_TIMEOUT_S)
    if done.returncode:
        reason = done.stderr.strip().removeprefix("sbatch: error: ")[:MAX_MESSAGE_LENGTH]
        raise AssayError(f"sbatch refuses the job: {reason}", fix="correct the options after --sbatch")
    return done.stdout.strip().partition(";")[0]


def query_tasks(job: str) -> dict[int, ArrayTask] | None:
    """Return every task of an array that Slurm knows, by its index. None if Slurm does not answer.

    Tasks that were cancelled before they started are together at UNPLACED_TASK.
    """
    options = [f"--jobs={job}", "--states=all", "--array", "--noheader", "--format=%K|%T|%r|%N"]
    try:
        done = SlurmClient().run(["squeue", *options], timeout_s=COMMAND_TIMEOUT_S)
    except AssayError:
        return None
    if done.returncode:
        return {} if NO_JOB_MESSAGE in done.stderr else None
    tasks: dict[int, ArrayTask] = {}
    for line in done.stdout.splitlines():
        if line.count("|") == 3:
            index, state, reason, node = line.strip().split("|")
            place = int(index) if index.isdecimal() else UNPLACED_TASK
            tasks[place] = ArrayTask(state, "" if reason == "None" else reason, node)
    return tasks


def find_jobs_by_name(name: str) -> list[str]:
    """Return the numbers of our own jobs of that name that are not over. An array has one number."""
    command = ["squeue", f"--user={read_user_name()}", f"--name={name}", "--noheader", "--format=%F"]
    try:
        done = SlurmClient().run(command, timeout_s=COMMAND_TIMEOUT_S)
    except AssayError:
        return []
    return [] if done.returncode else sorted(set(done.stdout.split()))


def find_running_job(node: str, timeout_s: float) -> str:
    """Return the number of a job that runs on the node, "" for none. Raises AssayError if Slurm does not answer."""
    options = ["--noheader", "--states=RUNNING", f"--nodelist={node}", "--format=%A"]
    lines = SlurmClient().read_lines("squeue", *options, timeout_s=timeout_s)
    return next((word for line in lines for word in line.split()), "")


def split_requeued_and_cancelled(jobs: Iterable[SlurmJob]) -> tuple[list[int], list[int]]:
    """Return the numbers of the jobs that Slurm can start again, and of those that can only be cancelled."""
    requeued, cancelled = set[int](), set[int]()
    for job in jobs:
        (requeued if job.requeue and job.batch_flag else cancelled).add(job.job_id)
    return sorted(requeued), sorted(cancelled - requeued)


def cancel_jobs(*jobs: str) -> None:
    """Ask Slurm to end jobs, or tasks as JOB_INDEX. The caller sees by `query_tasks` whether they end."""
    if jobs:
        try:
            SlurmClient().run(["scancel", *jobs], timeout_s=COMMAND_TIMEOUT_S)
        except AssayError:
            return


def list_customer_jobs(jobs: Iterable[SlurmJob], node: str) -> tuple[CustomerJob, ...]:
    """Return the customers' jobs that are on a node."""
    return tuple(
        CustomerJob(str(job.job_id), job.name, job.user_name, job.since, _find_blocker(job))
        for job in jobs
        if node in job.nodes and occupies_node(job) and not is_our_job(job)
    )


def occupies_node(job: SlurmJob) -> bool:
    """Say whether any part of a job is on its nodes. Completing and suspended jobs are."""
    return "COMPLETING" in job.job_state or not job.job_state & (ENDED_JOB_STATES | WAITING_JOB_STATES)


def is_our_job(job: SlurmJob) -> bool:
    """Say whether a job is our own: by its name and its user. Either alone may be a customer's."""
    return job.name.startswith(JOB_NAME_PREFIX) and job.user_name == read_user_name()


def _find_blocker(job: SlurmJob) -> str:
    """Return what keeps a job on its node."""
    if "COMPLETING" in job.job_state:
        return "it is over, but Slurm still waits for its processes or its epilog"
    if "SUSPENDED" in job.job_state:
        return "it is suspended"
    return f"by its time limit until {format_epoch(job.end_time)} at the latest" if job.end_time else ""
