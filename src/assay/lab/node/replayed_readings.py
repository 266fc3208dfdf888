"""The probe's `gpu` branch, made from the stub's answers: NVML readings for a machine without a C compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.lab.node.stub import Flat, stub_answers
from assay.lab.virtual_node_state import VirtualNodeState
from assay.model.reading import unsupported, value
from assay.node.probe.gpu.gpu_device import COMPUTE_MODES, RECOVERY_ACTIONS, name_throttle_reasons
from assay.node.probe.gpu.nvlink import build_fabric_branch
from assay.node.probe.gpu.nvml import GPU_LOST

ReadingTree = dict[str, Any]
StubField = tuple[str, Callable[[Any], Any]]
_CLOCKS = (
    *("sm_mhz", "sm_max_mhz", "memory_mhz", "memory_max_mhz"),
    *("application_mhz", "application_memory_mhz", "application_default_mhz"),
)
_ERRORS = [f"{place}{kind}" for place in ("", "sram_", "dram_") for kind in ("corrected", "uncorrected")]
_THROTTLED = ("thermal", "power_cap", "software_thermal", "hardware_thermal", "power_brake")


def _unchanged(answer: Any) -> Any:
    return answer


def _plain_fields(*names: str, prefix: str = "") -> dict[str, StubField]:
    return {name: (prefix + name, _unchanged) for name in names}


def _boolean_fields(*names: str, prefix: str = "") -> dict[str, StubField]:
    return {name: (prefix + name, bool) for name in names}


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000


def _pids(listed: str) -> list[int]:
    return sorted(int(pid) for pid in listed.split())


DEVICE: Mapping[str, Any] = {
    **_plain_fields("name", "serial", "uuid", "board_part", "vbios", "gsp"),
    "inforom": _plain_fields("image", "oem", "ecc", "power", prefix="inforom_")
    | _boolean_fields("valid", prefix="inforom_"),
    "pcie": _plain_fields("generation", "generation_max", "width", "width_max", "replays", prefix="pcie_"),
    "clocks": _plain_fields(*_CLOCKS),
    "throttle": ("throttle", name_throttle_reasons),
    "throttled": {
        f"{reason}_us": (f"throttled_{reason}_ns", lambda nanoseconds: nanoseconds // 1000) for reason in _THROTTLED
    },
    "temperature": {
        "gpu_c": ("temperature_c", _unchanged),
        "memory_c": ("memory_temperature_c", _unchanged),
        **_plain_fields("margin_c", "shutdown_c", "slowdown_c", "operating_max_c", "memory_max_c"),
    },
    "power": {
        "draw_w": ("power_mw", _watts),
        **{f"{which}_w": (f"power_{which}_mw", _watts) for which in ("limit", "requested", "default", "max")},
    },
    "ecc": {
        **_boolean_fields("enabled", "pending", prefix="ecc_"),
        "volatile": _plain_fields(*_ERRORS, prefix="ecc_volatile_"),
        "aggregate": _plain_fields(*_ERRORS, prefix="ecc_aggregate_"),
        **_boolean_fields("sram_threshold_exceeded"),
    },
    "retired_pages": _plain_fields("single_bit", "double_bit", prefix="retired_")
    | _boolean_fields("pending", prefix="retired_"),
    "remap": {
        **_plain_fields("correctable", "uncorrectable", prefix="remap_"),
        **_boolean_fields("pending", "failed", prefix="remap_"),
        "histogram": _plain_fields("max", "high", "partial", "low", "none", prefix="remap_banks_"),
    },
    "repair": {"channel_pending": ("repair_channel", bool), "tpc_pending": ("repair_tpc", bool)},
    "memory": _plain_fields("total_bytes", "used_bytes", prefix="memory_"),
    "mig": _boolean_fields("enabled", "pending", prefix="mig_"),
    **_boolean_fields("persistence"),
    "compute_mode": ("compute_mode", lambda mode: COMPUTE_MODES[mode]),
    "processes": {"count": ("pids", lambda listed: len(_pids(listed))), "pids": ("pids", _pids)},
    "utilisation": _plain_fields("gpu_percent", "memory_percent"),
    "recovery_action": ("recovery_action", lambda action: RECOVERY_ACTIONS[action]),
}


def replay_nvml_readings(state: VirtualNodeState) -> ReadingTree:
    """Return the `gpu` branch that the probe would read through the stub from a node in this state."""
    flat = stub_answers(state)
    slots = str(flat["slots"]).split()
    return {
        "source": value("nvml"),
        "driver": value(flat["driver"]),
        "cuda": value(f"{int(flat['cuda']) // 1000}.{int(flat['cuda']) % 1000 // 10}"),
        "nvml": value(flat["nvml"]),
        "count": value(flat["count"]),
        "devices": {str(flat[f"g{slot}.pci"]).lower(): _device(flat, slot, index) for index, slot in enumerate(slots)},
    }


def _device(flat: Flat, slot: str, index: int) -> ReadingTree:
    answer = {key.removeprefix(f"g{slot}."): flat[key] for key in flat if key.startswith(f"g{slot}.")}
    if answer["rc"]:
        return GPU_LOST
    device = {"index": value(index), **_leaves(DEVICE, answer)}
    memory = device["memory"]
    memory["free_bytes"] = value(memory["total_bytes"]["value"] - memory["used_bytes"]["value"])
    return {**device, "nvlink": _nvlink(answer), "fabric": _fabric(answer)}


def _leaves(names: Mapping[str, Any], answer: Flat) -> ReadingTree:
    tree: ReadingTree = {}
    for name, field in names.items():
        if isinstance(field, Mapping):
            tree[name] = _leaves(field, answer)
        else:
            key, convert = field
            tree[name] = value(convert(answer[key])) if key in answer else unsupported("Not Supported")
    return tree


def _nvlink(answer: Flat) -> ReadingTree:
    links = int(answer["nvlink_links"])
    up = int(answer["nvlink_up"])
    return {
        "links": value(links),
        "up": value(min(links, up)),
        "link": {str(link): _link(answer, link, up=link < up) for link in range(links)},
    }


def _link(answer: Flat, link: int, *, up: bool) -> ReadingTree:
    counted = {name: value(answer.get(f"nvlink{link}_{name}", 0)) for name in ("recoveries", "crc_errors")}
    replays = value(answer.get(f"nvlink{link}_replays", 0))
    return {
        "up": value(up),
        "speed_gb_s": value(int(answer["nvlink_speed_mb_s"]) / 1000),
        "replays": replays if int(answer["nvlink_generation"]) < 5 else unsupported("Not Supported"),
        **counted,
    }


def _fabric(answer: Flat) -> ReadingTree:
    state, status, clique, health, summary = (
        int(answer[f"fabric_{number}"]) for number in ("state", "status", "clique", "health", "summary")
    )
    return build_fabric_branch(state, status, clique, str(answer["fabric_cluster"]), health, summary)
