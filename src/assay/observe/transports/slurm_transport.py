"""The transport `slurm`: a step of Slurm on the node, in a job of its own with one core, or inside the running job.

Where `join` is on and a job runs, the step overlaps that job. It then takes no cores, GPUs or memory from later steps,
but counts as that job's (needs the rights of Slurm's operator or of the job's owner). Otherwise the node must have a
free core; on a full node the reading is failed. This process's environment does not reach the node.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.model.node import Node
from assay.model.specs.node_settings import SlurmStepSettings
from assay.observe.transports.command_transport import CommandTransport

OWN_JOB_OPTIONS = ("--job-name=assay-probe", "--immediate=5", "--mem=64M")
OVERLAP_OPTIONS = ("--overlap", "--mem=0", "--gres=none")
SQUEUE_TIMEOUT_S = 5.0
ACTIVE_JOB_MINUTES = 30


class SlurmStepTransport(CommandTransport):
    """Runs the probe through srun."""

    settings_name = "slurm_step"
    settings_model = SlurmStepSettings

    def wrap(self, node: Node, words: Sequence[str]) -> list[str]:
        """Return the srun command. Raises AssayError where squeue must name the running job and does not answer."""
        from assay.adapters.slurm.slurm_client import ONE_TASK_OPTIONS
        from assay.adapters.slurm.slurm_jobs import find_running_job

        settings = node.settings.slurm_step or SlurmStepSettings()
        name = settings.node or node.name
        job = find_running_job(name, SQUEUE_TIMEOUT_S) if settings.join else ""
        options = [f"--jobid={job}", *OVERLAP_OPTIONS] if job else [f"--time={_time_limit(words)}", *OWN_JOB_OPTIONS]
        command = ["srun", "--quiet", f"--nodelist={name}", *ONE_TASK_OPTIONS, "--cpus-per-task=1"]
        return [*command, *options, *settings.options, "--", *words]


def _time_limit(words: Sequence[str]) -> int:
    """Return the job's limit in minutes, for a job that nobody ends: a passive probe takes seconds."""
    if "--active" not in words:
        return math.ceil(SQUEUE_TIMEOUT_S / 60)
    from assay.node.load_tools.registry import find_long_parts_s

    parts = words[words.index("--active") + 1].split(",")
    return ACTIVE_JOB_MINUTES + math.ceil(find_long_parts_s(parts) / 60)
