"""The healthy parts of a virtual node, each list in slot order as the NodeSpec has it."""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING, Any

from assay.lab.gpu_parts import gpu_model

if TYPE_CHECKING:  # the node's shell starts often and needs none of pydantic
    from assay.model.fleet import Node
    from assay.model.nodespec import NodeSpec

Part = dict[str, Any]

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


def gpus(node: Node, spec: NodeSpec) -> list[Part]:
    """Return the GPUs: idle, cool, at full PCIe width, with clean memory."""
    return [
        {
            "pci": pci.lower(),
            "index": index,
            "name": spec.gpus.model,
            "serial": number(node.name, f"gpu{index}", 13),
            "uuid": f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{node.name}.gpu{index}')}",
            "present": True,
            "lost": False,
            "numa_node": near(index, len(spec.gpus.pci)),
            "temperature_c": 34 + number_below(node.name, f"gpu{index}.heat", 6),
            "pcie_generation": 5,
            "pcie_width": 16,
            **gpu_model(node, spec),
            "power_w": 71,
            "power_limit_w": round(limit(spec, "gpu_power_limit", 700)),
            "nvlink_up": HGX_NVLINKS,
            "burn_ok": True,
            "burn_gflops": round(1.2 * limit(spec, "gpu_burn_gflops", 40_000)),
            **dict.fromkeys(NOTHING_WRONG, 0),
        }
        for index, pci in enumerate(spec.gpus.pci)
    ]


def hcas(node: Node, spec: NodeSpec) -> list[Part]:
    """Return the InfiniBand adapters: every port ACTIVE at NDR. GUIDs are the inventory's, by rail."""
    return [
        {
            "name": hca.name,
            "pci": hca.pci.lower(),
            "guid": _guid(node, hca.rail),
            "rail": hca.rail,
            "state": "ACTIVE",
            "rate_gbps": round(limit(spec, "hca_rate", NDR_GBPS)),
            "numa_node": near(index, len(spec.hcas)),
            "lid": 10 + number_below(node.name, f"rail{hca.rail}.lid", 40_000),
            "pkeys": ["0x7fff", "0x8001"],
            "counters": {},
            "hw_counters": {},
            "link_downed": 0,
            "symbol_error": 0,
        }
        for index, hca in enumerate(spec.hcas)
    ]


def near(index: int, count: int) -> int:
    """Return the NUMA node of one of so many devices: one half sits at either socket."""
    return int(index >= (count + 1) // 2)


def _guid(node: Node, rail: int) -> str:
    if rail < len(node.hca_guids):
        return node.hca_guids[rail].lower()
    return f"0xb83fd2{number_below(node.name, f'rail{rail}', 2**40):010x}"


def nics(node: Node, spec: NodeSpec) -> list[Part]:
    """Return the front-end interfaces: carrier up at the spec's speed."""
    return [
        {
            "name": nic.name,
            "mac": _mac(number_below(node.name, nic.name, 2**24)),
            "pci": f"{NIC_DOMAIN}:{NIC_BUS + slot:02x}:00.0",
            "numa_node": near(slot, len(spec.nics)),
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


def nvme(node: Node, spec: NodeSpec) -> list[Part]:
    """Return the local drives."""
    return [
        {
            "name": f"nvme{slot}",
            "model": "SAMSUNG MZWLO3T8HCLS-00A07",
            "serial": f"S{number(node.name, f'nvme{slot}', 13)}",
            "firmware": "OPPA4B5Q",
            "size_gb": spec.nvme.size_gb,
            "pci": f"{NVME_DOMAIN}:{NVME_BUS + slot:02x}:00.0",
            "numa_node": near(slot, spec.nvme.count),
            "state": "live",
            "smart": {**HEALTHY_DRIVE, "power_on_hours": number_below(node.name, f"nvme{slot}.hours", 9000)},
            "present": True,
            "mb_s": 6650 + number_below(node.name, f"nvme{slot}.speed", 200),
        }
        for slot in range(spec.nvme.count)
    ]


def psus(node: Node, spec: NodeSpec) -> list[Part]:
    """Return the power supplies."""
    healthy = {"present": True, "health": "OK", "input_v": 230, "output_w": 620}
    bays = range(spec.psus.count)
    return [{**healthy, "serial": f"P{number(node.name, f'psu{bay}', 12)}"} for bay in bays]


def fans(spec: NodeSpec) -> list[Part]:
    """Return the fans."""
    return [{"rpm": 8200 + 20 * slot, "health": "OK"} for slot in range(spec.fans)]


def limit(spec: NodeSpec, name: str, otherwise: float) -> float:
    """Return what the spec's limit of that name asks for, else a usual figure."""
    return spec.limits[name].value if name in spec.limits else otherwise


def number_below(node: str, what: str, bound: int) -> int:
    """Return a number in [0, bound) that follows from the node and the thing it is for."""
    return int.from_bytes(hashlib.sha256(f"{node}/{what}".encode()).digest()[:8], "big") % bound


def number(node: str, what: str, digits: int) -> str:
    """Return a serial number of so many digits."""
    return f"{number_below(node, what, 10**digits):0{digits}}"
