"""Which processes hold a node's GPUs, by the node's own readings. It bears out or refutes that no job is on the node.

Where no scheduler places jobs, nothing else knows of jobs: a node that gives no reading then is not known to be empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from assay.act.actions.action import ActionContext, EffectFacts, EffectVerification
from assay.adapters.scheduler import CustomerJob, SchedulerNodeStatus, StatusReadings, format_jobs
from assay.model.errors import AssayError
from assay.model.evidence import read_at_path
from assay.model.facts import frozen
from assay.model.timestamps import format_duration
from assay.observe.transports.transport import run_remote_probe

GPU_PROBE_S = 15.0
NOTHING_PLACES_JOBS = "no scheduler places jobs on this node"


@frozen
class GpuOccupancy:
    """The processes that hold GPUs, the GPUs that could not be read, and why the node gave no reading at all."""

    processes: tuple[str, ...] = ()
    unreadable_gpus: tuple[str, ...] = ()
    read_error: str = ""

    @property
    def uncertainty(self) -> str:
        """What could not be read, "" if everything was."""
        return self.read_error or ("; ".join(self.unreadable_gpus))

    def confirm_drain(self, status: SchedulerNodeStatus, reason: str, *, by_force: bool) -> EffectVerification:
        """Say whether no job is left: `status` is the scheduler's word that it has none, `reason` says so in words.

        A process refutes it. Some GPUs that could not be read leave it open, but for a drain `by_force`: a broken one
        must not keep a node from its repair. Of a node that gives no reading, a scheduler's word that it has no job
        there counts; where no scheduler places jobs, nobody knows.
        """
        facts: EffectFacts = {"processes": [*self.processes], "untold": self.uncertainty}
        reason = reason if status.places_jobs else NOTHING_PLACES_JOBS
        if self.processes:
            return EffectVerification(False, f"{reason}, but {', '.join(self.processes)}", facts)
        if not self.uncertainty:
            return EffectVerification(True, f"{reason}, and no process holds a GPU", facts)
        reason = f"{reason}; whether a process holds a GPU is not known: {self.uncertainty}"
        is_enough = by_force or not self.unreadable_gpus if status.places_jobs else by_force and not self.read_error
        return EffectVerification(True if is_enough else None, reason, facts)


def read_gpu_occupancy(context: ActionContext, name: str) -> GpuOccupancy:
    """Read from a node which processes hold its GPUs."""
    return judge_gpu_occupancy(run_remote_probe(context.fleet.nodes[name], ["--areas", "gpu"], GPU_PROBE_S), name)


def judge_gpu_occupancy(channels: Mapping[str, Any], name: str) -> GpuOccupancy:
    """Return what the channels of an evidence document say. Without any GPU that could be read, they say nothing."""
    gpus = read_at_path(channels, ("probe", "gpu", "devices"))
    if gpus.kind != "value" or not isinstance(gpus.value, dict):
        return GpuOccupancy(read_error=f"{name} gives no reading of its GPUs: {gpus.reason}")
    processes, unreadable = [], []
    for gpu in gpus.value:
        pids = read_at_path(channels, ("probe", "gpu", "devices", gpu, "processes", "pids"))
        if pids.kind != "value":
            unreadable.append(f"the processes of GPU {gpu} cannot be read: {pids.reason}")
        elif pids.value:
            processes.append(f"process {', '.join(map(str, pids.value))} holds GPU {gpu}")
    error = f"{name} gives no reading of any GPU" if len(unreadable) == len(gpus.value) else ""
    return GpuOccupancy(tuple(processes), tuple(unreadable), error and "; ".join([error, *unreadable]))


def require_empty(context: ActionContext, name: str, status: SchedulerNodeStatus, purpose: str) -> None:
    """Raise AssayError unless no customer's job is on a node, by its scheduler and its own reading.

    The node's reading may be missing only where a scheduler says that it has no job there.
    """
    if running := [job for job in status.jobs if not job.is_lost]:
        raise AssayError(f"{purpose} under {format_jobs(running)}", where=name)
    empty = read_gpu_occupancy(context, name).confirm_drain(status, "the scheduler has no job", by_force=True)
    if not empty.done:
        raise AssayError(f"{purpose} while a job may run: {empty.reason}", where=name)


def add_processes(context: ActionContext, readings: StatusReadings) -> StatusReadings:
    """Return the readings with the processes on GPUs as the jobs of nodes on which no scheduler places jobs.

    They are those of the last evidence. Where that is missing, silent or too old, nobody knows the jobs.
    """
    statuses, errors = dict(readings.statuses), dict(readings.errors)
    for name, status in readings.statuses.items():
        if not status.places_jobs:
            seen = _read_last_occupancy(context, name)
            if seen.read_error:
                errors[name] = f"{NOTHING_PLACES_JOBS}, and {seen.read_error}"
                del statuses[name]
            else:
                statuses[name] = replace(status, jobs=tuple(CustomerJob(text, "", "", "") for text in seen.processes))
    return StatusReadings(readings.nodes, statuses, errors)


def _read_last_occupancy(context: ActionContext, name: str) -> GpuOccupancy:
    with suppress(AssayError):  # a damaged file, which its checks report
        if evidence := context.evidence.latest(name):
            longest = timedelta(minutes=context.fleet.policy.silence.readings_minutes)
            if context.clock.now() - evidence.at > longest:
                return GpuOccupancy(read_error=f"its last reading is older than {format_duration(longest)}")
            seen = judge_gpu_occupancy(evidence.channels, name)
            return replace(seen, read_error="it gives no reading of its GPUs") if seen.read_error else seen
    return GpuOccupancy(read_error="it was not read yet")
