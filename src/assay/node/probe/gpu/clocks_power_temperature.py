"""Reads a GPU's clocks, throttle reasons and throttled times, its temperatures and its power, with their limits."""

from __future__ import annotations

from assay.model.reading import ReadingTree, value
from assay.node.probe.gpu.nvml import NvmlGpu, NvmlQuestion
from assay.node.probe.node_access import LazyTree

THROTTLE_REASONS = (  # nvmlClocksEventReason…, by bit
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

GRAPHICS, SM, MEMORY = 0, 1, 2  # nvmlClockType_t
THROTTLE_TIME_FIELDS = {  # NVML_FI_DEV_PERF_POLICY_… and, from driver 575 on, NVML_FI_DEV_CLOCKS_EVENT_REASON_…, in ns
    "thermal_us": 75,
    "power_cap_us": 74,
    "software_thermal_us": 269,
    "hardware_thermal_us": 270,
    "power_brake_us": 271,
}

SENSOR = 0  # NVML_TEMPERATURE_GPU
MEMORY_TEMPERATURE = 82  # NVML_FI_DEV_MEMORY_TEMP
SHUTDOWN, SLOWDOWN, MEMORY_MAX, GPU_MAX = range(4)  # nvmlTemperatureThresholds_t


def read_clocks(gpu: NvmlGpu) -> LazyTree:
    """Return the branch `clocks`: MHz, now and at most, and the application clocks as set and by default."""
    return {
        "sm_mhz": gpu.ask_later("nvmlDeviceGetClockInfo", SM),
        "sm_max_mhz": gpu.ask_later("nvmlDeviceGetMaxClockInfo", SM),
        "memory_mhz": gpu.ask_later("nvmlDeviceGetClockInfo", MEMORY),
        "memory_max_mhz": gpu.ask_later("nvmlDeviceGetMaxClockInfo", MEMORY),
        "application_mhz": gpu.ask_later("nvmlDeviceGetApplicationsClock", GRAPHICS),
        "application_memory_mhz": gpu.ask_later("nvmlDeviceGetApplicationsClock", MEMORY),
        "application_default_mhz": gpu.ask_later("nvmlDeviceGetDefaultApplicationsClock", GRAPHICS),
    }


def read_throttle(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the names of the active reasons. Drivers before 535 have the call's older name."""
    return gpu.ask_first_supported(
        gpu.ask_later("nvmlDeviceGetCurrentClocksEventReasons", then=name_throttle_reasons),
        gpu.ask_later("nvmlDeviceGetCurrentClocksThrottleReasons", then=name_throttle_reasons),
    )


def read_throttled(gpu: NvmlGpu) -> ReadingTree:
    """Return the branch `throttled`: microseconds of each reason since the driver started."""
    leaves = gpu.read_fields([(field, 0) for field in THROTTLE_TIME_FIELDS.values()])
    return {
        name: value(leaf["value"] // 1000) if "value" in leaf else leaf
        for name, leaf in zip(THROTTLE_TIME_FIELDS, leaves, strict=True)
    }


def name_throttle_reasons(bits: int) -> list[str]:
    """Return the name of every reason that is set; a reason that is newer than this list is `bit 11`."""
    return [
        THROTTLE_REASONS[bit] if bit < len(THROTTLE_REASONS) else f"bit {bit}"
        for bit in range(bits.bit_length())
        if bits >> bit & 1
    ]


def ask_gpu_temperature(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the core's temperature, °C."""
    return gpu.ask_first_supported(
        gpu.ask_later("nvmlDeviceGetTemperatureV", SENSOR),
        gpu.ask_later("nvmlDeviceGetTemperature", SENSOR),
    )


def read_temperature(gpu: NvmlGpu, now: ReadingTree) -> LazyTree:
    """Return the branch `temperature`, °C; `now` is the core's leaf, `margin_c` the distance to slowdown."""
    return {
        "gpu_c": now,
        "memory_c": lambda: gpu.read_fields([(MEMORY_TEMPERATURE, 0)])[0],
        "margin_c": gpu.ask_later("nvmlDeviceGetMarginTemperature"),
        "shutdown_c": gpu.ask_later("nvmlDeviceGetTemperatureThreshold", SHUTDOWN),
        "slowdown_c": gpu.ask_later("nvmlDeviceGetTemperatureThreshold", SLOWDOWN),
        "operating_max_c": gpu.ask_later("nvmlDeviceGetTemperatureThreshold", GPU_MAX),
        "memory_max_c": gpu.ask_later("nvmlDeviceGetTemperatureThreshold", MEMORY_MAX),
    }


def read_power(gpu: NvmlGpu) -> LazyTree:
    """Return the branch `power`, W: the draw, and the limits: in force, requested, default and highest."""
    return {
        "draw_w": gpu.ask_later("nvmlDeviceGetPowerUsage", then=_watts),
        "limit_w": gpu.ask_later("nvmlDeviceGetEnforcedPowerLimit", then=_watts),
        "requested_w": gpu.ask_later("nvmlDeviceGetPowerManagementLimit", then=_watts),
        "default_w": gpu.ask_later("nvmlDeviceGetPowerManagementDefaultLimit", then=_watts),
        "max_w": gpu.ask_later(
            "nvmlDeviceGetPowerManagementLimitConstraints", then=lambda least_most: least_most[1] / 1000
        ),
    }


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000
