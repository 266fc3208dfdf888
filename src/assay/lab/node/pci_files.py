"""The PCI devices of a virtual node and the bridges above them, as files of sysfs.

A GPU and an adapter with neighbouring buses share one PCIe switch; every other device has its own root port.
"""

from __future__ import annotations

import struct

from assay.lab.node.host_files import Files
from assay.lab.virtual_node_state import VirtualNodeState

DEVICES = "sys/bus/pci/devices"
CLASSES = {"gpu": "0x030200", "hca": "0x020700", "nic": "0x020000", "nvme": "0x010802", "bridge": "0x060400"}
SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
ROOT_PORT, UPSTREAM, DOWNSTREAM = 4, 5, 6
SWITCH_BUS_SPAN = 8  # buses
AER = {
    "correctable": ("RxErr BadTLP BadDLLP Rollover Timeout NonFatalErr CorrIntErr HeaderOF", "TOTAL_ERR_COR"),
    "nonfatal": ("Undefined DLP SDES TLP FCP CmpltTO CmpltAbrt UnxCmplt", "TOTAL_ERR_NONFATAL"),
    "fatal": ("Undefined DLP SDES TLP FCP CmpltTO CmpltAbrt UnxCmplt", "TOTAL_ERR_FATAL"),
}


def pci_files(state: VirtualNodeState) -> Files:
    """Yield the files of all PCI devices and bridges."""
    for kind, parts in (("gpu", "gpus"), ("hca", "hcas"), ("nic", "nics"), ("nvme", "nvme")):
        for part in state[parts]:
            if part.get("present", True):
                yield from _endpoint(state, kind, part)
    for address, (port, first, last) in pci_bridges(state).items():
        yield f"{DEVICES}/{address}/class", f"{CLASSES['bridge']}\n"
        acs = state["host"]["switch_acs"] if port == DOWNSTREAM else 0
        yield (
            f"{DEVICES}/{address}/config",
            bridge_config_space(port, first, last, acs).decode("utf-8", "surrogateescape"),
        )


def _endpoint(state: VirtualNodeState, kind: str, part: VirtualNodeState) -> Files:
    folder = f"{DEVICES}/{part['pci']}"
    best = (4, 4) if kind == "nvme" else (16, int(part.get("pcie_generation_max", 5)))
    width, generation = part.get("pcie_width", best[0]), int(part.get("pcie_generation", best[1]))
    yield f"{folder}/class", f"{CLASSES[kind]}\n"
    yield f"{folder}/current_link_width", f"{width}\n"
    yield f"{folder}/current_link_speed", f"{SPEEDS[generation]} GT/s PCIe\n"
    yield f"{folder}/max_link_width", f"{best[0]}\n"
    yield f"{folder}/max_link_speed", f"{SPEEDS[best[1]]} GT/s PCIe\n"
    yield f"{folder}/numa_node", f"{part['numa_node']}\n"
    yield f"{folder}/iommu_group/type", f"{state['host']['iommu']}\n"
    yield from _aer(folder, part)


def _aer(folder: str, part: VirtualNodeState) -> Files:
    for severity, (names, total) in AER.items():
        count = part.get(f"aer_{severity}", 0)
        first, *others = names.split()
        lines = [f"{first} {count}", *(f"{name} 0" for name in others), f"{total} {count}"]
        yield f"{folder}/aer_dev_{severity}", "\n".join(lines) + "\n"


def pci_bridges(state: VirtualNodeState) -> dict[str, tuple[int, int, int]]:
    """Return the bridges by PCI address: kind of port, first and last bus behind it."""
    found: dict[str, tuple[int, int, int]] = {}
    alone = [part["pci"] for parts in ("gpus", "hcas", "nics", "nvme") for part in state[parts]]
    for gpu, hca in zip(state["gpus"], state["hcas"], strict=False):
        if _is_same_switch(gpu["pci"], hca["pci"]):
            found |= _switch(gpu["pci"], hca["pci"])
            alone = [pci for pci in alone if pci not in (gpu["pci"], hca["pci"])]
    for domain, bus in map(_place, alone):
        found[f"{domain}:{bus - 1:02x}:01.0"] = (ROOT_PORT, bus, bus)
    return found


def _switch(gpu: str, hca: str) -> dict[str, tuple[int, int, int]]:
    domain, first, last = _place(gpu)[0], *sorted((_place(gpu)[1], _place(hca)[1]))
    return {
        f"{domain}:{first - 3:02x}:01.0": (ROOT_PORT, first - 2, last),
        f"{domain}:{first - 2:02x}:00.0": (UPSTREAM, first - 1, last),
        f"{domain}:{first - 1:02x}:00.0": (DOWNSTREAM, first, first),
        f"{domain}:{first - 1:02x}:01.0": (DOWNSTREAM, last, last),
    }


def _is_same_switch(gpu: str, hca: str) -> bool:
    (gpu_domain, gpu_bus), (hca_domain, hca_bus) = _place(gpu), _place(hca)
    near = 0 < abs(gpu_bus - hca_bus) <= SWITCH_BUS_SPAN
    return gpu_domain == hca_domain and near and min(gpu_bus, hca_bus) > SWITCH_BUS_SPAN


def _place(pci: str) -> tuple[str, int]:
    domain, bus, _ = pci.split(":")
    return domain, int(bus, 16)


def bridge_config_space(port: int, first: int, last: int, acs: int) -> bytes:
    """Return the configuration space of a bridge, up to its access control (ACS) capability."""
    header = bytearray(0x150)
    struct.pack_into("<HHHH", header, 0, 0x1000, 0xC030, 0x0407, 0x0010)  # vendor, device, command, status
    header[0x0E] = 1  # a bridge's header
    header[0x18:0x1B] = bytes((max(first - 1, 0), first, last))
    header[0x34] = 0x40
    struct.pack_into("<BBH", header, 0x40, 0x10, 0, port << 4 | 2)  # PCI Express
    struct.pack_into("<I", header, 0x100, 0x0001 | 2 << 16 | 0x148 << 20)  # error reporting, then
    struct.pack_into("<IHH", header, 0x148, 0x000D | 1 << 16, 0x5F, acs)  # access controls, the last
    return bytes(header)
