"""Faults of the host: memory, PCIe, drives, file systems, kernel, clock, services, adapters, and changed settings.

A docstring is the line of `assay lab inject`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

from assay.lab.node.device_files import HW_COUNTERS, PORT_COUNTERS, print_firmware_value
from assay.lab.node.healthy_devices import COMPUTE_MODES
from assay.lab.virtual_node_state import VirtualNodeState, append_kernel_line
from assay.model.errors import AssayError

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time


REDIRECTS = 0x1D  # ACS: source validation, request and completion redirect, upstream forwarding
MACHINE_CHECK = 1 << 4  # Documentation/admin-guide/tainted-kernels.rst
SOFT_LOCKUP = 1 << 14
UNRELIABLE = 0x04  # NVM Express Base Specification, critical warning
READ_ONLY = 0x08
KIB_A_GIB = 2**20
FIRST_PID = 70_000
GpuSettingName = Literal["persistence", "ecc", "mig", "compute_mode", "application_mhz", "power_limit_w"]


def dimm_missing(state: VirtualNodeState, now: datetime, dimm: int) -> None:
    """A memory module that the firmware no longer finds; the kernel has less memory."""
    slot = state["host"]["dimms"][dimm]
    slot["present"] = False
    state["memory_bytes"] -= slot["size_gib"] * 2**30


def dimm_slow(state: VirtualNodeState, now: datetime, dimm: int, mts: int = 4000) -> None:
    """A memory module that trained below its speed."""
    state["host"]["dimms"][dimm]["configured_mts"] = mts


def dimm_errors(state: VirtualNodeState, now: datetime, dimm: int, corrected: int = 0, uncorrected: int = 0) -> None:
    """Corrected or uncorrected memory errors of one module."""
    slot = state["host"]["dimms"][dimm]
    slot["corrected"] += corrected
    slot["uncorrected"] += uncorrected
    for count, kind in ((corrected, "CE"), (uncorrected, "UE")):
        if count:
            append_kernel_line(state, now, f"EDAC MC{dimm // 4}: {count} {kind} memory read error on {slot['slot']}")


def machine_check(state: VirtualNodeState, now: datetime, count: int = 1) -> None:
    """A machine check that the kernel survived."""
    state["host"]["machine_checks"] += count
    state["host"]["taint"] |= MACHINE_CHECK
    append_kernel_line(state, now, "mce: [Hardware Error]: Machine check events logged")


def soft_lockup(state: VirtualNodeState, now: datetime, cpu: int = 63) -> None:
    """A processor stuck in the kernel for a while."""
    state["host"]["taint"] |= SOFT_LOCKUP
    append_kernel_line(state, now, f"watchdog: BUG: soft lockup - CPU#{cpu} stuck for 26s! [kswapd0:428]")


def cpus_offline(state: VirtualNodeState, now: datetime, count: int = 8) -> None:
    """Processors that are offline."""
    state["host"]["cpus_offline"] = count


def pcie_narrow(
    state: VirtualNodeState, now: datetime, device: str, width: int = 2, generation: int | None = None
) -> None:
    """An adapter or drive (`mlx5_3`, `nvme2`) whose PCIe link trained at a smaller width or a lower speed."""
    part = _named(state, device)
    part["pcie_width"] = width
    part.update({"pcie_generation": generation} if generation else {})


def pcie_errors(state: VirtualNodeState, now: datetime, device: str, correctable: int = 0, nonfatal: int = 0) -> None:
    """PCIe errors of an adapter or a drive."""
    part = _named(state, device)
    part["aer_correctable"] = part.get("aer_correctable", 0) + correctable
    part["aer_nonfatal"] = part.get("aer_nonfatal", 0) + nonfatal


def acs_on(state: VirtualNodeState, now: datetime) -> None:
    """PCIe switches with ACS on, so that traffic between devices goes through the processor."""
    state["host"]["switch_acs"] = REDIRECTS


def drive_failing(
    state: VirtualNodeState, now: datetime, drive: int, media_errors: int = 12, read_only: bool = False
) -> None:
    """A drive that reports media errors."""
    smart = state["nvme"][drive]["smart"]
    smart["media_errors"] += media_errors
    smart["critical_warning"] |= READ_ONLY if read_only else UNRELIABLE


def drive_worn(state: VirtualNodeState, now: datetime, drive: int, used: int = 97, spare: int = 12) -> None:
    """A drive near the end of its life."""
    state["nvme"][drive]["smart"] |= {"percent_used": used, "avail_spare": spare}


def drive_hot(state: VirtualNodeState, now: datetime, drive: int, celsius: int = 79) -> None:
    """A drive that runs hot."""
    state["nvme"][drive]["smart"]["temperature_c"] = celsius


def drive_dead(state: VirtualNodeState, now: datetime, drive: int) -> None:
    """A drive whose controller the kernel has removed."""
    state["nvme"][drive]["state"] = "dead"


def file_system_read_only(state: VirtualNodeState, now: datetime, mount: str = "/data") -> None:
    """A file system that an error made read-only."""
    entry = _mount(state, mount)
    entry["options"] = f"ro,{entry['options'].removeprefix('rw,')}"
    device = entry["source"].removeprefix("/dev/")
    append_kernel_line(state, now, f"XFS ({device}): Filesystem has been shut down due to log error")


def file_system_full(
    state: VirtualNodeState, now: datetime, mount: str = "/data", used: int = 99, inodes: int = 3
) -> None:
    """A file system with little space or few inodes left."""
    _mount(state, mount).update({"used_percent": used, "inodes_used_percent": inodes})


def clock_lost(state: VirtualNodeState, now: datetime, seconds: float = 3.0, synchronised: bool = False) -> None:
    """A clock without synchronisation, off by `seconds`."""
    state["host"]["clock"] |= {"synchronised": synchronised, "offset_s": seconds}


def clock_source(state: VirtualNodeState, now: datetime, source: str = "hpet") -> None:
    """A kernel that has switched to another clock source."""
    state["host"]["clock"]["source"] = source


def service_failed(state: VirtualNodeState, now: datetime, service: str = "nvidia-fabricmanager") -> None:
    """A failed systemd service."""
    _known(service, state["host"]["services"])
    state["host"]["services"][service] = "failed"


def module_missing(state: VirtualNodeState, now: datetime, module: str = "nvidia_peermem") -> None:
    """A kernel module that is not loaded."""
    _known(module, state["host"]["modules"])
    state["host"]["modules"].remove(module)


def sysctl_changed(state: VirtualNodeState, now: datetime, name: str, value: str) -> None:
    """A changed sysctl."""
    _known(name, state["host"]["sysctls"])
    state["host"]["sysctls"][name] = value


def kernel_old(state: VirtualNodeState, now: datetime, version: str = "6.8.0-60-generic") -> None:
    """A node that runs another kernel."""
    state["kernel"] = version


def swap_on(state: VirtualNodeState, now: datetime, gib: int = 8) -> None:
    """A node with swap switched on."""
    state["host"]["swap_kib"] = gib * KIB_A_GIB


def governor(state: VirtualNodeState, now: datetime, name: str = "powersave") -> None:
    """Processors with another frequency governor."""
    state["host"]["governor"] = name


def iommu(state: VirtualNodeState, now: datetime, mode: Literal["identity", "DMA", "DMA-FQ"] = "DMA-FQ") -> None:
    """An IOMMU in another mode."""
    state["host"]["iommu"] = mode


def hung_processes(
    state: VirtualNodeState, now: datetime, stuck: int = 16, zombies: int = 0, load: float | None = None
) -> None:
    """Processes stuck in uninterruptible sleep, and zombies."""
    modes = ["D"] * stuck + ["Z"] * zombies
    added = [{"pid": FIRST_PID + n, "name": "python3", "state": mode} for n, mode in enumerate(modes)]
    state["host"]["processes"] += added
    average = float(stuck) if load is None else load
    state["host"]["load"] = [average] * 3


def nic_errors(
    state: VirtualNodeState, now: datetime, nic: str, count: int = 5000, counter: str = "rx_crc_errors"
) -> None:
    """Errors counted by a front-end interface."""
    _named(state, nic)["counters"][counter] = count


def nic_flap(state: VirtualNodeState, now: datetime, nic: str, times: int = 20) -> None:
    """A front-end link that went down and up repeatedly."""
    _named(state, nic)["carrier_changes"] += 2 * times


def bond_degraded(state: VirtualNodeState, now: datetime, nic: str = "eth1") -> None:
    """A bond of the front-end interfaces with one member down."""
    _named(state, nic)
    members = [part["name"] for part in state["nics"]]
    state["host"]["bonds"]["bond0"] = {"members": members, "down": [nic]}


def nic_mtu(state: VirtualNodeState, now: datetime, nic: str, mtu: int = 1500) -> None:
    """A front-end interface with another MTU."""
    _named(state, nic)["mtu"] = mtu


def hca_counter(state: VirtualNodeState, now: datetime, hca: str, counter: str, count: int = 100_000) -> None:
    """A counter of an HCA port: of the link (`port_rcv_errors`) or of mlx5 (`out_of_buffer`)."""
    _known(counter, (*PORT_COUNTERS, *HW_COUNTERS))
    _named(state, hca)["hw_counters" if counter in HW_COUNTERS else "counters"][counter] = count


def hca_partition(state: VirtualNodeState, now: datetime, hca: str, pkeys: str = "0x7fff") -> None:
    """An HCA with another P_Key table (comma separated)."""
    _named(state, hca)["pkeys"] = pkeys.split(",")


def hca_firmware(state: VirtualNodeState, now: datetime, hca: str, version: str = "28.39.1002") -> None:
    """An HCA with another firmware version, for example after a replacement."""
    _named(state, hca)["firmware"] = version


def hca_misplaced(state: VirtualNodeState, now: datetime, hca: str, numa_node: int = 1) -> None:
    """An HCA attached to the other CPU socket."""
    _named(state, hca)["numa_node"] = numa_node


def _named(state: VirtualNodeState, name: str) -> VirtualNodeState:
    """Return the adapter, drive or interface of that name. Raises AssayError if the node has none."""
    parts = {part["name"]: part for kind in ("hcas", "nvme", "nics") for part in state[kind]}
    part: VirtualNodeState = parts[_known(name, parts)]
    return part


def _mount(state: VirtualNodeState, point: str) -> VirtualNodeState:
    mounts = {mount["point"]: mount for mount in state["host"]["mounts"]}
    mount: VirtualNodeState = mounts[_known(point, mounts)]
    return mount


def _known(name: str, among: Mapping[str, object] | list[str] | tuple[str, ...]) -> str:
    if name not in among:
        raise AssayError(f"this node has no {name!r}", fix=f"use one of {', '.join(among)}")
    return name


HOST_FAULTS: Mapping[str, Callable[..., None]] = {
    "acs.on": acs_on,
    "bond.degraded": bond_degraded,
    "clock.lost": clock_lost,
    "clock.source": clock_source,
    "cpu.governor": governor,
    "cpu.offline": cpus_offline,
    "dimm.errors": dimm_errors,
    "dimm.missing": dimm_missing,
    "dimm.slow": dimm_slow,
    "file-system.full": file_system_full,
    "file-system.read-only": file_system_read_only,
    "hca.counter": hca_counter,
    "hca.firmware": hca_firmware,
    "hca.misplaced": hca_misplaced,
    "hca.partition": hca_partition,
    "iommu": iommu,
    "kernel.old": kernel_old,
    "kernel.soft-lockup": soft_lockup,
    "machine-check": machine_check,
    "module.missing": module_missing,
    "nic.errors": nic_errors,
    "nic.flap": nic_flap,
    "nic.mtu": nic_mtu,
    "nvme.dead": drive_dead,
    "nvme.failing": drive_failing,
    "nvme.hot": drive_hot,
    "nvme.worn": drive_worn,
    "pcie.errors": pcie_errors,
    "pcie.narrow": pcie_narrow,
    "processes.hung": hung_processes,
    "service.failed": service_failed,
    "swap.on": swap_on,
    "sysctl.changed": sysctl_changed,
}


def gpu_setting(
    state: VirtualNodeState, now: datetime, gpu: int, name: GpuSettingName = "persistence", value: str = "off"
) -> None:
    """A GPU with another setting: a mode `on` or `off`, a compute mode by name, MHz or watts."""
    changed: dict[str, Any] = {name: value == "on"}
    if name in ("ecc", "mig"):
        changed = {f"{name}_enabled": value == "on", f"{name}_pending": value == "on"}
    elif name == "compute_mode":
        changed = {name: COMPUTE_MODES.index(value)}
    elif name != "persistence":
        changed = {name: int(value)}
    state["gpus"][gpu] |= changed


def hca_setting(
    state: VirtualNodeState, now: datetime, hca: str, name: str = "LINK_TYPE_P1", value: str = "ETH"
) -> None:
    """An HCA or NIC with another firmware setting."""
    adapter = next(each for each in (*state["hcas"], *state["nics"]) if each["name"] == hca)
    if name not in adapter["settings"]:
        known = ", ".join(adapter["settings"])
        raise AssayError(f"{hca} of {state['name']} has no firmware setting {name!r}", fix=f"use one of {known}")
    printed = print_firmware_value(name, value)
    adapter["settings"][name] |= {"current": printed, "next_boot": printed}


def file_changed(state: VirtualNodeState, now: datetime, path: str, content: str = "# changed by hand\n") -> None:
    """A file of the spec with another content."""
    state["host"]["files"][path] = content


def fabric_manager_old(state: VirtualNodeState, now: datetime, version: str = "570.133.20") -> None:
    """A fabric manager of another version than the driver."""
    state["host"]["fabric_manager"] = version


def module_option_changed(state: VirtualNodeState, now: datetime, module: str, option: str, value: str = "7") -> None:
    """A kernel module that was loaded with another option."""
    state["module_options"].setdefault(module, {})[option] = value


def hugepages_changed(state: VirtualNodeState, now: datetime, size: str = "1048576kB", count: int = 4) -> None:
    """A kernel that reserves another number of huge pages."""
    state["host"]["hugepages"][size] = count


def unit_setting_changed(state: VirtualNodeState, now: datetime, unit: str, name: str, value: str = "8388608") -> None:
    """A unit of systemd that has loaded another setting."""
    state["host"]["unit_settings"].setdefault(unit, {})[name] = value


def time_servers_changed(state: VirtualNodeState, now: datetime, server: str = "pool.example") -> None:
    """A chrony that uses another server."""
    state["host"]["clock"]["sources"] = [server]


SETTING_FAULTS: Mapping[str, Callable[..., None]] = {
    "fabric-manager.old": fabric_manager_old,
    "file.changed": file_changed,
    "gpu.setting": gpu_setting,
    "hugepages.changed": hugepages_changed,
    "module-option.changed": module_option_changed,
    "time-servers.changed": time_servers_changed,
    "unit-setting.changed": unit_setting_changed,
    "hca.setting": hca_setting,
}
