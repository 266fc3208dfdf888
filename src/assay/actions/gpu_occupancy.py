"""Who is on a node by its own readings: the processes that hold its GPUs, whatever a scheduler says of jobs."""

from __future__ import annotations

from dataclasses import dataclass

from assay.actions.action import ActionContext, EffectFacts, EffectVerification
from assay.model.evidence import read_at_path
from assay.observe.transports.transport_choice import run_remote_probe

PROBE_S = 15.0


@dataclass(frozen=True, slots=True)
class GpuOccupancy:
    """What a node tells of its GPUs: which processes hold them, which GPUs cannot tell, and why it tells nothing."""

    processes: tuple[str, ...] = ()
    unreadable_gpus: tuple[str, ...] = ()
    read_error: str = ""

    @property
    def uncertainty(self) -> str:
        """What cannot be told, in words, "" where everything was."""
        return self.read_error or ("; ".join(self.unreadable_gpus))

    def confirm_drain(self, drained: EffectVerification, *, by_force: bool) -> EffectVerification:
        """Return a scheduler's word that no job is left, as far as the node bears it out.

        A process refutes it. A GPU that cannot tell leaves it open, but for a node that is taken out `by_force`: what
        is wrong with it must not keep it from its repair. A node that tells nothing at all is its scheduler's.
        """
        facts: EffectFacts = drained.facts | {"processes": [*self.processes], "untold": self.uncertainty}
        if self.processes:
            return EffectVerification(False, f"its scheduler names no job, but {', '.join(self.processes)}", facts)
        if not self.uncertainty:
            return EffectVerification(True, f"{drained.reason}, and no process holds a GPU", facts)
        told = f"{drained.reason}; whether a process is left cannot be told: {self.uncertainty}"
        return EffectVerification(None if self.unreadable_gpus and not by_force else True, told, facts)


def read_gpu_occupancy(ctx: ActionContext, name: str) -> GpuOccupancy:
    """Ask a node itself which processes hold its GPUs."""
    tree = run_remote_probe(ctx.fleet.nodes[name], [], PROBE_S)
    gpus = read_at_path(tree, ("probe", "gpu", "devices"))
    if gpus.kind != "value" or not isinstance(gpus.value, dict):
        return GpuOccupancy(read_error=f"{name} tells nothing of its GPUs: {gpus.reason}")
    holding, silent = [], []
    for gpu in gpus.value:
        pids = read_at_path(tree, ("probe", "gpu", "devices", gpu, "processes", "pids"))
        if pids.kind != "value":
            silent.append(f"the GPU {gpu} is silent: {pids.reason}")
        elif pids.value:
            holding.append(f"process {', '.join(map(str, pids.value))} holds the GPU {gpu}")
    return GpuOccupancy(tuple(holding), tuple(silent))
