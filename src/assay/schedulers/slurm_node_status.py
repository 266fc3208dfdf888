"""What Slurm's view of a node means: why no job starts on it, and which customers' jobs are on it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from assay.model.cordon_reason_checksum import display_reason, is_our_reason
from assay.schedulers.scheduler_adapter import CustomerJob
from assay.schedulers.slurm_client import read_user_name
from assay.schedulers.slurm_jobs import JOB_NAME_PREFIX
from assay.schedulers.slurm_json import SlurmJob, SlurmNode, format_epoch
from assay.schedulers.slurm_states import CLOSED_NODE_STATES, ENDED_JOB_STATES, WAITING_JOB_STATES

SELF_CLEARING_REASONS = (
    "Not responding",
    "Node unexpectedly rebooted",
    "batch job complete failure",
    "ResumeTimeout reached",
)
"""How reasons start with which slurmctld itself sets a node DOWN. It clears them when the node is back."""


def find_slurm_cordon(node: SlurmNode) -> str:
    """Return why no job starts on the node, "" if jobs do: our reasons with our prefix, others' as they are."""
    reason, closed = display_reason(node.reason, node.reason_set_by_user), _find_closed_state(node)
    if "DRAIN" in node.states or (closed and is_our_reason(display_reason(node.reason))):
        return reason or "drained without a reason"
    return f"{closed} in Slurm: {reason or 'no reason is given'}" if closed else ""


def is_closed_in_slurm(node: SlurmNode) -> bool:
    """Say whether a person, or assay, closed the node.

    A node that slurmctld itself set DOWN does not count: it opens again once it answers, and jobs would start.
    """
    if "DRAIN" in node.states:
        return True
    return bool(_find_closed_state(node)) and not node.reason.startswith(SELF_CLEARING_REASONS)


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


def _find_closed_state(node: SlurmNode) -> str:
    return next((state for state in CLOSED_NODE_STATES if state in node.states), "")


def _find_blocker(job: SlurmJob) -> str:
    """Return what keeps a job on its node."""
    if "COMPLETING" in job.job_state:
        return "it is over, but Slurm still waits for its processes or its epilog"
    if "SUSPENDED" in job.job_state:
        return "it is suspended"
    return f"by its time limit until {format_epoch(job.end_time)} at the latest" if job.end_time else ""
