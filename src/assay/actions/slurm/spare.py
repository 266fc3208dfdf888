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

from assay.actions.slurm.programs import Programs
from assay.actions.slurm.reading import SlurmJob, jobs_of
from assay.actions.slurm.standing import OUR_JOBS, customers
from assay.actions.workloads import Job, Spare, named
from assay.model.errors import Trouble

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
YIELDING = 'exec 3<&0; setsid "$@" <&3 3<&- & child=$!; trap "kill -9 -$child; exit 143" TERM INT; wait $child'
WHOLE = ("--nodes=1", "--ntasks=1", "--exclusive", "--mem=0", "--chdir=/", f"--export=PATH={PATH}")
BEGINS_WITHIN_S = 5
ENDS_WITHIN_S = 40.0
"""More than KillWait, after which nothing is left of a job that was cancelled."""
SUCCESSOR_WITHIN_S, LOOK_S = 5.0, 0.2
BY_ITSELF = frozenset({"COMPLETED", "FAILED", "OUT_OF_MEMORY"})
SIGNALLED = 128
"""Exit codes from here on are those of a shell whose command was ended by a signal."""


class Errand(NamedTuple):
    """What is run: `command` with `given` as its input; `reservation` is "" where none stands."""

    node: str
    partition: str
    reservation: str
    command: tuple[str, ...]
    given: bytes
    deadline_s: float

    def srun(self, name: str) -> list[str]:
        """Return the command that has Slurm run it as a job of this name."""
        where = [f"--partition={self.partition}", f"--nodelist={self.node}", *self._reserved()]
        limits = [f"--immediate={BEGINS_WITHIN_S}", f"--time={math.ceil(self.deadline_s / 60) + 1}"]
        job = [f"--job-name={name}", *where, *limits, *WHOLE]
        return ["srun", "--quiet", *job, "--", "/bin/sh", "-c", YIELDING, "sh", *self.command]

    def _reserved(self) -> list[str]:
        return [f"--reservation={self.reservation}"] if self.reservation else []


def errand(programs: Programs, wanted: Errand) -> Spare:
    """Run it, and return what came of it. Raises Trouble where Slurm cannot say."""
    name = f"{OUR_JOBS}spare-{uuid.uuid4().hex[:12]}"
    process = _begun(programs, wanted.srun(name))
    late = False
    try:
        out, said = process.communicate(wanted.given, timeout=wanted.deadline_s)
    except subprocess.TimeoutExpired:
        late = True
        out, said = _ended(programs, process, name)
    finally:
        if process.poll() is None:
            process.kill()
    errors = said.decode(errors="replace")
    if late:
        return Spare(None, out, f"{errors}it did not end within {wanted.deadline_s:g} s\n")
    return _judged(programs, wanted, _job(programs, name), Spare(process.returncode, out, errors))


def _begun(programs: Programs, command: list[str]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=programs.environment, process_group=0
        )
    except OSError as error:
        raise Trouble(f"srun cannot be started: {error.strerror}", where="Slurm") from None


def _ended(programs: Programs, process: subprocess.Popen[bytes], name: str) -> tuple[bytes, bytes]:
    """End the job, and return what it had said. Its time limit ends it where Slurm cannot be asked."""
    programs.lines("scancel", f"--name={name}")
    try:
        return process.communicate(timeout=ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def _judged(programs: Programs, wanted: Errand, job: SlurmJob | None, told: Spare) -> Spare:
    if job and (job.preempt_time or "PREEMPTED" in job.job_state):
        return Spare(None, told.output, told.errors, _successor(programs, wanted.node))
    if job and job.start_time and (job.job_state & BY_ITSELF or _completes(job, told)):
        return told
    return Spare(None, told.output, told.errors, named(_customers(programs, wanted.node)))


def _completes(job: SlurmJob, told: Spare) -> bool:
    """Say whether a job whose epilog still runs had ended by itself: Slurm does not show yet how it came to its end."""
    return "COMPLETING" in job.job_state and told.code is not None and told.code < SIGNALLED


def _job(programs: Programs, name: str) -> SlurmJob | None:
    found = [job for job in jobs_of(programs.read("squeue", "--all")) if job.name == name]
    return found[-1] if found else None


def _successor(programs: Programs, node: str) -> str:
    """Return whom the node was given to; Slurm shows the job as soon as it has begun."""
    ends_at = time.monotonic() + SUCCESSOR_WITHIN_S
    while not (jobs := _customers(programs, node)) and time.monotonic() < ends_at:
        time.sleep(LOOK_S)
    return named(jobs) or "a job of higher priority"


def _customers(programs: Programs, node: str) -> tuple[Job, ...]:
    return customers(jobs_of(programs.read("squeue", "--all")), node)
