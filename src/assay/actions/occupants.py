"""Who is on a node by its own readings: the processes that hold its GPUs, whatever a scheduler says of jobs."""

from __future__ import annotations

from dataclasses import dataclass

from assay.actions.action import Context, Facts, Verification
from assay.model.evidence import read
from assay.observe.reach import probe

PROBE_S = 15.0


@dataclass(frozen=True, slots=True)
class Occupants:
    """What a node tells of its GPUs: which processes hold them, which GPUs cannot tell, and why it tells nothing."""

    holding: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    unread: str = ""

    @property
    def doubt(self) -> str:
        """What cannot be told, in words, "" where everything was."""
        return self.unread or ("; ".join(self.silent))

    def settle(self, drained: Verification, *, by_force: bool) -> Verification:
        """Return a scheduler's word that no job is left, as far as the node bears it out.

        A process refutes it. A GPU that cannot tell leaves it open, but for a node that is taken out `by_force`: what
        is wrong with it must not keep it from its repair. A node that tells nothing at all is its scheduler's.
        """
        facts: Facts = drained.facts | {"processes": [*self.holding], "untold": self.doubt}
        if self.holding:
            return Verification(False, f"its scheduler names no job, but {', '.join(self.holding)}", facts)
        if not self.doubt:
            return Verification(True, f"{drained.reason}, and no process holds a GPU", facts)
        told = f"{drained.reason}; whether a process is left cannot be told: {self.doubt}"
        return Verification(None if self.silent and not by_force else True, told, facts)


def occupants(ctx: Context, name: str) -> Occupants:
    """Ask a node itself which processes hold its GPUs."""
    tree = probe(ctx.fleet.nodes[name], [], PROBE_S)
    gpus = read(tree, ("probe", "gpu", "devices"))
    if gpus.kind != "value" or not isinstance(gpus.value, dict):
        return Occupants(unread=f"{name} tells nothing of its GPUs: {gpus.reason}")
    holding, silent = [], []
    for gpu in gpus.value:
        pids = read(tree, ("probe", "gpu", "devices", gpu, "processes", "pids"))
        if pids.kind != "value":
            silent.append(f"the GPU {gpu} is silent: {pids.reason}")
        elif pids.value:
            holding.append(f"process {', '.join(map(str, pids.value))} holds the GPU {gpu}")
    return Occupants(tuple(holding), tuple(silent))
