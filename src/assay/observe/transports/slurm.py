"""A step of Slurm on the node: one core of a job of its own, or a corner of the job that runs there.

`srun` forwards what goes in and comes out; its environment stays here. Where `join` is on and a job runs, the step
overlaps it: it takes none of its cores, GPUs or memory away from steps to come, but counts as that job's
(needs Slurm's operator or the job's owner). Else the node must have a core to give: a full one is `failed`.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Sequence
from typing import Any

from assay.model.errors import Trouble
from assay.model.fleet import Node

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STEP = ("--nodes=1", "--ntasks=1", "--cpus-per-task=1", "--chdir=/", f"--export=PATH={PATH}")
OWN = ("--job-name=assay-probe", "--immediate=5", "--mem=64M")
JOINED = ("--overlap", "--mem=0", "--gres=none")
ASKING_S = 5.0


def srun(node: Node, words: Sequence[str]) -> list[str]:
    """Return the command. Raises Trouble where Slurm must be asked for the job that runs there, and is silent."""
    told: dict[str, Any] = node.variables.get("slurm_step") or {}
    name = str(told.get("node") or node.name)
    job = _running_job(name) if told.get("join") else ""
    how = [f"--jobid={job}", *JOINED] if job else [f"--time={_minutes(words)}", *OWN]
    options = [str(option) for option in told.get("options") or ()]
    return ["srun", "--quiet", f"--nodelist={name}", *STEP, *how, *options, "--", *words]


def _minutes(words: Sequence[str]) -> int:
    """Return the job's limit, should nobody be left to end it: a passive probe takes seconds, an active one minutes."""
    return 30 if "--active" in words else math.ceil(ASKING_S / 60)


def _running_job(name: str) -> str:
    """Return the number of a job that runs on the node, "" where none does."""
    command = ["squeue", "--noheader", "--states=RUNNING", f"--nodelist={name}", "--format=%A"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ASKING_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Trouble(f"squeue does not say which job runs on {name}: {type(error).__name__}") from None
    if done.returncode:
        raise Trouble(f"squeue does not say which job runs on {name}: {done.stderr.strip()[:200]}")
    return next(iter(done.stdout.split()), "")
