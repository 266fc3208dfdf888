"""Whether the fabric manager has made a GPU part of its NVLink fabric, of which one, and how well that is.

A GPU's NVLinks: how many there are and are up, and each link's speed and errors.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from ctypes import byref
from typing import Any

from assay.model.reading import failed, unsupported, value
from assay.probe.gpu.nvml import NvmlGpu, NvmlQuestion
from assay.probe.node_access import LazyTree, Tree

FABRIC_STATES = ("not_supported", "not_started", "in_progress", "completed")  # NVML_GPU_FABRIC_STATE_…
HEALTH_SUMMARIES = ("", "healthy", "unhealthy", "limited_capacity")  # NVML_GPU_FABRIC_HEALTH_SUMMARY_…
CONFIGURATION_ERRORS = (  # NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_…
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


def read_fabric(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the branch `fabric`; the newest form of the call that this driver knows answers it."""
    bindings = gpu.nvml.bindings
    return gpu.ask_first_supported(
        _asks(gpu, "nvmlDeviceGetGpuFabricInfoV", bindings.c_nvmlGpuFabricInfo_v3_t),
        _asks(gpu, "nvmlDeviceGetGpuFabricInfoV", bindings.c_nvmlGpuFabricInfo_v2_t),
        _asks(gpu, "nvmlDeviceGetGpuFabricInfo", bindings.c_nvmlGpuFabricInfo_t),
    )


def _asks(gpu: NvmlGpu, name: str, made: Callable[[], Any]) -> NvmlQuestion:
    def ask() -> Tree:
        info = made()
        told: Tree = gpu.ask(name, byref(info), into=lambda _: _branch(gpu, info))
        return told

    return ask


def _branch(gpu: NvmlGpu, info: Any) -> Tree:
    cluster = str(uuid.UUID(bytes=bytes(info.clusterUuid)))
    health, summary = getattr(info, "healthMask", 0), getattr(info, "healthSummary", 0)
    why = str(gpu.nvml.Error(info.status)) if info.status else ""
    return build_fabric_branch(info.state, info.status, info.cliqueId, cluster, health, summary, why)


def build_fabric_branch(
    state: int, status: int, clique: int, cluster: str, health: int, summary: int, why: str = "Unknown Error"
) -> Tree:
    """Return the branch for NVML's numbers; `why` is the text of a status that is not 0."""
    if not state:
        return unsupported("this GPU is part of no NVLink fabric")
    return {
        "state": _word(FABRIC_STATES, state),
        "status": value(why.casefold().replace(" ", "_") if status else "success"),
        "clique": value(clique),
        "cluster": value(cluster),
        "health": _health(health, summary),
    }


def _health(mask: int, summary: int) -> Tree:
    return {
        "summary": _word(HEALTH_SUMMARIES, summary),
        **{name: _word(TRUTHS, mask >> bit & 0x3) for name, bit in BITS.items()},
        "incorrect_configuration": _word(CONFIGURATION_ERRORS, mask >> MISTAKE_BIT & MISTAKE_WIDTH),
    }


def _word(words: tuple[Any, ...], number: int) -> Tree:
    """Return the leaf for a number's word; the first that says nothing is unsupported, a newer one its number."""
    if number < len(words) and words[number] in (None, ""):
        return unsupported("this driver does not say")
    return value(words[number] if number < len(words) else f"number {number}")


MAX_LINKS = 36  # NVML_NVLINK_MAX_LINKS
# NVML_FI_DEV_NVLINK_…, scope: the link. From NVLink 5 on the errors have other counters.
NVLINK_FIELDS = {
    "speed_gb_s": (164, 90),  # GET_SPEED, SPEED_MBPS_COMMON: MB/s each way
    "replays": (161,),  # ERROR_DL_REPLAY
    "recoveries": (162, 215),  # ERROR_DL_RECOVERY, COUNT_LINK_RECOVERY_EVENTS
    "crc_errors": (163, 219),  # ERROR_DL_CRC, COUNT_EFFECTIVE_ERRORS: left after forward error correction
}
FIELD_LIST = [(name, field) for name, fields in NVLINK_FIELDS.items() for field in fields]
NVLINK_COUNTERS = {"replays": 0, "recoveries": 1, "crc_errors": 2}  # NVML_NVLINK_ERROR_DL_…, before NVLink 4


def read_nvlink(gpu: NvmlGpu) -> Callable[[], LazyTree]:
    """Return the question for the branch `nvlink`."""

    def ask() -> LazyTree:
        states, refusal = _states(gpu)
        if states:
            return {
                "links": value(len(states)),
                "up": value(sum(states)),
                "link": lambda: _links(gpu, states),
            }
        return refusal if "unsupported" in refusal else failed(f"NVLink 0: {next(iter(refusal.values()))}")

    return ask


def _states(gpu: NvmlGpu) -> tuple[list[int], Tree]:
    """Return the state of every link, and what was said to the first that is none: NVML refuses its number."""
    states: list[int] = []
    for link in range(MAX_LINKS):
        leaf = gpu.ask("nvmlDeviceGetNvLinkState", link)
        if "value" not in leaf:
            return states, leaf
        states.append(leaf["value"])
    return states, {}


def _links(gpu: NvmlGpu, states: list[int]) -> Tree:
    leaves = gpu.read_fields([(field, link) for link in range(len(states)) for _, field in FIELD_LIST])
    share = len(FIELD_LIST)
    links = {}
    for link, state in enumerate(states):
        named = _named(leaves[link * share : (link + 1) * share])
        if "unsupported" in named["recoveries"]:
            named |= {
                name: gpu.ask("nvmlDeviceGetNvLinkErrorCounter", link, number)
                for name, number in NVLINK_COUNTERS.items()
            }
        links[str(link)] = {"up": value(bool(state)), **named}
    return links


def _named(leaves: list[Tree]) -> Tree:
    """Return one link's fields by name, of each the first that this GPU has."""
    found: dict[str, Any] = {}
    for (name, _), leaf in zip(FIELD_LIST, leaves, strict=True):
        if name not in found or "unsupported" in found[name]:
            found[name] = leaf
    if "value" in found["speed_gb_s"]:
        found["speed_gb_s"] = value(found["speed_gb_s"]["value"] / 1000)
    return found
