"""The files of a virtual node's devices: GPUs, adapters and their ports, network interfaces, bonds, drives.

`pci_files` has the same devices as the PCI bus shows them.
"""

from __future__ import annotations

import json

from assay.lab.node.host_files import Files
from assay.lab.virtual_node_state import VirtualNodeState

SECTOR = 512
KELVIN = 273
NIC_COUNTERS = ("rx_errors", "tx_errors", "rx_crc_errors", "rx_dropped", "tx_dropped", "rx_missed_errors")
PORT_COUNTERS = (
    *("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_rcv_remote_physical_errors"),
    *("port_rcv_constraint_errors", "port_xmit_constraint_errors", "port_xmit_discards", "port_xmit_wait"),
    *("port_rcv_data", "port_xmit_data", "local_link_integrity_errors", "excessive_buffer_overrun_errors"),
    "VL15_dropped",
)
HW_COUNTERS = ("out_of_buffer", "out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err")
PORT_STATE = {"DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4}
SPEED_NAME = {10: "SDR", 20: "DDR", 40: "QDR", 56: "FDR", 100: "EDR", 200: "HDR", 400: "NDR", 800: "XDR"}


def device_files(state: VirtualNodeState) -> Files:
    """Yield every file about the devices as (path below the root, content)."""
    for part in (_gpus, _hcas, _nics, _bonds, _nvme, _smart, _identify):
        yield from part(state)


def _gpus(state: VirtualNodeState) -> Files:
    for gpu in state["gpus"]:
        if gpu["present"]:
            yield (
                f"proc/driver/nvidia/gpus/{gpu['pci']}/information",
                f"Model: \t\t {gpu['name']}\nGPU UUID: \t {gpu['uuid']}\nBus Location: \t {gpu['pci']}\n",
            )


def _hcas(state: VirtualNodeState) -> Files:
    for hca in state["hcas"]:
        folder = f"sys/class/infiniband/{hca['name']}"
        yield f"{folder}/node_guid", f"{_grouped(hca['guid'])}\n"
        yield f"{folder}/fw_ver", (hca.get("firmware") or _hca_firmware(state, hca["rail"])) + "\n"
        yield f"{folder}/board_id", "MT_0000000838\n"
        yield f"{folder}/hca_type", "MT4129\n"
        yield from _device(folder, "mlx5_core", hca)
        yield from ((f"{folder}/ports/1/{name}", content) for name, content in _port(hca))


def _hca_firmware(state: VirtualNodeState, rail: int) -> str:
    """Return an adapter's firmware version; BMCs differ in their ids for adapters."""
    firmware = state["firmware"]
    return str(next((firmware[ident] for kind in ("HCA", "CX7", "CX8") if (ident := f"{kind}_{rail}") in firmware), ""))


def _device(folder: str, driver: str, part: VirtualNodeState) -> Files:
    yield f"{folder}/device/uevent", f"DRIVER={driver}\nPCI_SLOT_NAME={part['pci']}\n"
    yield f"{folder}/device/numa_node", f"{part['numa_node']}\n"


def _port(hca: VirtualNodeState) -> Files:
    state, rate = hca["state"], hca["rate_gbps"]
    yield "state", f"{PORT_STATE[state]}: {state}\n"
    yield "phys_state", "2: Polling\n" if state == "DOWN" else "5: LinkUp\n"
    yield "rate", f"{rate} Gb/sec (4X {SPEED_NAME.get(rate, 'SDR')})\n"
    yield "link_layer", "InfiniBand\n"
    yield "lid", f"{hca['lid']:#x}\n"
    yield "sm_lid", "0x1\n"
    yield "gids/0", f"fe80:0000:0000:0000:{_grouped(hca['guid'])}\n"
    yield from ((f"pkeys/{index}", f"{key}\n") for index, key in enumerate([*hca["pkeys"], "0x0000"]))
    for counter in PORT_COUNTERS:
        yield f"counters/{counter}", f"{hca.get(counter, hca['counters'].get(counter, 0))}\n"
    for counter in HW_COUNTERS:
        yield f"hw_counters/{counter}", f"{hca['hw_counters'].get(counter, 0)}\n"


def _grouped(guid: str) -> str:
    digits = guid.removeprefix("0x").rjust(16, "0")
    return ":".join(digits[start : start + 4] for start in range(0, 16, 4))


def _nics(state: VirtualNodeState) -> Files:
    for nic in state["nics"]:
        folder = f"sys/class/net/{nic['name']}"
        yield from _device(folder, "mlx5_core", nic)
        yield f"{folder}/type", "1\n"
        yield f"{folder}/address", f"{nic['mac']}\n"
        yield f"{folder}/carrier", f"{int(nic['carrier'])}\n"
        yield f"{folder}/speed", f"{nic['speed_mbps'] if nic['carrier'] else -1}\n"
        yield f"{folder}/carrier_changes", f"{nic['carrier_changes']}\n"
        yield f"{folder}/duplex", "full\n"
        yield f"{folder}/mtu", f"{nic['mtu']}\n"
        for counter in NIC_COUNTERS:
            yield f"{folder}/statistics/{counter}", f"{nic['counters'].get(counter, 0)}\n"


def _nvme(state: VirtualNodeState) -> Files:
    for drive in state["nvme"]:
        if drive["present"]:
            folder = f"sys/class/nvme/{drive['name']}"
            yield f"{folder}/model", f"{drive['model']:<40}\n"
            yield f"{folder}/serial", f"{drive['serial']:<20}\n"
            yield f"{folder}/firmware_rev", f"{drive['firmware']:<8}\n"
            yield f"{folder}/state", f"{drive['state']}\n"
            yield f"{folder}/transport", "pcie\n"
            yield f"{folder}/address", f"{drive['pci']}\n"
            yield f"{folder}/{drive['name']}n1/size", f"{drive['size_gb'] * 10**9 // SECTOR}\n"


def _smart(state: VirtualNodeState) -> Files:
    for drive in state["nvme"]:
        if drive["present"]:
            smart = {"temperature": drive["smart"]["temperature_c"] + KELVIN, **drive["smart"]}
            smart.pop("temperature_c")
            yield f"run/smart-log/{drive['name']}", json.dumps(smart) + "\n"


def _identify(state: VirtualNodeState) -> Files:
    """Yield what `nvme id-ctrl` prints about the ways to erase a drive."""
    for drive in state["nvme"]:
        can = drive["can_wipe"]
        sanicap = ("sanitize-crypto" in can) | ("sanitize-block" in can) << 1
        formats = {"sn": drive["serial"], "mn": drive["model"], "sanicap": sanicap}
        formats |= {"oacs": ("format-erase" in can) << 1, "fna": ("format-crypto" in can) << 2}
        if drive["present"]:
            yield f"run/id-ctrl/{drive['name']}", json.dumps(formats) + "\n"


def _bonds(state: VirtualNodeState) -> Files:
    """Yield the bonds and the link state of their members."""
    bonds = state["host"]["bonds"]
    if bonds:
        yield "sys/class/net/bonding_masters", " ".join(bonds) + "\n"
    for name, bond in bonds.items():
        yield f"sys/class/net/{name}/bonding/mode", "802.3ad 4\n"
        yield f"sys/class/net/{name}/bonding/slaves", " ".join(bond["members"]) + "\n"
        for member in bond["members"]:
            up = "down" if member in bond["down"] else "up"
            yield f"sys/class/net/{member}/bonding_slave/mii_status", f"{up}\n"
