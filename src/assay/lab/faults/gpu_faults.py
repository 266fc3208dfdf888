"""Faults of GPUs, as the kernel log, NVML and nvidia-smi show them. A docstring is the line of `assay lab inject`.

Some show only under load: wrong results, slow GPUs and adapters, a diagnosis that fails, drives that forget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

from assay.lab.virtual_node_state import VirtualNodeState, append_kernel_line
from assay.model.errors import AssayError
from assay.node.probe.gpu.gpu_device import RECOVERY_ACTIONS, THROTTLE_REASONS

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time


HW_THERMAL_SLOWDOWN = 0x40  # nvmlClocksThrottleReasonHwThermalSlowdown, nvml.h
IN_PROGRESS = 2  # NVML_GPU_FABRIC_STATE_IN_PROGRESS
XID_TEXTS = {
    79: "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    48: "pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU.",
}
EVERY_TEST = "*"


def gpu_missing(state: VirtualNodeState, now: datetime, gpu: int) -> None:
    """A GPU that no longer enumerates."""
    state["gpus"][gpu]["present"] = False


def gpu_lost(state: VirtualNodeState, now: datetime, gpu: int) -> None:
    """A GPU that the driver has lost, until the next reboot; nothing about it is in the kernel log."""
    state["gpus"][gpu]["lost"] = True


def gpu_xid(state: VirtualNodeState, now: datetime, gpu: int, xid: int = 79, times: int = 1) -> None:
    """An XID, in the kernel log and as NVML's event; 79 also takes the GPU off the bus until the next reboot."""
    slot = state["gpus"][gpu]
    slot["lost"] = slot["lost"] or xid == 79
    slot["xids"] = [*slot.get("xids", []), *[xid] * times]
    text = XID_TEXTS.get(xid, "pid=4242, name=python3, Ch 00000008")
    for _ in range(times):
        append_kernel_line(state, now, f"NVRM: Xid (PCI:{slot['pci'][:-2]}): {xid}, {text}")


def load_provokes(state: VirtualNodeState, now: datetime, gpu: int, xid: int = 119) -> None:
    """An XID that the next burn-in raises while it loads the GPU."""
    state["provoked"] = [*state.get("provoked", []), {"gpu": gpu, "xid": xid}]


def gpu_thermal(state: VirtualNodeState, now: datetime, gpu: int, celsius: float = 93.0) -> None:
    """A GPU that runs hot and is throttled."""
    state["gpus"][gpu] |= {"temperature_c": celsius, "throttle": HW_THERMAL_SLOWDOWN}


def gpu_throttled(state: VirtualNodeState, now: datetime, gpu: int, reason: str = "hw_power_brake_slowdown") -> None:
    """A GPU throttled for one of NVML's reasons."""
    state["gpus"][gpu]["throttle"] |= 1 << _numbered(reason, THROTTLE_REASONS)


def gpu_pcie_degraded(state: VirtualNodeState, now: datetime, gpu: int, width: int = 8) -> None:
    """A GPU whose PCIe link trained at a smaller width."""
    state["gpus"][gpu]["pcie_width"] = width


def gpu_memory_uncorrectable(state: VirtualNodeState, now: datetime, gpu: int, count: int = 1) -> None:
    """Uncorrectable memory errors since boot."""
    _count(state["gpus"][gpu], "uncorrected", count)


def gpu_memory_corrected(state: VirtualNodeState, now: datetime, gpu: int, count: int = 20_000) -> None:
    """Memory errors that were corrected, since boot."""
    _count(state["gpus"][gpu], "corrected", count)


def gpu_memory_sram(state: VirtualNodeState, now: datetime, gpu: int, count: int = 4) -> None:
    """Uncorrectable errors in SRAM, more than the driver's threshold."""
    _count(state["gpus"][gpu], "sram_uncorrected", count)
    state["gpus"][gpu]["sram_threshold_exceeded"] = True


def gpu_memory_remap(state: VirtualNodeState, now: datetime, gpu: int, failed: bool = False) -> None:
    """A memory row that waits for its remapping at the next reset, or one whose remapping failed."""
    slot = state["gpus"][gpu]
    slot["remap_failed" if failed else "remap_pending"] = 1
    if failed:
        slot["remap_banks"] = {**slot["remap_banks"], "max": slot["remap_banks"]["max"] - 1, "none": 1}


def gpu_inforom(state: VirtualNodeState, now: datetime, gpu: int) -> None:
    """A GPU whose InfoROM is corrupted."""
    state["gpus"][gpu]["inforom_valid"] = False


def gpu_nvlink_down(state: VirtualNodeState, now: datetime, gpu: int, links: int = 1) -> None:
    """NVLinks of a GPU that went down."""
    state["gpus"][gpu]["nvlink_up"] -= links


def gpu_nvlink_errors(state: VirtualNodeState, now: datetime, gpu: int, link: int = 4, count: int = 40) -> None:
    """An NVLink that recovers repeatedly and loses data."""
    state["gpus"][gpu]["nvlink_errors"] |= {str(link): {"recoveries": count, "crc_errors": count, "replays": count}}


def gpu_fabric(state: VirtualNodeState, now: datetime, gpu: int, state_is: int = IN_PROGRESS) -> None:
    """A GPU that has not joined the NVLink fabric."""
    state["gpus"][gpu]["fabric_state"] = state_is


def gpu_recovery(state: VirtualNodeState, now: datetime, gpu: int, action: str = "reset") -> None:
    """A GPU for which the driver asks for a recovery action."""
    state["gpus"][gpu]["recovery_action"] = _numbered(action, RECOVERY_ACTIONS)


def gpu_busy(state: VirtualNodeState, now: datetime, gpu: int, pid: int = 4242, job: int = 0) -> None:
    """A process on a GPU: a leftover one, or one of a running `job` of the lab's scheduler."""
    slot = state["gpus"][gpu]
    jobs = {**slot.get("pid_jobs", {}), str(pid): job} if job else slot.get("pid_jobs", {})
    slot |= {"pids": [*slot["pids"], pid], "pid_jobs": jobs, "memory_used_bytes": 2**30}


def _count(slot: dict[str, Any], kind: str, count: int) -> None:
    for counter in ("volatile", "aggregate"):
        slot[f"ecc_{counter}_{kind}"] += count


def _numbered(word: str, words: tuple[str, ...]) -> int:
    if word not in words:
        raise AssayError(f"{word!r} is not known to NVML", fix=f"one of {', '.join(words)}")
    return words.index(word)


GPU_FAULTS: Mapping[str, Callable[..., None]] = {
    "gpu.busy": gpu_busy,
    "gpu.fabric": gpu_fabric,
    "gpu.inforom": gpu_inforom,
    "gpu.lost": gpu_lost,
    "gpu.memory.corrected": gpu_memory_corrected,
    "gpu.memory.remap": gpu_memory_remap,
    "gpu.memory.sram": gpu_memory_sram,
    "gpu.memory.uncorrectable": gpu_memory_uncorrectable,
    "gpu.missing": gpu_missing,
    "gpu.nvlink.down": gpu_nvlink_down,
    "gpu.nvlink.errors": gpu_nvlink_errors,
    "gpu.pcie.degraded": gpu_pcie_degraded,
    "gpu.recovery": gpu_recovery,
    "gpu.thermal": gpu_thermal,
    "gpu.throttled": gpu_throttled,
    "gpu.xid": gpu_xid,
    "load.provokes": load_provokes,
}


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
    _plant(state, gpu, f"kind={kind},test={test},rate={rate},side={side}{chosen}")


def gpu_computes_slowly(state: VirtualNodeState, now: datetime, gpu: int, factor: float = 3.0) -> None:
    """A GPU that takes `factor` times as long as the others for every result."""
    _plant(state, gpu, f"kind=slow,factor={factor}")


def gpu_hangs(state: VirtualNodeState, now: datetime, gpu: int, units: int = 20) -> None:
    """A GPU that hangs after so many results under load; the run stops there."""
    _plant(state, gpu, f"kind=hang,from={units}")


def gpu_gives_nothing(state: VirtualNodeState, now: datetime, gpu: int, units: int = 0) -> None:
    """A GPU that gives no more results after `units` of them, while the others go on."""
    _plant(state, gpu, f"kind=vanish,from={units}")


def _plant(state: VirtualNodeState, gpu: int, text: str) -> None:
    slot = state["gpus"][gpu]
    slot["computes"] = [*slot.get("computes", []), text]


COMPUTING_FAULTS: Mapping[str, Callable[..., None]] = {
    "gpu.computes-slowly": gpu_computes_slowly,
    "gpu.computes-wrong": gpu_computes_wrong,
    "gpu.gives-nothing": gpu_gives_nothing,
    "gpu.hangs": gpu_hangs,
}


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


def storage_forgets(state: VirtualNodeState, now: datetime) -> None:
    """Shared storage that returns other data to this node than it wrote."""
    state["load"]["stored"] = False


def memory_forgets(state: VirtualNodeState, now: datetime, errors: int = 7) -> None:
    """Host memory that returns other data than was written."""
    state["active"]["memory_errors"] = errors


def _slow_down(speeds: list[float], gpu: int, percent: float) -> None:
    speeds[gpu] = round(speeds[gpu] * (1 - percent / 100), 2)


LOAD_FAULTS: Mapping[str, Callable[..., None]] = {
    "drives.forget": drives_forget,
    "storage.forgets": storage_forgets,
    "gpu.copies-slowly": gpu_copies_slowly,
    "gpu.fails-diagnosis": gpu_fails_diagnosis,
    "gpu.slow": gpu_slow,
    "hca.slow": hca_slow,
    "memory.forgets": memory_forgets,
}
