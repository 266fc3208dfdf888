"""Whether the fabric manager has made a GPU part of its NVLink fabric, of which one, and how well that is."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from ctypes import byref
from typing import Any

from assay.model.reading import unsupported, value
from assay.probe.files import Tree
from assay.probe.nvml import Gpu, Question

STATES = ("not_supported", "not_started", "in_progress", "completed")  # NVML_GPU_FABRIC_STATE_…
SUMMARIES = ("", "healthy", "unhealthy", "limited_capacity")  # NVML_GPU_FABRIC_HEALTH_SUMMARY_…
MISTAKES = (  # NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_…
    "",
    "none",
    "incorrect_sysguid",
    "incorrect_chassis_sn",
    "no_partition",
    "insufficient_nvlinks",
    "incompatible_gpu_fw",
    "invalid_location",
    "gpu_state_invalid",
)
TRUTHS = (None, True, False)  # as the two bits of the health mask say it; None: not supported
BITS = {"degraded_bandwidth": 0, "route_recovery": 2, "route_unhealthy": 4, "access_timeout_recovery": 6}
MISTAKE_BIT, MISTAKE_WIDTH = 8, 0xF


def read_fabric(gpu: Gpu) -> Question:
    """Return the question for the branch `fabric`; the newest form of the call that this driver knows answers it."""
    bindings = gpu.nvml.bindings
    return gpu.either(
        _asks(gpu, "nvmlDeviceGetGpuFabricInfoV", bindings.c_nvmlGpuFabricInfo_v3_t),
        _asks(gpu, "nvmlDeviceGetGpuFabricInfoV", bindings.c_nvmlGpuFabricInfo_v2_t),
        _asks(gpu, "nvmlDeviceGetGpuFabricInfo", bindings.c_nvmlGpuFabricInfo_t),
    )


def _asks(gpu: Gpu, name: str, made: Callable[[], Any]) -> Question:
    def ask() -> Tree:
        info = made()
        told: Tree = gpu.ask(name, byref(info), into=lambda _: _branch(gpu, info))
        return told

    return ask


def _branch(gpu: Gpu, info: Any) -> Tree:
    cluster = str(uuid.UUID(bytes=bytes(info.clusterUuid)))
    health, summary = getattr(info, "healthMask", 0), getattr(info, "healthSummary", 0)
    why = str(gpu.nvml.Error(info.status)) if info.status else ""
    return fabric_branch(info.state, info.status, info.cliqueId, cluster, health, summary, why)


def fabric_branch(
    state: int, status: int, clique: int, cluster: str, health: int, summary: int, why: str = "Unknown Error"
) -> Tree:
    """Return the branch for NVML's numbers; `why` is the text of a status that is not 0."""
    if not state:
        return unsupported("this GPU is part of no NVLink fabric")
    return {
        "state": _word(STATES, state),
        "status": value(why.casefold().replace(" ", "_") if status else "success"),
        "clique": value(clique),
        "cluster": value(cluster),
        "health": _health(health, summary),
    }


def _health(mask: int, summary: int) -> Tree:
    return {
        "summary": _word(SUMMARIES, summary),
        **{name: _word(TRUTHS, mask >> bit & 0x3) for name, bit in BITS.items()},
        "incorrect_configuration": _word(MISTAKES, mask >> MISTAKE_BIT & MISTAKE_WIDTH),
    }


def _word(words: tuple[Any, ...], number: int) -> Tree:
    """Return the leaf for a number's word; the first that says nothing is unsupported, a newer one its number."""
    if number < len(words) and words[number] in (None, ""):
        return unsupported("this driver does not say")
    return value(words[number] if number < len(words) else f"number {number}")
