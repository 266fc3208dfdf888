"""Faults of GPUs, as the kernel log, NVML and nvidia-smi show them. A docstring is the line of `assay lab inject`.

Some show only under load: wrong results, slow GPUs and adapters, a diagnosis that fails, drives that forget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from assay.lab.virtual_node_state import VirtualNodeState, append_kernel_line
from assay.model.errors import AssayError
from assay.node.probe.gpu.gpu_device import RECOVERY_ACTIONS, THROTTLE_REASONS

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time


XID_TEXTS = {
    79: "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    48: "pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU.",
}
EVERY_TEST = "*"


def gpu_xid(state: VirtualNodeState, now: datetime, gpu: int, xid: int = 79, times: int = 1) -> None:
    """An XID, in the kernel log and as NVML's event; 79 also takes the GPU off the bus until the next reboot."""
    slot = state["gpus"][gpu]
    slot["lost"] = slot["lost"] or xid == 79
    slot["xids"] = [*slot.get("xids", []), *[xid] * times]
    text = XID_TEXTS.get(xid, "pid=4242, name=python3, Ch 00000008")
    for _ in range(times):
        append_kernel_line(state, now, f"NVRM: Xid (PCI:{slot['pci'][:-2]}): {xid}, {text}")


def gpu_throttled(state: VirtualNodeState, now: datetime, gpu: int, reason: str = "hw_power_brake_slowdown") -> None:
    """A GPU throttled for one of NVML's reasons."""
    state["gpus"][gpu]["throttle"] |= 1 << _numbered(reason, THROTTLE_REASONS)


def gpu_memory_remap(state: VirtualNodeState, now: datetime, gpu: int, failed: bool = False) -> None:
    """A memory row that waits for its remapping at the next reset, or one whose remapping failed."""
    slot = state["gpus"][gpu]
    slot["remap_failed" if failed else "remap_pending"] = 1
    if failed:
        slot["remap_banks"] = {**slot["remap_banks"], "max": slot["remap_banks"]["max"] - 1, "none": 1}


def gpu_nvlink_down(state: VirtualNodeState, now: datetime, gpu: int, links: int = 1) -> None:
    """NVLinks of a GPU that went down."""
    state["gpus"][gpu]["nvlink_up"] -= links


def gpu_recovery(state: VirtualNodeState, now: datetime, gpu: int, action: str = "reset") -> None:
    """A GPU for which the driver asks for a recovery action."""
    state["gpus"][gpu]["recovery_action"] = _numbered(action, RECOVERY_ACTIONS)


def gpu_busy(state: VirtualNodeState, now: datetime, gpu: int, pid: int = 4242, job: int = 0) -> None:
    """A process on a GPU: a leftover one, or one of a running `job` of the lab's scheduler."""
    slot = state["gpus"][gpu]
    jobs = {**slot.get("pid_jobs", {}), str(pid): job} if job else slot.get("pid_jobs", {})
    slot |= {"pids": [*slot["pids"], pid], "pid_jobs": jobs, "memory_used_bytes": 2**30}


def _numbered(word: str, words: tuple[str, ...]) -> int:
    if word not in words:
        raise AssayError(f"{word!r} is not known to NVML", fix=f"one of {', '.join(words)}")
    return words.index(word)


def gpu_computes_wrong(
    state: VirtualNodeState,
    now: datetime,
    gpu: int,
    kind: Literal["permanent", "flip", "burst", "nan", "heat"] = "permanent",
    test: str = EVERY_TEST,
    bit: int = 3,
    rate: float = 1.0,
    side: Literal["result", "send"] = "result",
) -> None:
    """A GPU with wrong results: always the same bit, a flipped bit, 32 neighbours, NaN, or more and more with heat.

    `side`: `send` spoils what it sends to other GPUs.
    """
    chosen = "" if kind in ("nan", "heat") else f",bit={bit}"
    slot = state["gpus"][gpu]
    slot["computes"] = [*slot.get("computes", []), f"kind={kind},test={test},rate={rate},side={side}{chosen}"]


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


def _slow_down(speeds: list[float], gpu: int, percent: float) -> None:
    speeds[gpu] = round(speeds[gpu] * (1 - percent / 100), 2)


GPU_FAULTS: Mapping[str, Callable[..., None]] = {
    "gpu.busy": gpu_busy,
    "gpu.computes-wrong": gpu_computes_wrong,
    "gpu.copies-slowly": gpu_copies_slowly,
    "gpu.fails-diagnosis": gpu_fails_diagnosis,
    "gpu.memory.remap": gpu_memory_remap,
    "gpu.nvlink.down": gpu_nvlink_down,
    "gpu.recovery": gpu_recovery,
    "gpu.slow": gpu_slow,
    "gpu.throttled": gpu_throttled,
    "gpu.xid": gpu_xid,
    "hca.slow": hca_slow,
}
