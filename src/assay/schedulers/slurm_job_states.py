"""Slurm's states of jobs that decide something, as its JSON names them. Meanings: `man squeue`.

A state that is not in these tables counts as the cautious one: the job goes on, and is on its node.
"""

from __future__ import annotations

ENDED_JOB_STATES = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
"""The job is over: nothing of it runs any more."""
WAITING_JOB_STATES = frozenset(
    {
        "PENDING",
        "RECONFIG_FAIL",
        "REQUEUED",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "RESV_DEL_HOLD",
        "SPECIAL_EXIT",
    }
)
"""The job waits to start, or to start again: nothing of it is on a node."""
SELF_ENDED_JOB_STATES = frozenset({"COMPLETED", "FAILED", "OUT_OF_MEMORY"})
"""The job's own command ended."""
