"""Faults that only show under load: GPUs and adapters that are slow, a diagnosis that fails, drives that forget.

A docstring is the line of `assay lab inject`.
"""

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time
from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from assay.lab.virtual_node_state import VirtualNodeState


def gpu_slow(state: VirtualNodeState, now: datetime, gpu: int, percent: float = 20) -> None:
    """A GPU that multiplies so much more slowly on its tensor cores."""
    _slow_down(state["load"]["tensor_gflops"], gpu, percent)


def gpu_copies_slowly(state: VirtualNodeState, now: datetime, gpu: int, percent: float = 50) -> None:
    """A GPU that copies so much more slowly from and to the host, and from and to other GPUs."""
    for name in ("host_copy_gb_s", "peer_copy_gb_s"):
        _slow_down(state["load"][name], gpu, percent)


def gpu_fails_diagnosis(state: VirtualNodeState, now: datetime, gpu: int, test: str = "memory") -> None:
    """A GPU that fails a test of `dcgmi diag`."""
    pci = state["gpus"][gpu]["pci"]
    state["load"]["diagnosis"].setdefault(str(gpu), {})[test] = f"GPU {gpu} ({pci}) failed the test"


def hca_slow(state: VirtualNodeState, now: datetime, hca: str, percent: float = 50) -> None:
    """An adapter that writes so much more slowly although its link is well."""
    next(each for each in state["hcas"] if each["name"] == hca)
    speeds = state["load"]["write_gbps"]
    speeds[hca] = round(speeds[hca] * (1 - percent / 100), 2)


def drives_forget(state: VirtualNodeState, now: datetime) -> None:
    """Local drives that return other data than was written."""
    state["load"]["intact"] = False


def memory_forgets(state: VirtualNodeState, now: datetime, errors: int = 7) -> None:
    """Host memory that returns other data than was written."""
    state["active"]["memory_errors"] = errors


def _slow_down(speeds: list[float], gpu: int, percent: float) -> None:
    speeds[gpu] = round(speeds[gpu] * (1 - percent / 100), 2)


LOAD_FAULTS: Mapping[str, Callable[..., None]] = {
    "drives.forget": drives_forget,
    "gpu.copies-slowly": gpu_copies_slowly,
    "gpu.fails-diagnosis": gpu_fails_diagnosis,
    "gpu.slow": gpu_slow,
    "hca.slow": hca_slow,
    "memory.forgets": memory_forgets,
}
