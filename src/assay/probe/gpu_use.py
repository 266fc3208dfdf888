"""How a GPU is set up and used: partitions, modes, processes, load; and what the driver asks to have done with it."""

from __future__ import annotations

from typing import Any

from assay.model.reading import value
from assay.probe.files import Tree
from assay.probe.lazy import Lazy
from assay.probe.nvml import Gpu, Question

COMPUTE_MODES = ("default", "exclusive_thread", "prohibited", "exclusive_process")  # nvmlComputeMode_t
RECOVERY_ACTION = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
RECOVERY_ACTIONS = (  # nvmlDeviceGpuRecoveryAction_t, as nvidia-smi writes them
    "none",
    "reset",
    "reboot",
    "drain_p2p",
    "drain_and_reset",
    "recover_imex_domain",
    "bus_reset",
    "system_reboot",
)
KINDS_OF_PROCESS = ("Compute", "Graphics", "MPSCompute")


def read_use(gpu: Gpu) -> Lazy:
    """Return `mig`, `persistence`, `compute_mode`, `processes`, `utilisation` and `recovery_action`."""
    return {
        "mig": gpu.asks_for(_mig, "nvmlDeviceGetMigMode"),
        "persistence": gpu.asks("nvmlDeviceGetPersistenceMode", then=bool),
        "compute_mode": gpu.asks("nvmlDeviceGetComputeMode", then=lambda mode: _word(COMPUTE_MODES, mode)),
        "processes": lambda: _processes(gpu),
        "utilisation": gpu.asks_for(_utilisation, "nvmlDeviceGetUtilizationRates"),
        "recovery_action": lambda: _recovery_action(gpu),
    }


def _word(words: tuple[str, ...], number: int) -> str:
    return words[number] if number < len(words) else f"number {number}"


def _mig(modes: list[int]) -> Tree:
    return {"enabled": value(bool(modes[0])), "pending": value(bool(modes[1]))}


def _utilisation(rates: Any) -> Tree:
    return {"gpu_percent": value(rates.gpu), "memory_percent": value(rates.memory)}


def _recovery_action(gpu: Gpu) -> Tree:
    (leaf,) = gpu.fields([(RECOVERY_ACTION, 0)])
    return value(_word(RECOVERY_ACTIONS, leaf["value"])) if "value" in leaf else leaf


def _processes(gpu: Gpu) -> Tree:
    """Return how many processes hold the GPU, and which; a kind that this driver cannot list counts none."""
    pids: set[int] = set()
    answers: list[Tree] = [_pids(gpu, kind)() for kind in KINDS_OF_PROCESS]
    for answer in answers:
        if "value" not in answer and ("failed" in answer or answer is answers[0]):
            return answer
        pids |= set(answer.get("value", ()))
    return {"count": value(len(pids)), "pids": value(sorted(pids))}


def _pids(gpu: Gpu, kind: str) -> Question:
    def numbers(processes: Any) -> list[int]:
        return [process.pid for process in processes]

    name = f"nvmlDeviceGet{kind}RunningProcesses"
    return gpu.either(gpu.asks(f"{name}_v3", then=numbers), gpu.asks(f"{name}_v2", then=numbers))
