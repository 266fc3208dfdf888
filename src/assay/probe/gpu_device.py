"""One GPU's readings, each asked for by itself so that one refusal hides nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.model.reading import failed, value
from assay.probe.files import Tree
from assay.probe.nvml import Nvml

MEMORY_TEMPERATURE = 82  # NVML_FI_DEV_MEMORY_TEMP
GPU_SENSOR = 0  # NVML_TEMPERATURE_GPU
CORRECTED, UNCORRECTED = 0, 1  # nvmlMemoryErrorType_t
VOLATILE, AGGREGATE = 0, 1  # nvmlEccCounterType_t
MOST_NVLINKS = 36  # NVML_NVLINK_MAX_LINKS
THROTTLE = (  # nvmlClocksEventReason…, by bit
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
    "board_limit",
    "reliability",
)


def read_device(nvml: Nvml, gpu: Any) -> Tree:
    """Return the branch of one GPU. Raises Lost."""
    ask = nvml.ask
    return {
        "index": ask("nvmlDeviceGetIndex", gpu),
        "name": ask("nvmlDeviceGetName", gpu),
        "serial": ask("nvmlDeviceGetSerial", gpu),
        "uuid": ask("nvmlDeviceGetUUID", gpu),
        "vbios": ask("nvmlDeviceGetVbiosVersion", gpu),
        "pcie": {
            "generation": ask("nvmlDeviceGetCurrPcieLinkGeneration", gpu),
            "width": ask("nvmlDeviceGetCurrPcieLinkWidth", gpu),
            "replays": ask("nvmlDeviceGetPcieReplayCounter", gpu),
        },
        "temperature": {
            "gpu_c": ask("nvmlDeviceGetTemperature", gpu, GPU_SENSOR),
            "memory_c": _memory_temperature(nvml, gpu),
        },
        "power": {
            "draw_w": _as(ask("nvmlDeviceGetPowerUsage", gpu), _watts),
            "limit_w": _as(ask("nvmlDeviceGetEnforcedPowerLimit", gpu), _watts),
        },
        "throttle": _throttle(nvml, gpu),
        "ecc": _ecc(nvml, gpu),
        "remap": _remap(nvml, gpu),
        "nvlink": _nvlink(nvml, gpu),
        "persistence": _as(ask("nvmlDeviceGetPersistenceMode", gpu), bool),
    }


def _as(leaf: Tree, convert: Callable[[Any], Any]) -> Tree:
    return value(convert(leaf["value"])) if "value" in leaf else leaf


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000


def _memory_temperature(nvml: Nvml, gpu: Any) -> Tree:
    leaf = nvml.ask("nvmlDeviceGetFieldValues", gpu, [MEMORY_TEMPERATURE])
    if "value" not in leaf:
        return leaf
    (field,) = leaf["value"]
    if field.nvmlReturn:
        return nvml.why(nvml.Error(field.nvmlReturn))
    return value(field.value.uiVal)


def _throttle(nvml: Nvml, gpu: Any) -> Tree:
    """Return the reasons in force, by name; drivers before 535 know the call by its older name only."""
    leaf = nvml.ask("nvmlDeviceGetCurrentClocksEventReasons", gpu)
    if "unsupported" in leaf:
        leaf = nvml.ask("nvmlDeviceGetCurrentClocksThrottleReasons", gpu)
    return _as(leaf, throttle_names)


def throttle_names(bits: int) -> list[str]:
    """Return the name of every reason that is set; `bit 11` for one that is newer than this list."""
    return [
        THROTTLE[bit] if bit < len(THROTTLE) else f"bit {bit}" for bit in range(bits.bit_length()) if bits >> bit & 1
    ]


def _ecc(nvml: Nvml, gpu: Any) -> Tree:
    def errors(counter: int) -> Tree:
        return {
            "corrected": nvml.ask("nvmlDeviceGetTotalEccErrors", gpu, CORRECTED, counter),
            "uncorrected": nvml.ask("nvmlDeviceGetTotalEccErrors", gpu, UNCORRECTED, counter),
        }

    mode = nvml.ask("nvmlDeviceGetEccMode", gpu)
    return {
        "enabled": _as(mode, lambda current_and_pending: bool(current_and_pending[0])),
        "volatile": errors(VOLATILE),
        "aggregate": errors(AGGREGATE),
    }


def _remap(nvml: Nvml, gpu: Any) -> Tree:
    leaf = nvml.ask("nvmlDeviceGetRemappedRows", gpu)
    if "value" not in leaf:
        return leaf
    correctable, uncorrectable, pending, failure = leaf["value"]
    return {
        "correctable": value(correctable),
        "uncorrectable": value(uncorrectable),
        "pending": value(bool(pending)),
        "failed": value(bool(failure)),
    }


def _nvlink(nvml: Nvml, gpu: Any) -> Tree:
    """Count the links that the GPU has and those that are up; NVML refuses a link number past the last."""
    states: list[int] = []
    for link in range(MOST_NVLINKS):
        leaf = nvml.ask("nvmlDeviceGetNvLinkState", gpu, link)
        if "value" not in leaf:
            break
        states.append(leaf["value"])
    if states:
        return {"links": value(len(states)), "up": value(sum(states))}
    return leaf if "unsupported" in leaf else failed(f"NVLink 0: {next(iter(leaf.values()))}")
