"""Clocks, what holds them down now, and for how long each reason has done so since the driver started.

What holds a GPU's clocks down, by name.

How warm a GPU is and how warm it may become; what it draws and what it may draw.
"""

from __future__ import annotations

from assay.model.reading import value
from assay.probe.gpu.nvml import NvmlGpu, NvmlQuestion
from assay.probe.node_access import LazyTree, Tree

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


def name_throttle_reasons(bits: int) -> list[str]:
    """Return the name of every reason that is set; `bit 11` for one that is newer than this list."""
    return [
        THROTTLE_REASONS[bit] if bit < len(THROTTLE_REASONS) else f"bit {bit}"
        for bit in range(bits.bit_length())
        if bits >> bit & 1
    ]


GRAPHICS, SM, MEMORY = 0, 1, 2  # nvmlClockType_t
THROTTLE_TIME_FIELDS = {  # NVML_FI_DEV_PERF_POLICY_… and, from driver 575 on, NVML_FI_DEV_CLOCKS_EVENT_REASON_…, in ns
    "thermal_us": 75,
    "power_cap_us": 74,
    "software_thermal_us": 269,
    "hardware_thermal_us": 270,
    "power_brake_us": 271,
}


def read_clocks(gpu: NvmlGpu) -> LazyTree:
    """Return the branch `clocks`: MHz, now and at most; the application clock set and its default."""
    return {
        "sm_mhz": gpu.ask_later("nvmlDeviceGetClockInfo", SM),
        "sm_max_mhz": gpu.ask_later("nvmlDeviceGetMaxClockInfo", SM),
        "memory_mhz": gpu.ask_later("nvmlDeviceGetClockInfo", MEMORY),
        "memory_max_mhz": gpu.ask_later("nvmlDeviceGetMaxClockInfo", MEMORY),
        "application_mhz": gpu.ask_later("nvmlDeviceGetApplicationsClock", GRAPHICS),
        "application_default_mhz": gpu.ask_later("nvmlDeviceGetDefaultApplicationsClock", GRAPHICS),
    }


def read_throttle(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the reasons in force, by name; drivers before 535 know the call by its older name."""
    return gpu.ask_first_supported(
        gpu.ask_later("nvmlDeviceGetCurrentClocksEventReasons", then=name_throttle_reasons),
        gpu.ask_later("nvmlDeviceGetCurrentClocksThrottleReasons", then=name_throttle_reasons),
    )


def read_throttled(gpu: NvmlGpu) -> Tree:
    """Return the branch `throttled`: microseconds that each reason has held the clocks down."""
    leaves = gpu.read_fields([(field, 0) for field in THROTTLE_TIME_FIELDS.values()])
    return {
        name: value(leaf["value"] // 1000) if "value" in leaf else leaf
        for name, leaf in zip(THROTTLE_TIME_FIELDS, leaves, strict=True)
    }


SENSOR = 0  # NVML_TEMPERATURE_GPU
MEMORY_TEMPERATURE = 82  # NVML_FI_DEV_MEMORY_TEMP
SHUTDOWN, SLOWDOWN, MEMORY_MAX, GPU_MAX = range(4)  # nvmlTemperatureThresholds_t


def ask_gpu_temperature(gpu: NvmlGpu) -> NvmlQuestion:
    """Return the question for the core's temperature, °C."""
    return gpu.ask_first_supported(
        gpu.ask_later("nvmlDeviceGetTemperatureV", SENSOR),
        gpu.ask_later("nvmlDeviceGetTemperature", SENSOR),
    )


def read_temperature(gpu: NvmlGpu, now: Tree) -> LazyTree:
    """Return the branch `temperature`, °C; `now` is the core's, `margin_c` what is left until the GPU slows down."""
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
    """Return the branch `power`, W: the draw, and the limits in force, asked for, usual and highest."""
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
