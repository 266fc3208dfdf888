"""Clocks, what holds them down now, and for how long each reason has done so since the driver started."""

from __future__ import annotations

from assay.model.reading import value
from assay.probe.files import Tree
from assay.probe.gpu_throttle import throttle_names
from assay.probe.lazy import Lazy
from assay.probe.nvml import Gpu, Question

GRAPHICS, SM, MEMORY = 0, 1, 2  # nvmlClockType_t
THROTTLED = {  # NVML_FI_DEV_PERF_POLICY_… and, from driver 575 on, NVML_FI_DEV_CLOCKS_EVENT_REASON_…, in ns
    "thermal_us": 75,
    "power_cap_us": 74,
    "software_thermal_us": 269,
    "hardware_thermal_us": 270,
    "power_brake_us": 271,
}


def read_clocks(gpu: Gpu) -> Lazy:
    """Return the branch `clocks`: MHz, now and at most; the application clock set and its default."""
    return {
        "sm_mhz": gpu.asks("nvmlDeviceGetClockInfo", SM),
        "sm_max_mhz": gpu.asks("nvmlDeviceGetMaxClockInfo", SM),
        "memory_mhz": gpu.asks("nvmlDeviceGetClockInfo", MEMORY),
        "memory_max_mhz": gpu.asks("nvmlDeviceGetMaxClockInfo", MEMORY),
        "application_mhz": gpu.asks("nvmlDeviceGetApplicationsClock", GRAPHICS),
        "application_default_mhz": gpu.asks("nvmlDeviceGetDefaultApplicationsClock", GRAPHICS),
    }


def read_throttle(gpu: Gpu) -> Question:
    """Return the question for the reasons in force, by name; drivers before 535 know the call by its older name."""
    return gpu.either(
        gpu.asks("nvmlDeviceGetCurrentClocksEventReasons", then=throttle_names),
        gpu.asks("nvmlDeviceGetCurrentClocksThrottleReasons", then=throttle_names),
    )


def read_throttled(gpu: Gpu) -> Tree:
    """Return the branch `throttled`: microseconds that each reason has held the clocks down."""
    leaves = gpu.fields([(field, 0) for field in THROTTLED.values()])
    return {
        name: value(leaf["value"] // 1000) if "value" in leaf else leaf
        for name, leaf in zip(THROTTLED, leaves, strict=True)
    }
