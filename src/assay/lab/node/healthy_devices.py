"""The healthy parts of a virtual node, each list in slot order as the NodeSpec has it.

A healthy GPU of a virtual node: what its model is, what its state can be, and what a reboot makes good.

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

import hashlib
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the node's shell starts often and needs none of pydantic
    from collections.abc import Mapping

    from assay.model.fleet import Node
    from assay.model.specs.node_spec import NodeSpec

MIB = 2**20
COMPLETED = 3  # NVML_GPU_FABRIC_STATE_COMPLETED
RACK_HEALTH = 0xAA  # NVML_GPU_FABRIC_HEALTH_MASK_…: none of the four is so
HEALTHY_SUMMARY = 1  # NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY
NVLINK_5 = ("B200", "GB200")

# As nvidia-smi -q shows an H100 SXM5 (NVIDIA/k8s-test-infra, testdata/hardware/qx-h100.xml).
HEALTHY_GPU: Mapping[str, Any] = {
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
    clock, memory_clock = _gpu_spec_limit(spec, "gpu_clock", 1980), _gpu_spec_limit(spec, "gpu_memory_clock", 2619)
    fifth = spec.gpus.model.endswith(NVLINK_5)
    return {
        **HEALTHY_GPU,
        "sm_max_mhz": clock,
        "memory_mhz": memory_clock,
        "memory_max_mhz": memory_clock,
        "application_mhz": clock,
        "application_default_mhz": clock,
        "power_default_w": _gpu_spec_limit(spec, "gpu_power_limit", 700),
        "memory_total_bytes": _gpu_spec_limit(spec, "gpu_memory", 81_559) * MIB,
        "nvlink_speed_mb_s": 53_125 if fifth else 26_562,
        "nvlink_generation": 5 if fifth else 4,
        **(_rack_domain(node) if spec.rack else {}),
    }


def _rack_domain(node: Node) -> dict[str, Any]:
    """Return what tells the GPUs of one rack's NVLink domain: all of them have the same cluster and clique."""
    cluster = uuid.uuid5(uuid.NAMESPACE_DNS, f"{node.site}.{node.rack}")
    health = {"fabric_health": RACK_HEALTH, "fabric_summary": HEALTHY_SUMMARY}
    return {"fabric_cluster": str(cluster), "fabric_clique": 1, **health}


def _gpu_spec_limit(spec: NodeSpec, name: str, otherwise: int) -> int:
    return round(spec.limits[name].value) if name in spec.limits else otherwise


def gpu_after_boot(gpu: Mapping[str, Any]) -> dict[str, Any]:
    """Return the GPU as a reboot leaves it: on the bus, its fabric joined, its waiting rows remapped."""
    healed = {key: HEALTHY_GPU[key] for key in HEALED_BY_BOOT if key in gpu}
    return {**gpu, **healed, "lost": False, "remap_pending": 0}


if TYPE_CHECKING:  # the node's shell starts often and needs none of pydantic
    from assay.model.fleet import Node
    from assay.model.specs.node_spec import NodeSpec

DevicePart = dict[str, Any]

NDR_GBPS = 400  # ConnectX-7, 4X NDR
NIC_DOMAIN, NIC_BUS = "0000", 0x2A  # free in every spec; nothing says where these sit
NVME_DOMAIN, NVME_BUS = "0000", 0x82
HEALTHY_DRIVE = {
    "critical_warning": 0,
    "temperature_c": 38,
    "avail_spare": 100,
    "spare_thresh": 10,
    "percent_used": 2,
    "media_errors": 0,
    "unsafe_shutdowns": 3,
}
HGX_NVLINKS = 18  # per GPU, from H100 to GB200
NOTHING_WRONG = (
    "pcie_replays",
    "throttle",
    "ecc_volatile_corrected",
    "ecc_volatile_uncorrected",
    "ecc_aggregate_corrected",
    "ecc_aggregate_uncorrected",
    "remap_correctable",
    "remap_uncorrectable",
    "remap_pending",
    "remap_failed",
)


def gpus(node: Node, spec: NodeSpec) -> list[DevicePart]:
    """Return the GPUs: idle, cool, at full PCIe width, with clean memory."""
    return [
        {
            "pci": pci.lower(),
            "index": index,
            "name": spec.gpus.model,
            "serial": derive_serial_number(node.name, f"gpu{index}", 13),
            "uuid": f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{node.name}.gpu{index}')}",
            "present": True,
            "lost": False,
            "numa_node": numa_node_of(index, len(spec.gpus.pci)),
            "temperature_c": 34 + derive_number_below(node.name, f"gpu{index}.heat", 6),
            "pcie_generation": 5,
            "pcie_width": 16,
            **gpu_model(node, spec),
            "power_w": 71,
            "power_limit_w": round(spec_limit(spec, "gpu_power_limit", 700)),
            "nvlink_up": HGX_NVLINKS,
            "burn_ok": True,
            "burn_gflops": round(1.2 * spec_limit(spec, "gpu_burn_gflops", 40_000)),
            **dict.fromkeys(NOTHING_WRONG, 0),
        }
        for index, pci in enumerate(spec.gpus.pci)
    ]


def hcas(node: Node, spec: NodeSpec) -> list[DevicePart]:
    """Return the InfiniBand adapters: every port ACTIVE at NDR. GUIDs are the inventory's, by rail."""
    return [
        {
            "name": hca.name,
            "pci": hca.pci.lower(),
            "guid": _guid(node, hca.rail),
            "rail": hca.rail,
            "state": "ACTIVE",
            "rate_gbps": round(spec_limit(spec, "hca_rate", NDR_GBPS)),
            "numa_node": numa_node_of(index, len(spec.hcas)),
            "lid": 10 + derive_number_below(node.name, f"rail{hca.rail}.lid", 40_000),
            "pkeys": ["0x7fff", "0x8001"],
            "counters": {},
            "hw_counters": {},
            "link_downed": 0,
            "symbol_error": 0,
        }
        for index, hca in enumerate(spec.hcas)
    ]


def numa_node_of(index: int, count: int) -> int:
    """Return the NUMA node of one of so many devices: one half sits at either socket."""
    return int(index >= (count + 1) // 2)


def _guid(node: Node, rail: int) -> str:
    if rail < len(node.hca_guids):
        return node.hca_guids[rail].lower()
    return f"0xb83fd2{derive_number_below(node.name, f'rail{rail}', 2**40):010x}"


def nics(node: Node, spec: NodeSpec) -> list[DevicePart]:
    """Return the front-end interfaces: carrier up at the spec's speed."""
    return [
        {
            "name": nic.name,
            "mac": _mac(derive_number_below(node.name, nic.name, 2**24)),
            "pci": f"{NIC_DOMAIN}:{NIC_BUS + slot:02x}:00.0",
            "numa_node": numa_node_of(slot, len(spec.nics)),
            "mtu": nic.mtu or 1500,
            "carrier": True,
            "speed_mbps": nic.speed_mbps,
            "carrier_changes": 2,
            "counters": {},
        }
        for slot, nic in enumerate(spec.nics)
    ]


def _mac(tail: int) -> str:
    return "b8:3f:d2:" + ":".join(f"{byte:02x}" for byte in tail.to_bytes(3, "big"))


def nvme(node: Node, spec: NodeSpec) -> list[DevicePart]:
    """Return the local drives."""
    return [
        {
            "name": f"nvme{slot}",
            "model": "SAMSUNG MZWLO3T8HCLS-00A07",
            "serial": f"S{derive_serial_number(node.name, f'nvme{slot}', 13)}",
            "firmware": "OPPA4B5Q",
            "size_gb": spec.nvme.size_gb,
            "pci": f"{NVME_DOMAIN}:{NVME_BUS + slot:02x}:00.0",
            "numa_node": numa_node_of(slot, spec.nvme.count),
            "state": "live",
            "smart": {**HEALTHY_DRIVE, "power_on_hours": derive_number_below(node.name, f"nvme{slot}.hours", 9000)},
            "present": True,
            "mb_s": 6650 + derive_number_below(node.name, f"nvme{slot}.speed", 200),
        }
        for slot in range(spec.nvme.count)
    ]


def psus(node: Node, spec: NodeSpec) -> list[DevicePart]:
    """Return the power supplies."""
    healthy = {"present": True, "health": "OK", "input_v": 230, "output_w": 620}
    bays = range(spec.psus.count)
    return [{**healthy, "serial": f"P{derive_serial_number(node.name, f'psu{bay}', 12)}"} for bay in bays]


def fans(spec: NodeSpec) -> list[DevicePart]:
    """Return the fans."""
    return [{"rpm": 8200 + 20 * slot, "health": "OK"} for slot in range(spec.fans)]


def spec_limit(spec: NodeSpec, name: str, otherwise: float) -> float:
    """Return what the spec's limit of that name asks for, else a usual figure."""
    return spec.limits[name].value if name in spec.limits else otherwise


def derive_number_below(node: str, what: str, bound: int) -> int:
    """Return a number in [0, bound) that follows from the node and the thing it is for."""
    return int.from_bytes(hashlib.sha256(f"{node}/{what}".encode()).digest()[:8], "big") % bound


def derive_serial_number(node: str, what: str, digits: int) -> str:
    """Return a serial number of so many digits."""
    return f"{derive_number_below(node, what, 10**digits):0{digits}}"
