"""What Slurm's picture of a node means for its lifecycle: who keeps it from jobs, and whose jobs are on it. Pure."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable

from assay.model.slurm_reason import display_reason
from assay.schedulers.scheduler_adapter import CustomerJob, is_our_reason
from assay.schedulers.slurm_json import SlurmJob, SlurmNode, format_epoch

JOB_NAME_PREFIX = "assay-"
"""How our own jobs are named: probes (`assay-probe`), runs (`assay-RUN`), spare work (`assay-spare-ID`)."""
OFF_NODE_STATES = {
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
OFF_NODE_STATES |= {
    "DEADLINE",
    "OUT_OF_MEMORY",
    "REVOKED",
    "LAUNCH_FAILED",
    "RECONFIG_FAIL",
    "SPECIAL_EXIT",
    "REQUEUED",
}
OFF_NODE_STATES |= {"REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"}
"""States in which nothing of a job is on a node. Any other, also one that is unknown here, is."""
CLOSED_STATES = ("DOWN", "FAIL", "ERROR", "INVAL", "FUTURE")
SELF_CLEARING_REASONS = (
    "Not responding",
    "Node unexpectedly rebooted",
    "batch job complete failure",
    "ResumeTimeout reached",
)
"""Reasons of a DOWN that slurmctld gives itself, and takes back itself when the node is there again."""


def find_slurm_cordon(node: SlurmNode) -> str:
    """Return why no job starts on the node, "" where one may: ours behind our prefix, others' as they are."""
    if "DRAIN" in node.states or (is_our_reason(display_reason(node.reason)) and _find_closed_state(node)):
        return display_reason(node.reason, node.reason_set_by_user) or "drained without a reason"
    if state := _find_closed_state(node):
        return f"{state} in Slurm: {display_reason(node.reason, node.reason_set_by_user) or 'no reason is given'}"
    return ""


def is_closed_in_slurm(node: SlurmNode) -> bool:
    """Say whether somebody, or we, closed the node already.

    A DOWN of slurmctld's own is no such thing: it ends with the crash that caused it, and jobs would start.
    """
    return bool(find_slurm_cordon(node)) and (
        "DRAIN" in node.states or not node.reason.startswith(SELF_CLEARING_REASONS)
    )


def list_customer_jobs(jobs: Iterable[SlurmJob], node: str) -> tuple[CustomerJob, ...]:
    """Return the customers' jobs that are on a node."""
    return tuple(_make_job(job) for job in jobs if node in job.nodes and occupies_node(job) and not is_our_job(job))


def occupies_node(job: SlurmJob) -> bool:
    """Say whether anything of a job is on its nodes, also one that completes or is suspended."""
    return "COMPLETING" in job.job_state or not job.job_state & OFF_NODE_STATES


def is_our_job(job: SlurmJob) -> bool:
    """Say whether a job is our own: our name, and the user that we are. Either alone may be a customer's."""
    return job.name.startswith(JOB_NAME_PREFIX) and job.user_name == read_user_name()


def read_user_name() -> str:
    """Return the user whose jobs are ours: Slurm goes by the process's user, not by what the environment says."""
    return pwd.getpwuid(os.geteuid()).pw_name


def _find_closed_state(node: SlurmNode) -> str:
    return next((state for state in CLOSED_STATES if state in node.states), "")


def _make_job(job: SlurmJob) -> CustomerJob:
    return CustomerJob(str(job.job_id), job.name, job.user_name, job.since, _find_blocker(job))


def _find_blocker(job: SlurmJob) -> str:
    """Return what keeps a job on its node."""
    if "COMPLETING" in job.job_state:
        return "it is over, but Slurm still waits for its processes or its epilog"
    if "SUSPENDED" in job.job_state:
        return "it is suspended"
    return f"by its time limit until {format_epoch(job.end_time)} at the latest" if job.end_time else ""
