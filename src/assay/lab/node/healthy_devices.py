"""The devices of a healthy virtual node: GPUs, HCAs, NICs, drives, power supplies, fans. Lists are in slot order.

Keys of a GPU:

| key | meaning |
|---|---|
| present lost | it enumerates; it has fallen off the bus |
| temperature_c, `*_c`; power_w, `*_w` | temperature and power, with their thresholds |
| `*_mhz`, throttle, throttled_ns | clocks, NVML's throttle reasons as bits, and the time spent in each |
| ecc_… remap_… sram_threshold_exceeded repair_… | memory errors and repairs |
| nvlink_up nvlink_errors | number of links up, counted from the first; errors by link: `{"4": {"recoveries": 12}}` |
| fabric_… | NVML's numbers for state, status, clique and health |
| recovery_action | NVML's number of the action that the driver asks for |
| bad_pages | of AMD's: pages that its driver took away |
| pids | processes on the GPU |
| xids | all XIDs so far; each client of NVML's events gets each of them once |
"""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a node's shell starts often: it does without pydantic
    from collections.abc import Mapping

    from assay.model.node import Node
    from assay.model.specs.node.node_spec import NodeSpec, RoceSpec

DevicePart = dict[str, Any]

MIB = 2**20
COMPUTE_MODES = ("default", "exclusive_thread", "prohibited", "exclusive_process")  # nvmlComputeMode_t
COMPLETED = 3  # NVML_GPU_FABRIC_STATE_COMPLETED
RACK_HEALTH = 0xAA  # NVML_GPU_FABRIC_HEALTH_MASK_…: none of the four is so
HEALTHY_SUMMARY = 1  # NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY
NVLINK_5 = ("B200", "GB200", "GB300")
HGX_NVLINKS = 18  # per GPU, from H100 to GB200
NDR_GBPS = 400  # ConnectX-7, 4X NDR
NIC_DOMAIN = "0000"
NIC_BUS = 0x2A  # free in every spec; no spec names these addresses
NVME_DOMAIN = "0000"
NVME_BUS = 0x82
HEALTHY_DRIVE = {
    "critical_warning": 0,
    "temperature_c": 38,
    "avail_spare": 100,
    "spare_thresh": 10,
    "percent_used": 2,
    "media_errors": 0,
    "unsafe_shutdowns": 3,
}
ZERO_ERROR_COUNTERS = (
    "pcie_replays",
    "bad_pages",
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

# Values of an H100 SXM5 as `nvidia-smi -q` shows them (NVIDIA/k8s-test-infra, testdata/hardware/qx-h100.xml).
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
    "pid_jobs": {},
    "xids": [],
}
HEALED_BY_BOOT = (
    "fabric_state",
    "fabric_status",
    "inforom_valid",
    "nvlink_errors",
    "pid_jobs",
    "pids",
    "recovery_action",
    "throttled_ns",
)


def gpu_model(node: Node, spec: NodeSpec) -> dict[str, Any]:
    """Return the keys that follow from the GPU model: values from the spec's limits, else those of an H100."""
    clock = round(spec_limit(spec, "gpu_clock", 1980))
    memory_clock = round(spec_limit(spec, "gpu_memory_clock", 2619))
    fifth = spec.gpus.model.endswith(NVLINK_5)
    rack_domain: dict[str, Any] = {}
    if spec.rack:  # all GPUs of a rack share one cluster and clique
        cluster = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{node.site}.{node.rack}"))
        health = {"fabric_health": RACK_HEALTH, "fabric_summary": HEALTHY_SUMMARY}
        rack_domain = {"fabric_cluster": cluster, "fabric_clique": 1, **health}
    return {
        **HEALTHY_GPU,
        "sm_max_mhz": clock,
        "memory_mhz": memory_clock,
        "memory_max_mhz": memory_clock,
        "application_mhz": clock,
        "application_memory_mhz": memory_clock,
        "application_default_mhz": clock,
        "pcie_generation_max": round(spec_limit(spec, "pcie_generation", 5)),
        "power_default_w": round(spec_limit(spec, "gpu_power_limit", 700)),
        "memory_total_bytes": round(spec_limit(spec, "gpu_memory", 81_559)) * MIB,
        "nvlink_speed_mb_s": 53_125 if fifth else 26_562,
        "nvlink_generation": 5 if fifth else 4,
        **rack_domain,
    }


def _gpu_settings(spec: NodeSpec) -> dict[str, Any]:
    """Return the keys of settings: those of the spec, else the usual ones."""
    given = spec.gpu_settings
    clocks = given.application_clocks
    modes = {"ecc_enabled": given.ecc, "ecc_pending": given.ecc, "mig_enabled": given.mig, "mig_pending": given.mig}
    memory = {"application_memory_mhz": clocks.memory_mhz, "application_mhz": clocks.graphics_mhz} if clocks else {}
    return {
        **{key: mode for key, mode in {**modes, "persistence": given.persistence}.items() if mode is not None},
        **memory,
        "compute_mode": COMPUTE_MODES.index(given.compute_mode or "default"),
        "power_limit_w": given.power_limit_w or round(spec_limit(spec, "gpu_power_limit", 700)),
    }


def gpu_after_boot(gpu: Mapping[str, Any]) -> dict[str, Any]:
    """Return the GPU after a reboot: on the bus, part of the fabric, with no row remapping or ECC mode pending."""
    healed = {key: HEALTHY_GPU[key] for key in HEALED_BY_BOOT if key in gpu}
    ecc = {"ecc_enabled": gpu["ecc_pending"]} if "ecc_pending" in gpu else {}
    return {**gpu, **healed, **ecc, "lost": False, "remap_pending": 0}


def gpu_after_reset(gpu: Mapping[str, Any]) -> dict[str, Any]:
    """Return the GPU after `nvidia-smi --gpu-reset`: as after a reboot, and without what the driver kept of it."""
    cleared = {key: 0 for key in gpu if key.startswith("ecc_volatile_")}
    return {**gpu_after_boot(gpu), **cleared, "throttle": 0, "persistence": False}


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
            "pcie_generation": round(spec_limit(spec, "pcie_generation", 5)),
            "pcie_width": 16,
            **gpu_model(node, spec),
            **_gpu_settings(spec),
            "power_w": 71,
            "nvlink_up": HGX_NVLINKS,
            "burn_ok": True,
            "burn_gflops": round(1.2 * spec_limit(spec, "gpu_burn_gflops", 40_000)),
            **dict.fromkeys(ZERO_ERROR_COUNTERS, 0),
        }
        for index, pci in enumerate(spec.gpus.pci)
    ]


def hcas(node: Node, spec: NodeSpec) -> list[DevicePart]:
    """Return the adapters of the fabric, every port ACTIVE at NDR. GUIDs come from the inventory, by rail."""
    adapters: list[DevicePart] = [
        {
            "name": hca.name,
            "pci": hca.pci.lower(),
            "guid": node.hca_guids[hca.rail].lower()
            if hca.rail < len(node.hca_guids)
            else f"0xb83fd2{derive_number_below(node.name, f'rail{hca.rail}', 2**40):010x}",
            "rail": hca.rail,
            "state": "ACTIVE",
            "rate_gbps": round(spec_limit(spec, "hca_rate", NDR_GBPS)),
            "pcie_generation_max": round(spec_limit(spec, "hca_pcie_generation", 5)),
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
    return [{**hca, "roce": _roce(hca, spec.roce)} for hca in adapters] if spec.roce else adapters


def _roce(hca: DevicePart, spec: RoceSpec) -> DevicePart:
    """Return the interface of an adapter on Ethernet, set as the spec says."""
    from assay.model.specs.fabric.cable import format_mac

    return {
        "interface": f"ens{hca['rail'] + 1}np0",
        "mac": format_mac(hca["guid"]),
        "mtu": spec.mtu or 1500,
        "speed_mbps": hca["rate_gbps"] * 1000,
        "carrier_changes": 2,
        "counters": {},
        "pfc": spec.pfc or [],
        "dscp": spec.dscp or ({"26": 3} if spec.trust == "dscp" else {}),
        "statistics": {"rx_corrected_bits_phy": 4711},
    }


def numa_node_of(index: int, count: int) -> int:
    """Return the NUMA node of device `index` of `count`: the first half is at socket 0, the rest at socket 1."""
    return int(index >= (count + 1) // 2)


def nics(node: Node, spec: NodeSpec) -> list[DevicePart]:
    """Return the front-end interfaces, with carrier, at the spec's speed."""
    return [
        {
            "name": nic.name,
            "mac": (node.mac if slot == 0 else "")
            or f"b8:3f:d2:{derive_number_below(node.name, nic.name, 2**24).to_bytes(3, 'big').hex(':')}",
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


def nvme(node: Node, spec: NodeSpec) -> list[DevicePart]:
    """Return the local drives, on buses where the spec has no GPU and no HCA."""
    taken = {pci.lower() for pci in (*spec.gpus.pci, *(hca.pci for hca in spec.hcas))}
    places = [f"{NVME_DOMAIN}:{bus:02x}:00.0" for bus in range(NVME_BUS, 0x100)]
    free = [place for place in places if place not in taken]
    return [
        {
            "name": f"nvme{slot}",
            "model": "SAMSUNG MZWLO3T8HCLS-00A07",
            "serial": f"S{derive_serial_number(node.name, f'nvme{slot}', 13)}",
            "firmware": "OPPA4B5Q",
            "size_gb": spec.nvme.size_gb,
            "pci": free[slot],
            "numa_node": numa_node_of(slot, spec.nvme.count),
            "state": "live",
            "smart": {**HEALTHY_DRIVE, "power_on_hours": derive_number_below(node.name, f"nvme{slot}.hours", 9000)},
            "can_wipe": ["sanitize-crypto", "sanitize-block", "format-crypto", "format-erase"],
            "present": True,
            "mb_s": 6650 + derive_number_below(node.name, f"nvme{slot}.speed", 200),
        }
        for slot in range(spec.nvme.count)
    ]


def disks(node: Node, spec: NodeSpec) -> list[DevicePart]:
    """Return the SATA drives. `attributes`: counts by the number of the SMART attribute."""
    healthy = {"passed": True, "temperature_c": 31, "present": True}
    return [
        {
            **disk.model_dump(),
            **healthy,
            "serial": f"S{derive_serial_number(node.name, disk.name, 13)}",
            "attributes": dict.fromkeys(("5", "187", "197", "198", "199"), 0),
        }
        for disk in spec.disks
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
    """Return the value of the spec's limit `name`, else `otherwise`."""
    return spec.limits[name].value if name in spec.limits else otherwise


def derive_number_below(node: str, key: str, bound: int) -> int:
    """Return a number in [0, bound) derived from the node's name and `key`."""
    return int.from_bytes(hashlib.sha256(f"{node}/{key}".encode()).digest()[:8], "big") % bound


def derive_serial_number(node: str, key: str, digits: int) -> str:
    """Return a serial number of `digits` digits, derived from the node's name and `key`."""
    return f"{derive_number_below(node, key, 10**digits):0{digits}}"
