"""Reads a GPU's NVLinks (how many are up, each link's speed and errors), and its place in the NVLink fabric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes import byref
from typing import Any

from assay.model.reading import ReadingTree, failed, unsupported, value
from assay.node.probe.gpu.nvml import NvmlGpu, NvmlQuestion
from assay.node.probe.node_access import LazyTree

MAX_LINKS = 36  # NVML_NVLINK_MAX_LINKS
# NVML_FI_DEV_NVLINK_…, scope: the link. From NVLink 5 on the errors have other counters.
NVLINK_FIELDS = {
    "speed_gb_s": 164,  # GET_SPEED
    "replays": 161,  # ERROR_DL_REPLAY
    "recoveries": 162,  # ERROR_DL_RECOVERY
    "crc_errors": 163,  # ERROR_DL_CRC
}
OTHER_FIELDS = {  # for those that a GPU does not support
    "speed_gb_s": 90,  # SPEED_MBPS_COMMON: MB/s each way, as GET_SPEED
    "recoveries": 215,  # COUNT_LINK_RECOVERY_EVENTS
    "crc_errors": 219,  # COUNT_EFFECTIVE_ERRORS: left after forward error correction
}
NVLINK_COUNTERS = {"replays": 0, "recoveries": 1, "crc_errors": 2}  # NVML_NVLINK_ERROR_DL_…, before NVLink 4

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
HEALTH_STATES = (None, True, False)  # by the two bits of each question in the health mask; None: not supported
HEALTH_BITS = {"degraded_bandwidth": 0, "route_recovery": 2, "route_unhealthy": 4, "access_timeout_recovery": 6}
CONFIGURATION_SHIFT = 8
CONFIGURATION_MASK = 0xF


def read_nvlink(gpu: NvmlGpu) -> Callable[[], LazyTree]:
    """Return the question for the branch `nvlink`."""

    def ask() -> LazyTree:
        states, refusal = _link_states(gpu)
        if states:
            return {
                "links": value(len(states)),
                "up": value(sum(states)),
                "link": lambda: _links(gpu, states),
            }
        return refusal if "unsupported" in refusal else failed(f"NVLink 0: {next(iter(refusal.values()))}")

    return ask


def _link_states(gpu: NvmlGpu) -> tuple[list[int], ReadingTree]:
    """Return the state of every link, and NVML's refusal of the first number that is no link."""
    states: list[int] = []
    for link in range(MAX_LINKS):
        leaf = gpu.ask("nvmlDeviceGetNvLinkState", link)
        if "value" not in leaf:
            return states, leaf
        states.append(leaf["value"])
    return states, {}


def _links(gpu: NvmlGpu, states: list[int]) -> ReadingTree:
    leaves = _read_fields(gpu, [(link, name) for link in range(len(states)) for name in NVLINK_FIELDS], NVLINK_FIELDS)
    lacking = [place for place, leaf in leaves.items() if "unsupported" in leaf and place[1] in OTHER_FIELDS]
    leaves |= _read_fields(gpu, lacking, OTHER_FIELDS)
    return {str(link): _link(gpu, link, state, leaves) for link, state in enumerate(states)}


def _read_fields(
    gpu: NvmlGpu, places: list[tuple[int, str]], fields: Mapping[str, int]
) -> dict[tuple[int, str], ReadingTree]:
    """Return a leaf for each link and name, read with one call."""
    leaves = gpu.read_fields([(fields[name], link) for link, name in places]) if places else []
    return dict(zip(places, leaves, strict=True))


def _link(gpu: NvmlGpu, link: int, state: int, leaves: Mapping[tuple[int, str], ReadingTree]) -> ReadingTree:
    branch = {name: leaves[link, name] for name in NVLINK_FIELDS}
    if "value" in branch["speed_gb_s"]:
        branch["speed_gb_s"] = value(branch["speed_gb_s"]["value"] / 1000)
    if "unsupported" in branch["recoveries"]:
        for name, number in NVLINK_COUNTERS.items():
            branch[name] = gpu.ask("nvmlDeviceGetNvLinkErrorCounter", link, number)
    return {"up": value(bool(state)), **branch}


def read_fabric(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the branch `fabric`; it uses the newest form of the call that this driver knows."""
    bindings = gpu.nvml.bindings
    return gpu.ask_first_supported(
        _ask_fabric_info(gpu, "nvmlDeviceGetGpuFabricInfoV", bindings.c_nvmlGpuFabricInfo_v3_t),
        _ask_fabric_info(gpu, "nvmlDeviceGetGpuFabricInfoV", bindings.c_nvmlGpuFabricInfo_v2_t),
        _ask_fabric_info(gpu, "nvmlDeviceGetGpuFabricInfo", bindings.c_nvmlGpuFabricInfo_t),
    )


def _ask_fabric_info(gpu: NvmlGpu, name: str, make_info: Callable[[], Any]) -> NvmlQuestion:
    def ask() -> ReadingTree:
        info = make_info()
        branch: ReadingTree = gpu.ask(name, byref(info), into=lambda _: _fabric_branch(gpu, info))
        return branch

    return ask


def _fabric_branch(gpu: NvmlGpu, info: Any) -> ReadingTree:
    digits = bytes(info.clusterUuid).hex()  # the module uuid would cost each probe more than all else here
    cluster = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    health = getattr(info, "healthMask", 0)
    summary = getattr(info, "healthSummary", 0)
    error = str(gpu.nvml.Error(info.status)) if info.status else "success"
    if not info.state:
        return unsupported("this GPU is part of no NVLink fabric")
    return {
        "state": _name(FABRIC_STATES, info.state),
        "status": value(error.casefold().replace(" ", "_")),
        "clique": value(info.cliqueId),
        "cluster": value(cluster),
        "health": _health(health, summary),
    }


def _health(mask: int, summary: int) -> ReadingTree:
    return {
        "summary": _name(HEALTH_SUMMARIES, summary),
        **{name: _name(HEALTH_STATES, mask >> bit & 0x3) for name, bit in HEALTH_BITS.items()},
        "incorrect_configuration": _name(CONFIGURATION_ERRORS, mask >> CONFIGURATION_SHIFT & CONFIGURATION_MASK),
    }


def _name(names: tuple[Any, ...], number: int) -> ReadingTree:
    """Return the leaf for a number's name: unsupported where the name is empty, `number 9` where it is newer."""
    if number < len(names) and names[number] in (None, ""):
        return unsupported("this driver does not say")
    return value(names[number] if number < len(names) else f"number {number}")
