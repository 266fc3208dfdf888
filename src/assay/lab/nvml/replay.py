"""NVML readings without NVML: the `gpu` branch of the probe, for a machine with no C compiler."""

from __future__ import annotations

from typing import Any

from assay.lab.nvml.answers import answers
from assay.lab.world import State
from assay.model.reading import failed, value
from assay.probe.gpu_device import throttle_names

Tree = dict[str, Any]


def replay(state: State) -> Tree:
    """Return what the probe would read through the stub from a node in this state."""
    flat = answers(state)
    count = int(flat["count"])
    return {
        "driver": value(flat["driver"]),
        "count": value(count),
        "devices": {str(flat[f"g{index}.pci"]).lower(): _device(flat, index) for index in range(count)},
    }


def _device(flat: dict[str, int | str], index: int) -> Tree:
    answer = {key.partition(".")[2]: flat[key] for key in flat if key.startswith(f"g{index}.")}
    if answer["rc"]:
        return failed("GPU is lost")

    def leaves(prefix: str, *names: str) -> Tree:
        return {name: value(answer[prefix + name]) for name in names}

    return {
        "index": value(index),
        **leaves("", "name", "serial", "uuid", "vbios"),
        "pcie": leaves("pcie_", "generation", "width", "replays"),
        "temperature": {"gpu_c": value(answer["temperature_c"]), "memory_c": value(answer["memory_temperature_c"])},
        "power": {
            "draw_w": value(int(answer["power_mw"]) / 1000),
            "limit_w": value(int(answer["power_limit_mw"]) / 1000),
        },
        "throttle": value(throttle_names(int(answer["throttle"]))),
        "ecc": {
            "enabled": value(bool(answer["ecc_enabled"])),
            "volatile": leaves("ecc_volatile_", "corrected", "uncorrected"),
            "aggregate": leaves("ecc_aggregate_", "corrected", "uncorrected"),
        },
        "remap": {
            **leaves("remap_", "correctable", "uncorrectable"),
            "pending": value(bool(answer["remap_pending"])),
            "failed": value(bool(answer["remap_failed"])),
        },
        "nvlink": {"links": value(answer["nvlink_links"]), "up": value(answer["nvlink_up"])},
        "persistence": value(bool(answer["persistence"])),
    }
