"""Which processes hold a node's GPUs, by the node's own readings. It confirms or refutes a scheduler's "no job"."""

from __future__ import annotations

from dataclasses import dataclass

from assay.act.actions.action import ActionContext, EffectFacts, EffectVerification
from assay.model.evidence import read_at_path
from assay.observe.transports.transport_choice import run_remote_probe

PROBE_S = 15.0


@dataclass(frozen=True, slots=True)
class GpuOccupancy:
    """The processes that hold GPUs, the GPUs that could not be read, and why the node gave no reading at all."""

    processes: tuple[str, ...] = ()
    unreadable_gpus: tuple[str, ...] = ()
    read_error: str = ""

    @property
    def uncertainty(self) -> str:
        """What could not be read, "" if everything was."""
        return self.read_error or ("; ".join(self.unreadable_gpus))

    def confirm_drain(self, drained: EffectVerification, *, by_force: bool) -> EffectVerification:
        """Return a scheduler's verification that no job is left, as far as the node confirms it.

        A process refutes it. A GPU that could not be read leaves it open, unless the drain was `by_force`: a broken
        GPU must not keep a node from its repair. If the node gives no reading, the scheduler's word counts.
        """
        facts: EffectFacts = drained.facts | {"processes": [*self.processes], "untold": self.uncertainty}
        if self.processes:
            return EffectVerification(False, f"the scheduler has no job, but {', '.join(self.processes)}", facts)
        if not self.uncertainty:
            return EffectVerification(True, f"{drained.reason}, and no process holds a GPU", facts)
        reason = f"{drained.reason}; whether a process holds a GPU is unknown: {self.uncertainty}"
        return EffectVerification(None if self.unreadable_gpus and not by_force else True, reason, facts)


def read_gpu_occupancy(context: ActionContext, name: str) -> GpuOccupancy:
    """Read from a node which processes hold its GPUs."""
    tree = run_remote_probe(context.fleet.nodes[name], ["--areas", "gpu"], PROBE_S)
    gpus = read_at_path(tree, ("probe", "gpu", "devices"))
    if gpus.kind != "value" or not isinstance(gpus.value, dict):
        return GpuOccupancy(read_error=f"{name} gives no reading of its GPUs: {gpus.reason}")
    processes, unreadable = [], []
    for gpu in gpus.value:
        pids = read_at_path(tree, ("probe", "gpu", "devices", gpu, "processes", "pids"))
        if pids.kind != "value":
            unreadable.append(f"the processes of GPU {gpu} cannot be read: {pids.reason}")
        elif pids.value:
            processes.append(f"process {', '.join(map(str, pids.value))} holds GPU {gpu}")
    return GpuOccupancy(tuple(processes), tuple(unreadable))
