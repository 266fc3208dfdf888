"""What hardware can read at all, and what the GPUs that we know can do: the measure of limits."""

from __future__ import annotations

from typing import NamedTuple


class Bound(NamedTuple):
    """The values between which a limit can tell good from bad, and why not beyond."""

    low: float
    high: float
    unit: str
    because: str


BOUNDS = {
    "pcie_width": Bound(1, 16, "lanes", "PCI Express has at most 16 lanes a device"),
    "pcie_generation": Bound(1, 6, "generation", "PCI Express 6 is the newest there is in servers"),
    "nvlink_links": Bound(1, 18, "links", "no GPU has more than 18 NVLink links"),
    "gpu_temperature": Bound(30, 100, "°C", "a GPU shuts itself down before 100 °C, and idles at 30 °C or more"),
    "memory_temperature": Bound(30, 110, "°C", "HBM is shut down before 110 °C, and idles at 30 °C or more"),
    "gpu_power_limit": Bound(50, 3000, "W", "no GPU of a server takes less than 50 W or more than 3 kW"),
    "inlet_temperature": Bound(10, 50, "°C", "ASHRAE's widest class (TC 9.9, A4) allows 5 to 45 °C"),
    "inlet_temperature_low": Bound(0, 40, "°C", "ASHRAE's widest class (TC 9.9, A4) allows 5 to 45 °C"),
    "inlet_spread": Bound(1, 40, "°C", "ASHRAE's widest class (TC 9.9, A4) allows 5 to 45 °C"),
    "remap_uncorrectable": Bound(0, 512, "rows", "a GPU has 512 spare rows"),
    "remap_correctable": Bound(0, 512, "rows", "a GPU has 512 spare rows"),
    "hca_rate": Bound(1, 2400, "Gb/s", "12xXDR is the fastest InfiniBand link there is"),
    # PortCounters, InfiniBand Architecture Specification vol. 1, 16.1.3.5: counters stop at their highest value.
    "link_downed": Bound(0, 254, "count", "the port's counter has 8 bits and stops at 255"),
    "link_error_recovery": Bound(0, 254, "count", "the port's counter has 8 bits and stops at 255"),
    "symbol_error": Bound(0, 65534, "count", "the port's counter has 16 bits and stops at 65535"),
    "nvme_read": Bound(1, 32_000, "MB/s", "four lanes of PCI Express 6 carry 32 GB/s"),
    "psu_input_low": Bound(36, 1000, "V", "supplies take 36 V DC or more, and 1 000 V or less"),
    "psu_input_high": Bound(36, 1000, "V", "supplies take 36 V DC or more, and 1 000 V or less"),
    "fan_speed": Bound(1, 40_000, "rpm", "a fan that turns makes 1 to 40 000 turns a minute"),
}
"""By the name of the limit."""

OF_UNIT = {
    "%": Bound(0, 100, "%", "a share is 0 to 100 %"),
    "°C": Bound(-273.15, float("inf"), "°C", "nothing is colder"),
}
"""By the unit, for all other limits."""


class Gpu(NamedTuple):
    """The most that a GPU does. None where its papers do not say."""

    pcie_generation: float
    nvlink_links: float | None
    gpu_power_limit: float
    all_reduce_bus_bandwidth: float | None
    gpu_burn_gflops: float
    source: str


GPU_UNITS = {
    "pcie_generation": "generation",
    "nvlink_links": "links",
    "gpu_power_limit": "W",
    "all_reduce_bus_bandwidth": "GB/s",  # NVLink, both ways: with NVLS, bus bandwidth may pass that of one way
    "gpu_burn_gflops": "Gflop/s",  # gpu-burn multiplies in FP32, without tensor cores
}
GPUS = {
    "NVIDIA A100-SXM": Gpu(4, 12, 400, 600, 19_500, "NVIDIA A100 datasheet, SXM"),
    "NVIDIA H100 PCIe": Gpu(5, None, 350, None, 51_000, "NVIDIA H100 datasheet, PCIe"),
    "NVIDIA H100 NVL": Gpu(5, None, 400, None, 60_000, "NVIDIA H100 datasheet, NVL"),
    "NVIDIA H100": Gpu(5, 18, 700, 900, 67_000, "NVIDIA H100 datasheet, SXM"),
    "NVIDIA H200 NVL": Gpu(5, 18, 600, 900, 60_000, "NVIDIA H200 datasheet, NVL"),
    "NVIDIA H200": Gpu(5, 18, 700, 900, 67_000, "NVIDIA H200 datasheet, SXM"),
    "NVIDIA B200": Gpu(6, 18, 1000, 1800, 80_000, "NVIDIA HGX B200 datasheet"),
    "NVIDIA GB200": Gpu(6, 18, 1200, 1800, 80_000, "NVIDIA GB200 NVL72 datasheet"),
}
"""By how NVML's name of the model begins; the first that fits counts."""


def gpu_of(model: str) -> Gpu | None:
    """Return what a GPU of this model does at most; None for a model that is not known here."""
    return next((gpu for begin, gpu in GPUS.items() if model.startswith(begin)), None)
