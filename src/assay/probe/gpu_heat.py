"""How warm a GPU is and how warm it may become; what it draws and what it may draw."""

from __future__ import annotations

from assay.probe.files import Tree
from assay.probe.lazy import Lazy
from assay.probe.nvml import Gpu, Question

SENSOR = 0  # NVML_TEMPERATURE_GPU
MEMORY_TEMPERATURE = 82  # NVML_FI_DEV_MEMORY_TEMP
SHUTDOWN, SLOWDOWN, MEMORY_MAX, GPU_MAX = range(4)  # nvmlTemperatureThresholds_t


def gpu_temperature(gpu: Gpu) -> Question:
    """Return the question for the core's temperature, °C."""
    return gpu.either(
        gpu.asks("nvmlDeviceGetTemperatureV", SENSOR),
        gpu.asks("nvmlDeviceGetTemperature", SENSOR),
    )


def read_temperature(gpu: Gpu, now: Tree) -> Lazy:
    """Return the branch `temperature`, °C; `now` is the core's, `margin_c` what is left until the GPU slows down."""
    return {
        "gpu_c": now,
        "memory_c": lambda: gpu.fields([(MEMORY_TEMPERATURE, 0)])[0],
        "margin_c": gpu.asks("nvmlDeviceGetMarginTemperature"),
        "shutdown_c": gpu.asks("nvmlDeviceGetTemperatureThreshold", SHUTDOWN),
        "slowdown_c": gpu.asks("nvmlDeviceGetTemperatureThreshold", SLOWDOWN),
        "operating_max_c": gpu.asks("nvmlDeviceGetTemperatureThreshold", GPU_MAX),
        "memory_max_c": gpu.asks("nvmlDeviceGetTemperatureThreshold", MEMORY_MAX),
    }


def read_power(gpu: Gpu) -> Lazy:
    """Return the branch `power`, W: the draw, and the limits in force, asked for, usual and highest."""
    return {
        "draw_w": gpu.asks("nvmlDeviceGetPowerUsage", then=_watts),
        "limit_w": gpu.asks("nvmlDeviceGetEnforcedPowerLimit", then=_watts),
        "requested_w": gpu.asks("nvmlDeviceGetPowerManagementLimit", then=_watts),
        "default_w": gpu.asks("nvmlDeviceGetPowerManagementDefaultLimit", then=_watts),
        "max_w": gpu.asks("nvmlDeviceGetPowerManagementLimitConstraints", then=lambda least_most: least_most[1] / 1000),
    }


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000
