"""A healthy GPU of a virtual node: what its model is, what its state can be, and what a reboot makes good.

| key | meaning |
|---|---|
| present lost | whether it enumerates; whether it has fallen off the bus |
| temperature_c, `*_c`; power_w, `*_w` | heat and power, with their thresholds |
| `*_mhz`, throttle, throttled_ns | clocks, NVML's bits of what holds them down, and for how long each did |
| ecc_… remap_… sram_threshold_exceeded repair_… | memory |
| nvlink_up nvlink_errors | links that are up, from the first on; `{"4": {"recoveries": 12}}` by link |
| fabric_… | NVML's numbers of state, status, clique, health |
| recovery_action | NVML's number of what the driver asks for |
| pids | processes on it |
| xids | every XID so far: each comes once to whoever waits for NVML's events |
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the node's shell starts often and needs none of pydantic
    from collections.abc import Mapping

    from assay.model.fleet import Node
    from assay.model.nodespec import NodeSpec

MIB = 2**20
COMPLETED = 3  # NVML_GPU_FABRIC_STATE_COMPLETED
RACK_HEALTH = 0xAA  # NVML_GPU_FABRIC_HEALTH_MASK_…: none of the four is so
HEALTHY_SUMMARY = 1  # NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY
NVLINK_5 = ("B200", "GB200")

# As nvidia-smi -q shows an H100 SXM5 (NVIDIA/k8s-test-infra, testdata/hardware/qx-h100.xml).
HEALTHY: Mapping[str, Any] = {
    "board_part": "692-2G520-0200-000",
    "inforom_image": "G520.0200.00.05",
    "inforom_oem": "2.1",
    "inforom_ecc": "7.16",
    "inforom_valid": True,
    "pcie_generation_max": 5,
    "pcie_width_max": 16,
    "sm_mhz": 345,
    "shutdown_c": 95,
    "slowdown_c": 89,
    "operating_max_c": 87,
    "memory_max_c": 105,
    "throttled_ns": {"thermal": 0, "power_cap": 0, "software_thermal": 0, "hardware_thermal": 0, "power_brake": 0},
    "ecc_enabled": True,
    "ecc_pending": True,
    "ecc_volatile_sram_corrected": 0,
    "ecc_volatile_sram_uncorrected": 0,
    "ecc_aggregate_sram_corrected": 0,
    "ecc_aggregate_sram_uncorrected": 0,
    "sram_threshold_exceeded": False,
    "remap_banks": {"max": 2560, "high": 0, "partial": 0, "low": 0, "none": 0},
    "repair_channel": False,
    "repair_tpc": False,
    "nvlink_generation": 4,
    "nvlink_errors": {},
    "fabric_state": COMPLETED,
    "fabric_status": 0,
    "fabric_clique": 0,
    "fabric_cluster": str(uuid.UUID(int=0)),
    "fabric_health": 0,
    "fabric_summary": 0,
    "mig_enabled": False,
    "mig_pending": False,
    "persistence": True,
    "compute_mode": 0,
    "gpu_percent": 0,
    "memory_percent": 0,
    "memory_used_bytes": 0,
    "recovery_action": 0,
    "pids": [],
    "xids": [],
}
HEALED_BY_BOOT = (
    "fabric_state",
    "fabric_status",
    "inforom_valid",
    "nvlink_errors",
    "pids",
    "recovery_action",
    "throttled_ns",
)


def gpu_model(node: Node, spec: NodeSpec) -> dict[str, Any]:
    """Return what every GPU of the node has because of its model: as the spec's limits ask for, else an H100's."""
    clock, memory_clock = _limit(spec, "gpu_clock", 1980), _limit(spec, "gpu_memory_clock", 2619)
    fifth = spec.gpus.model.endswith(NVLINK_5)
    return {
        **HEALTHY,
        "sm_max_mhz": clock,
        "memory_mhz": memory_clock,
        "memory_max_mhz": memory_clock,
        "application_mhz": clock,
        "application_default_mhz": clock,
        "power_default_w": _limit(spec, "gpu_power_limit", 700),
        "memory_total_bytes": _limit(spec, "gpu_memory", 81_559) * MIB,
        "nvlink_speed_mb_s": 53_125 if fifth else 26_562,
        "nvlink_generation": 5 if fifth else 4,
        **(_of_a_rack(node) if spec.rack else {}),
    }


def _of_a_rack(node: Node) -> dict[str, Any]:
    """Return what tells the GPUs of one rack's NVLink domain: all of them have the same cluster and clique."""
    cluster = uuid.uuid5(uuid.NAMESPACE_DNS, f"{node.site}.{node.rack}")
    health = {"fabric_health": RACK_HEALTH, "fabric_summary": HEALTHY_SUMMARY}
    return {"fabric_cluster": str(cluster), "fabric_clique": 1, **health}


def _limit(spec: NodeSpec, name: str, otherwise: int) -> int:
    return round(spec.limits[name].value) if name in spec.limits else otherwise


def after_boot(gpu: Mapping[str, Any]) -> dict[str, Any]:
    """Return the GPU as a reboot leaves it: on the bus, its fabric joined, its waiting rows remapped."""
    healed = {key: HEALTHY[key] for key in HEALED_BY_BOOT if key in gpu}
    return {**gpu, **healed, "lost": False, "remap_pending": 0}
