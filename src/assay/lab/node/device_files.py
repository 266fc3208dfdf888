"""The files of a virtual node's devices: GPUs, adapters and their ports, network interfaces, bonds, drives.

`pci_files` has the same devices as the PCI bus shows them: a GPU and an adapter with neighbouring buses share one PCIe
switch, every other device has its own root port. `adapter_firmware_files` has the settings of HCAs and NICs as
mstconfig prints them, by name: `default`, `current` (in force) and `next_boot`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from assay.lab.node.host_files import Files
from assay.lab.virtual_node_state import VirtualNodeState

if TYPE_CHECKING:
    from assay.model.specs.node.node_spec import NodeSpec


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
ROCE_HW_COUNTERS = ("np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "roce_adp_retrans")
MLX5_STATISTICS = (  # Linux, Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst
    *("rx_discards_phy", "tx_discards_phy", "rx_crc_errors_phy", "rx_corrected_bits_phy", "rx_pcs_symbol_err_phy"),
    *("link_down_events_phy", "tx_pause_storm_warning_events", "tx_pause_storm_error_events"),
    *(f"{way}_prio{priority}_pause" for priority in range(8) for way in ("rx", "tx")),
)
PORT_STATE = {"DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4}
SPEED_NAME = {10: "SDR", 20: "DDR", 40: "QDR", 56: "FDR", 100: "EDR", 200: "HDR", 400: "NDR", 800: "XDR"}
DEVICES = "sys/bus/pci/devices"
CLASSES = {"gpu": "0x030200", "hca": "0x020700", "nic": "0x020000", "nvme": "0x010802", "bridge": "0x060400"}
CLASSES |= {"accelerator": "0x120000"}
SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"}
ROOT_PORT = 4
UPSTREAM = 5
DOWNSTREAM = 6
SWITCH_BUS_SPAN = 8  # buses
AER = {
    "correctable": ("RxErr BadTLP BadDLLP Rollover Timeout NonFatalErr CorrIntErr HeaderOF", "TOTAL_ERR_COR"),
    "nonfatal": ("Undefined DLP SDES TLP FCP CmpltTO CmpltAbrt UnxCmplt", "TOTAL_ERR_NONFATAL"),
    "fatal": ("Undefined DLP SDES TLP FCP CmpltTO CmpltAbrt UnxCmplt", "TOTAL_ERR_FATAL"),
}
AMD_ERRORS = {"corrected": "correctable", "uncorrected": "uncorrectable"}
Adapter = dict[str, Any]
NUMBERS: Mapping[str, Mapping[str, int]] = {  # Mellanox/mstflint, mlxconfig_dbs/mlxconfig_host.db
    "LINK_TYPE_P1": {"IB": 1, "ETH": 2},
    "PCI_WR_ORDERING": {"per_mkey": 0, "force_relax": 1},
    "ROCE_CONTROL": {"DEVICE_DEFAULT": 0, "ROCE_DISABLE": 1, "ROCE_ENABLE": 2},
}
SWITCH = {"False": 0, "True": 1}
DEFAULTS = {"PCI_WR_ORDERING": "per_mkey", "ROCE_CONTROL": "ROCE_ENABLE", "ATS_ENABLED": "False", "NUM_OF_VFS": "16"}
HEADING = f"{'Configurations:':<16}{'Default':>43}{'Current':>17}{'Next Boot':>19}"
DEVICE = "\nDevice #1:\n----------\n\nDevice type:        ConnectX7\nDevice:             "


def device_files(state: VirtualNodeState) -> Files:
    """Yield every file about the devices as (path below the root, content)."""
    for part in (_gpus, _amd_smi, _hcas, _roce, _nics, _bonds, _nvme, _smart, _identify, _disks):
        yield from part(state)


def _gpus(state: VirtualNodeState) -> Files:
    for gpu in state["gpus"] if state["driver"] else ():
        if gpu["present"]:
            yield (
                f"proc/driver/nvidia/gpus/{gpu['pci']}/information",
                f"Model: \t\t {gpu['name']}\nGPU UUID: \t {gpu['uuid']}\nBus Location: \t {gpu['pci']}\n",
            )


def _amd_smi(state: VirtualNodeState) -> Files:
    """Yield AMD's driver, and what `amd-smi` prints of its GPUs: a lost one is not among them."""
    answering = [gpu for gpu in state["gpus"] if gpu["present"] and not gpu["lost"] and not state["driver"]]
    if not answering:
        return
    yield "sys/module/amdgpu/refcnt", "0\n"
    static, metric, pages = zip(*map(_ask_amd_smi, answering), strict=True)
    yield "run/amd-smi/static", json.dumps({"gpu_data": static}) + "\n"
    yield "run/amd-smi/metric", json.dumps({"gpu_data": metric}) + "\n"
    yield "run/amd-smi/bad-pages", json.dumps(pages) + "\n"


def _ask_amd_smi(gpu: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the rows of one GPU in the answers to `static`, `metric` and `bad-pages`, in the form of ROCm 7."""
    row = {"gpu": gpu["index"]}
    errors = {f"total_{kind}_count": gpu[f"ecc_volatile_{name}"] for name, kind in AMD_ERRORS.items()}
    pages = [{"page_address": f"0x{at:08x}", "page_size": 4096, "status": "RETIRED"} for at in range(gpu["bad_pages"])]
    static = {
        "asic": {"market_name": gpu["name"], "asic_serial": f"0x{gpu['serial']}"},
        "bus": {"bdf": gpu["pci"], "max_pcie_width": gpu["pcie_width"]},
        "vbios": {"version": "022.040.003.043.000001"},
        "driver": {"name": "amdgpu", "version": "6.12.12"},
        "limit": {
            "max_power": {"value": gpu["power_limit_w"], "unit": "W"},
            "slowdown_edge_temperature": "N/A",
            "slowdown_hotspot_temperature": {"value": 100, "unit": "C"},
        },
        "vram": {"type": "HBM3", "size": {"value": gpu["memory_total_bytes"] >> 20, "unit": "MB"}},
    }
    metric = {
        "power": {"socket_power": {"value": gpu["power_w"], "unit": "W"}},
        "temperature": {
            "edge": "N/A",
            "hotspot": {"value": gpu["temperature_c"], "unit": "C"},
            "mem": {"value": gpu.get("memory_temperature_c", gpu["temperature_c"] + 6), "unit": "C"},
        },
        "pcie": {"width": gpu["pcie_width"], "replay_count": gpu["pcie_replays"]},
        "ecc": {**errors, "total_deferred_count": 0},
    }
    return row | static, row | metric, row | {"retired": pages or "No bad pages found."}


def _hcas(state: VirtualNodeState) -> Files:
    for hca in state["hcas"]:
        folder = f"sys/class/infiniband/{hca['name']}"
        yield f"{folder}/node_guid", f"{_grouped(hca['guid'])}\n"
        idents = [f"{kind}_{hca['rail']}" for kind in ("HCA", "CX7", "CX8")]  # BMCs differ in their ids for adapters
        firmware = next((state["firmware"][ident] for ident in idents if ident in state["firmware"]), "")
        yield f"{folder}/fw_ver", f"{hca.get('firmware') or firmware}\n"
        yield f"{folder}/board_id", "MT_0000000838\n"
        yield f"{folder}/hca_type", "MT4129\n"
        yield from _device(folder, "mlx5_core", hca)
        yield from ((f"{folder}/ports/1/{name}", content) for name, content in _port(hca))


def _device(folder: str, driver: str, part: Mapping[str, Any]) -> Files:
    yield f"{folder}/device/uevent", f"DRIVER={driver}\nPCI_SLOT_NAME={part['pci']}\n"
    yield f"{folder}/device/numa_node", f"{part['numa_node']}\n"


def _port(hca: VirtualNodeState) -> Files:
    state = hca["state"]
    rate = hca["rate_gbps"]
    yield "state", f"{PORT_STATE[state]}: {state}\n"
    yield "phys_state", "2: Polling\n" if state == "DOWN" else "5: LinkUp\n"
    yield "rate", f"{rate} Gb/sec (4X {SPEED_NAME.get(rate, 'SDR')})\n"
    roce = "roce" in hca
    yield "link_layer", "Ethernet\n" if roce else "InfiniBand\n"
    yield "lid", "0x0\n" if roce else f"{hca['lid']:#x}\n"
    yield "sm_lid", "0x0\n" if roce else "0x1\n"
    yield "gids/0", f"fe80:0000:0000:0000:{_grouped(hca['guid'])}\n"
    yield from ((f"pkeys/{index}", f"{key}\n") for index, key in enumerate([*hca["pkeys"], "0x0000"]))
    for counter in PORT_COUNTERS:
        yield f"counters/{counter}", f"{hca.get(counter, hca['counters'].get(counter, 0))}\n"
    for counter in HW_COUNTERS:
        yield f"hw_counters/{counter}", f"{hca['hw_counters'].get(counter, 0)}\n"


def _roce(state: VirtualNodeState) -> Files:
    """Yield the interfaces of adapters on Ethernet, and what dcb and ethtool print of them."""
    for hca in (hca for hca in state["hcas"] if "roce" in hca):
        roce, name = hca["roce"], hca["roce"]["interface"]
        port, folder = f"sys/class/infiniband/{hca['name']}/ports/1", f"sys/class/net/{name}"
        yield f"{port}/gid_attrs/ndevs/0", f"{name}\n"
        for counter in ROCE_HW_COUNTERS:
            yield f"{port}/hw_counters/{counter}", f"{hca['hw_counters'].get(counter, 0)}\n"
        is_up = hca["state"] == "ACTIVE"
        yield from _interface(folder, {**hca, "carrier": is_up, **roce})
        pfc = {"pfc_cap": 8, "macsec_bypass": False, "delay": 0, "prio_pfc": [at in roce["pfc"] for at in range(8)]}
        yield f"run/dcb/pfc/{name}", json.dumps(pfc) + "\n"
        priorities = [[int(dscp), priority] for dscp, priority in roce["dscp"].items()]
        yield f"run/dcb/app/{name}", json.dumps({"dscp_prio": priorities} if priorities else {}) + "\n"
        counters = {**dict.fromkeys(MLX5_STATISTICS, 0), **roce["statistics"]}
        lines = "".join(f"     {counter}: {number}\n" for counter, number in counters.items())
        yield f"run/ethtool/{name}", f"NIC statistics:\n{lines}"


def _grouped(guid: str) -> str:
    digits = guid.removeprefix("0x").rjust(16, "0")
    return ":".join(digits[start : start + 4] for start in range(0, 16, 4))


def _nics(state: VirtualNodeState) -> Files:
    for nic in state["nics"]:
        yield from _interface(f"sys/class/net/{nic['name']}", nic)


def _interface(folder: str, nic: Mapping[str, Any]) -> Files:
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


def _disks(state: VirtualNodeState) -> Files:
    """Yield what `smartctl --scan` and `smartctl --all` print of SATA drives."""
    present = [disk for disk in state.get("disks", ()) if disk["present"]]
    if state.get("disks"):
        yield "sys/class/scsi_host/host0/proc_name", "ahci\n"
    names = [{"name": f"/dev/{disk['name']}", "type": "scsi", "protocol": "SCSI"} for disk in present]
    yield "run/smartctl/scan", json.dumps({"smartctl": {"exit_status": 0}, "devices": names}) + "\n"
    for disk, device in zip(present, names, strict=True):
        counts = [{"id": int(number), "raw": {"string": str(count)}} for number, count in disk["attributes"].items()]
        printed = {
            "device": {**device, "type": "sat", "protocol": "ATA"},
            "model_name": "SAMSUNG MZ7L3480HCHQ-00A07",
            "serial_number": disk["serial"],
            "firmware_version": "JXTC604Q",
            "user_capacity": {"bytes": disk["size_gb"] * 10**9},
            "smart_status": {"passed": disk["passed"]},
            "ata_smart_attributes": {"table": counts},
            "temperature": {"current": disk["temperature_c"]},
        }
        yield f"run/smartctl/{disk['name']}", json.dumps(printed) + "\n"


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


def pci_files(state: VirtualNodeState) -> Files:
    """Yield the files of all PCI devices and bridges."""
    gpu = "gpu" if state["driver"] else "accelerator"
    for kind, parts in ((gpu, "gpus"), ("hca", "hcas"), ("nic", "nics"), ("nvme", "nvme")):
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
    width = part.get("pcie_width", best[0])
    generation = int(part.get("pcie_generation", best[1]))
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
    bridges: dict[str, tuple[int, int, int]] = {}
    alone = [part["pci"] for parts in ("gpus", "hcas", "nics", "nvme") for part in state[parts]]
    for gpu, hca in zip(state["gpus"], state["hcas"], strict=False):
        if _is_same_switch(gpu["pci"], hca["pci"]):
            bridges |= _switch(gpu["pci"], hca["pci"])
            alone = [pci for pci in alone if pci not in (gpu["pci"], hca["pci"])]
    for domain, bus in map(_place, alone):
        bridges[f"{domain}:{bus - 1:02x}:01.0"] = (ROOT_PORT, bus, bus)
    return bridges


def _switch(gpu: str, hca: str) -> dict[str, tuple[int, int, int]]:
    domain = _place(gpu)[0]
    first, last = sorted((_place(gpu)[1], _place(hca)[1]))
    return {
        f"{domain}:{first - 3:02x}:01.0": (ROOT_PORT, first - 2, last),
        f"{domain}:{first - 2:02x}:00.0": (UPSTREAM, first - 1, last),
        f"{domain}:{first - 1:02x}:00.0": (DOWNSTREAM, first, first),
        f"{domain}:{first - 1:02x}:01.0": (DOWNSTREAM, last, last),
    }


def _is_same_switch(gpu: str, hca: str) -> bool:
    gpu_domain, gpu_bus = _place(gpu)
    hca_domain, hca_bus = _place(hca)
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


def print_firmware_value(name: str, text: str) -> str:
    """Return a value as mstconfig prints it, such as `ETH(2)`, from its name or its number."""
    for known, number in NUMBERS.get(name, {} if text.isdecimal() else SWITCH).items():
        if text.lower() in (known.lower(), str(number)):
            return f"{known}({number})"
    return text


def with_firmware_settings(adapters: list[Adapter], spec: NodeSpec, link_type: str) -> list[Adapter]:
    """Return the adapters with the settings of the spec, else the usual ones."""
    given = spec.hca_settings
    common = given.hcas if any("rail" in each for each in adapters) else given.nics
    return [
        {**each, "settings": _make_settings(link_type, {**common, **given.by_name.get(each["name"], {})})}
        for each in adapters
    ]


def _make_settings(link_type: str, declared: Mapping[str, Any]) -> dict[str, Adapter]:
    usual = {"LINK_TYPE_P1": link_type, **DEFAULTS}
    settings = {}
    for name, text in {**usual, **declared}.items():
        printed = print_firmware_value(name, str(text))
        default = print_firmware_value(name, usual.get(name, str(text)))
        settings[name] = {"default": default, "current": printed, "next_boot": printed}
    return settings


def adapter_after_boot(adapter: Mapping[str, Any]) -> Adapter:
    """Return the adapter after a boot: the pending settings are in force."""
    settings = adapter.get("settings", {})
    in_force = {name: {**setting, "current": setting["next_boot"]} for name, setting in settings.items()}
    return {**adapter, "settings": in_force}


def adapter_firmware_files(state: VirtualNodeState) -> Iterator[tuple[str, str]]:
    """Yield what `mstconfig -e query` prints of each adapter. An adapter without settings refuses to be asked."""
    for adapter in [*state["hcas"], *state["nics"]]:
        if settings := adapter.get("settings"):
            rows = ""
            for name, setting in settings.items():
                cells = [setting["default"], setting["current"], setting["next_boot"]]
                mark = "*" if len(set(cells)) > 1 else ""
                rows += f"{mark:<8}{name:<44}{cells[0]:<20} {cells[1]:<20} {cells[2]:<20}\n"
            yield f"run/mstconfig/{adapter['pci']}", f"{DEVICE}{adapter['pci']}\n\n{HEADING}\n{rows}"
