"""A command in a node's spare time: the whole node at the lowest priority, until a customer's job wants it.

Slurm preempts with SIGTERM and kills after KillWait (30 s by default). A customer would have to wait for a check that
ignores SIGTERM. So the command runs in a session of its own, which the shell before it kills at once, also where the
signal comes before that session has begun. srun ends with exit code 0 for a preempted job (seen with 22.05); so Slurm
is asked how the job ended.
"""

from __future__ import annotations

import math
import subprocess
import time
import uuid
from typing import NamedTuple

from assay.adapters.scheduler import CustomerJob, SpareRunResult, format_jobs
from assay.adapters.slurm.client import ONE_TASK_OPTIONS, SELF_ENDED_JOB_STATES, SlurmClient, SlurmJob, parse_jobs
from assay.adapters.slurm.jobs import JOB_NAME_PREFIX, list_customer_jobs

YIELD_SCRIPT = (
    'end() { kill -9 "$!" "-$!" 2>/dev/null; exit 143; }; trap end TERM INT; '
    'exec 3<&0; setsid "$@" <&3 3<&- & wait "$!"'
)
WHOLE_NODE_OPTIONS = (*ONE_TASK_OPTIONS, "--exclusive", "--mem=0")
START_TIMEOUT_S = 5
CANCEL_TIMEOUT_S = 40.0
"""Longer than KillWait, after which nothing of a cancelled job is left."""
SUCCESSOR_TIMEOUT_S = 5.0
POLL_S = 0.2
FIRST_SIGNAL_CODE = 128
"""Exit codes from here on are a shell's, whose command was ended by a signal."""


class SlurmSpareJob(NamedTuple):
    """What to run: `command` with `stdin` as its input, in `reservation` ("" for none) of `partition` on `node`."""

    node: str
    partition: str
    reservation: str
    command: tuple[str, ...]
    stdin: bytes
    deadline_s: float

    def build_srun(self, name: str) -> list[str]:
        """Return the srun command for a job of this name."""
        where = [f"--partition={self.partition}", f"--nodelist={self.node}"]
        where += [f"--reservation={self.reservation}"] if self.reservation else []
        limits = [f"--immediate={START_TIMEOUT_S}", f"--time={math.ceil(self.deadline_s / 60) + 1}"]
        options = [f"--job-name={name}", *where, *limits, *WHOLE_NODE_OPTIONS]
        return ["srun", "--quiet", *options, "--", "/bin/sh", "-c", YIELD_SCRIPT, "sh", *self.command]


def run_spare_job(client: SlurmClient, work: SlurmSpareJob) -> SpareRunResult:
    """Run the job and return how it ended. Raises AssayError if Slurm does not answer."""
    name = f"{JOB_NAME_PREFIX}spare-{uuid.uuid4().hex[:12]}"
    process = client.start(work.build_srun(name))
    is_late = False
    try:
        output, errors = process.communicate(work.stdin, timeout=work.deadline_s)
    except subprocess.TimeoutExpired:
        is_late = True
        output, errors = _cancel_job(client, process, name)
    finally:
        if process.poll() is None:
            process.kill()
    stderr = errors.decode(errors="replace")
    if is_late:
        return SpareRunResult(None, output, f"{stderr}it did not end within {work.deadline_s:g} s\n")
    return _classify_result(client, work.node, name, SpareRunResult(process.returncode, output, stderr))


def _cancel_job(client: SlurmClient, process: subprocess.Popen[bytes], name: str) -> tuple[bytes, bytes]:
    """Cancel the job and return its output. If Slurm does not answer, the job's time limit ends it."""
    client.read_lines("scancel", f"--name={name}")
    try:
        return process.communicate(timeout=CANCEL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def _classify_result(client: SlurmClient, node: str, name: str, result: SpareRunResult) -> SpareRunResult:
    """Return the result if the job ended by itself, else one without exit code that names who took the node."""
    job = next((job for job in reversed(_read_jobs(client)) if job.name == name), None)
    if job and (job.preempt_time or "PREEMPTED" in job.job_state):
        gone_ms = 1000 * max(0, job.end_time - job.preempt_time) if job.preempt_time and job.end_time else None
        return SpareRunResult(None, result.output, result.stderr, _find_successor(client, node), gone_ms)
    if job and job.start_time:
        # While its epilog runs, Slurm does not show yet how the job ended. A signal's exit code is not its own.
        has_own_code = result.exit_code is not None and result.exit_code < FIRST_SIGNAL_CODE
        if job.job_state & SELF_ENDED_JOB_STATES or ("COMPLETING" in job.job_state and has_own_code):
            return result
    return SpareRunResult(None, result.output, result.stderr, format_jobs(_list_customers(client, node)))


def _find_successor(client: SlurmClient, node: str) -> str:
    """Return who got the node. Slurm shows the job as soon as it has started."""
    ends_at = time.monotonic() + SUCCESSOR_TIMEOUT_S
    while not (jobs := _list_customers(client, node)) and time.monotonic() < ends_at:
        time.sleep(POLL_S)
    return format_jobs(jobs) or "a job of higher priority"


def _list_customers(client: SlurmClient, node: str) -> tuple[CustomerJob, ...]:
    return list_customer_jobs(_read_jobs(client), node)


def _read_jobs(client: SlurmClient) -> list[SlurmJob]:
    return parse_jobs(client.read_json("squeue", "--all"))
