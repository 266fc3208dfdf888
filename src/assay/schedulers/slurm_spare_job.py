"""Work in a node's spare time: the whole node, at the lowest priority, and gone as soon as a customer's job wants it.

Slurm preempts by SIGTERM, then waits KillWait (30 s by default) before it kills: what a check ignores, a customer would
wait for. So the command runs in a session of its own, which the shell before it kills at once.
srun ends with 0 for a job that was taken from it (seen with 22.05); what became of the job is asked of Slurm.
"""

from __future__ import annotations

import math
import subprocess
import time
import uuid
from typing import NamedTuple

from assay.model.errors import AssayError
from assay.schedulers.scheduler_adapter import CustomerJob, SpareRunResult, format_jobs
from assay.schedulers.slurm_client import SlurmClient
from assay.schedulers.slurm_json import SlurmJob, parse_jobs
from assay.schedulers.slurm_node_status import JOB_NAME_PREFIX, list_customer_jobs

SPARE_JOB_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
YIELD_SCRIPT = 'exec 3<&0; setsid "$@" <&3 3<&- & child=$!; trap "kill -9 -$child; exit 143" TERM INT; wait $child'
WHOLE_NODE_OPTIONS = (
    "--nodes=1",
    "--ntasks=1",
    "--exclusive",
    "--mem=0",
    "--chdir=/",
    f"--export=PATH={SPARE_JOB_PATH}",
)
START_TIMEOUT_S = 5
CANCEL_TIMEOUT_S = 40.0
"""More than KillWait, after which nothing is left of a job that was cancelled."""
SUCCESSOR_TIMEOUT_S, POLL_S = 5.0, 0.2
SELF_ENDED_STATES = frozenset({"COMPLETED", "FAILED", "OUT_OF_MEMORY"})
FIRST_SIGNAL_CODE = 128
"""Exit codes from here on are those of a shell whose command was ended by a signal."""


class SlurmSpareJob(NamedTuple):
    """What is run: `command` with `given` as its input; `reservation` is "" where none stands."""

    node: str
    partition: str
    reservation: str
    command: tuple[str, ...]
    stdin: bytes
    deadline_s: float

    def build_srun(self, name: str) -> list[str]:
        """Return the command that has Slurm run it as a job of this name."""
        where = [f"--partition={self.partition}", f"--nodelist={self.node}", *self._reserved()]
        limits = [f"--immediate={START_TIMEOUT_S}", f"--time={math.ceil(self.deadline_s / 60) + 1}"]
        job = [f"--job-name={name}", *where, *limits, *WHOLE_NODE_OPTIONS]
        return ["srun", "--quiet", *job, "--", "/bin/sh", "-c", YIELD_SCRIPT, "sh", *self.command]

    def _reserved(self) -> list[str]:
        return [f"--reservation={self.reservation}"] if self.reservation else []


def run_spare_job(programs: SlurmClient, wanted: SlurmSpareJob) -> SpareRunResult:
    """Run it, and return what came of it. Raises Trouble where Slurm cannot say."""
    name = f"{JOB_NAME_PREFIX}spare-{uuid.uuid4().hex[:12]}"
    process = _start_srun(programs, wanted.build_srun(name))
    late = False
    try:
        out, said = process.communicate(wanted.stdin, timeout=wanted.deadline_s)
    except subprocess.TimeoutExpired:
        late = True
        out, said = _cancel_job(programs, process, name)
    finally:
        if process.poll() is None:
            process.kill()
    errors = said.decode(errors="replace")
    if late:
        return SpareRunResult(None, out, f"{errors}it did not end within {wanted.deadline_s:g} s\n")
    return _classify_result(
        programs, wanted, _find_job(programs, name), SpareRunResult(process.returncode, out, errors)
    )


def _start_srun(programs: SlurmClient, command: list[str]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=programs.environment, process_group=0
        )
    except OSError as error:
        raise AssayError(f"srun cannot be started: {error.strerror}", where="Slurm") from None


def _cancel_job(programs: SlurmClient, process: subprocess.Popen[bytes], name: str) -> tuple[bytes, bytes]:
    """End the job, and return what it had said. Its time limit ends it where Slurm cannot be asked."""
    programs.read_lines("scancel", f"--name={name}")
    try:
        return process.communicate(timeout=CANCEL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def _classify_result(
    programs: SlurmClient, wanted: SlurmSpareJob, job: SlurmJob | None, told: SpareRunResult
) -> SpareRunResult:
    if job and (job.preempt_time or "PREEMPTED" in job.job_state):
        return SpareRunResult(None, told.output, told.stderr, _find_successor(programs, wanted.node))
    if job and job.start_time and (job.job_state & SELF_ENDED_STATES or _is_completing(job, told)):
        return told
    return SpareRunResult(None, told.output, told.stderr, format_jobs(_list_customers(programs, wanted.node)))


def _is_completing(job: SlurmJob, told: SpareRunResult) -> bool:
    """Say whether a job whose epilog still runs had ended by itself: Slurm does not show yet how it came to its end."""
    return "COMPLETING" in job.job_state and told.exit_code is not None and told.exit_code < FIRST_SIGNAL_CODE


def _find_job(programs: SlurmClient, name: str) -> SlurmJob | None:
    found = [job for job in parse_jobs(programs.read_json("squeue", "--all")) if job.name == name]
    return found[-1] if found else None


def _find_successor(programs: SlurmClient, node: str) -> str:
    """Return whom the node was given to; Slurm shows the job as soon as it has begun."""
    ends_at = time.monotonic() + SUCCESSOR_TIMEOUT_S
    while not (jobs := _list_customers(programs, node)) and time.monotonic() < ends_at:
        time.sleep(POLL_S)
    return format_jobs(jobs) or "a job of higher priority"


def _list_customers(programs: SlurmClient, node: str) -> tuple[CustomerJob, ...]:
    return list_customer_jobs(parse_jobs(programs.read_json("squeue", "--all")), node)
