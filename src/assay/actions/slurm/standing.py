"""What Slurm's picture of a node means for its lifecycle: who keeps it from jobs, and whose jobs are on it. Pure."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable

from assay.actions.slurm.reading import SlurmJob, SlurmNode, moment
from assay.actions.workloads import Job, ours
from assay.model.sealed import told

OUR_JOBS = "assay-"
"""How our own jobs are named: probes (`assay-probe`), runs (`assay-RUN`), spare work (`assay-spare-ID`)."""
WAITS_OR_OVER = {
    "PENDING",
    "COMPLETED",
    "CANCELLED",
    "FAILED",
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "BOOT_FAIL",
    "DEADLINE",
}
WAITS_OR_OVER |= {"DEADLINE", "OUT_OF_MEMORY", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL", "SPECIAL_EXIT", "REQUEUED"}
WAITS_OR_OVER |= {"REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"}
"""States in which nothing of a job is on a node. Any other, also one that is unknown here, is."""
CLOSED = ("DOWN", "FAIL", "ERROR", "INVAL", "FUTURE")
BY_SLURM = ("Not responding", "Node unexpectedly rebooted", "batch job complete failure", "ResumeTimeout reached")
"""Reasons of a DOWN that slurmctld gives itself, and takes back itself when the node is there again."""


def cordon_of(node: SlurmNode) -> str:
    """Return why no job starts on the node, "" where one may: ours behind our prefix, others' as they are."""
    if "DRAIN" in node.states or (ours(told(node.reason)) and _closed(node)):
        return told(node.reason, node.reason_set_by_user) or "drained without a reason"
    if state := _closed(node):
        return f"{state} in Slurm: {told(node.reason, node.reason_set_by_user) or 'no reason is given'}"
    return ""


def stands(node: SlurmNode) -> bool:
    """Say whether somebody, or we, closed the node already.

    A DOWN of slurmctld's own is no such thing: it ends with the crash that caused it, and jobs would start.
    """
    return bool(cordon_of(node)) and ("DRAIN" in node.states or not node.reason.startswith(BY_SLURM))


def customers(jobs: Iterable[SlurmJob], node: str) -> tuple[Job, ...]:
    """Return the customers' jobs that are on a node."""
    return tuple(_shown(job) for job in jobs if node in job.nodes and on_a_node(job) and not is_ours(job))


def on_a_node(job: SlurmJob) -> bool:
    """Say whether anything of a job is on its nodes, also one that completes or is suspended."""
    return "COMPLETING" in job.job_state or not job.job_state & WAITS_OR_OVER


def is_ours(job: SlurmJob) -> bool:
    """Say whether a job is our own: our name, and the user that we are. Either alone may be a customer's."""
    return job.name.startswith(OUR_JOBS) and job.user_name == us()


def us() -> str:
    """Return the user whose jobs are ours: Slurm goes by the process's user, not by what the environment says."""
    return pwd.getpwuid(os.geteuid()).pw_name


def _closed(node: SlurmNode) -> str:
    return next((state for state in CLOSED if state in node.states), "")


def _shown(job: SlurmJob) -> Job:
    return Job(str(job.job_id), job.name, job.user_name, job.since, _kept_by(job))


def _kept_by(job: SlurmJob) -> str:
    """Return what keeps a job on its node."""
    if "COMPLETING" in job.job_state:
        return "it is over, but Slurm still waits for its processes or its epilog"
    if "SUSPENDED" in job.job_state:
        return "it is suspended"
    return f"by its time limit until {moment(job.end_time)} at the latest" if job.end_time else ""
