"""Which customers' jobs are on a node, by Slurm's states of jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from assay.adapters.scheduler_adapter import CustomerJob
from assay.adapters.slurm.slurm_client import read_user_name
from assay.adapters.slurm.slurm_jobs import JOB_NAME_PREFIX
from assay.adapters.slurm.slurm_json import ENDED_JOB_STATES, WAITING_JOB_STATES, SlurmJob, format_epoch


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
