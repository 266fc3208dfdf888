"""Faults of the host: memory, PCIe, drives, file systems, kernel, clock, services, adapters, and changed settings.

A docstring is the line of `assay lab inject`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
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


def dimm_errors(state: VirtualNodeState, now: datetime, dimm: int, corrected: int = 0, uncorrected: int = 0) -> None:
    """Corrected or uncorrected memory errors of one module."""
    slot = state["host"]["dimms"][dimm]
    slot["corrected"] += corrected
    slot["uncorrected"] += uncorrected
    for count, kind in ((corrected, "CE"), (uncorrected, "UE")):
        if count:
            append_kernel_line(state, now, f"EDAC MC{dimm // 4}: {count} {kind} memory read error on {slot['slot']}")


def pcie_narrow(
    state: VirtualNodeState, now: datetime, device: str, width: int = 2, generation: int | None = None
) -> None:
    """An adapter or drive (`mlx5_3`, `nvme2`) whose PCIe link trained at a smaller width or a lower speed."""
    part = find_adapter(state, device)
    part["pcie_width"] = width
    part.update({"pcie_generation": generation} if generation else {})


def pcie_errors(state: VirtualNodeState, now: datetime, device: str, correctable: int = 0, nonfatal: int = 0) -> None:
    """PCIe errors of an adapter or a drive."""
    part = find_adapter(state, device)
    part["aer_correctable"] = part.get("aer_correctable", 0) + correctable
    part["aer_nonfatal"] = part.get("aer_nonfatal", 0) + nonfatal


def drive_failing(
    state: VirtualNodeState, now: datetime, drive: int, media_errors: int = 12, read_only: bool = False
) -> None:
    """A drive that reports media errors."""
    smart = state["nvme"][drive]["smart"]
    smart["media_errors"] += media_errors
    smart["critical_warning"] |= READ_ONLY if read_only else UNRELIABLE


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


def module_missing(state: VirtualNodeState, now: datetime, module: str = "nvidia_peermem") -> None:
    """A kernel module that is not loaded."""
    require_among(module, state["host"]["modules"])
    state["host"]["modules"].remove(module)


def swap_on(state: VirtualNodeState, now: datetime, gib: int = 8) -> None:
    """A node with swap switched on."""
    state["host"]["swap_kib"] = gib * KIB_A_GIB


def hung_processes(
    state: VirtualNodeState, now: datetime, stuck: int = 16, zombies: int = 0, load: float | None = None
) -> None:
    """Processes stuck in uninterruptible sleep, and zombies."""
    modes = ["D"] * stuck + ["Z"] * zombies
    added = [{"pid": FIRST_PID + n, "name": "python3", "state": mode} for n, mode in enumerate(modes)]
    state["host"]["processes"] += added
    average = float(stuck) if load is None else load
    state["host"]["load"] = [average] * 3


def nic_flap(state: VirtualNodeState, now: datetime, nic: str, times: int = 20) -> None:
    """A front-end link that went down and up repeatedly."""
    find_adapter(state, nic)["carrier_changes"] += 2 * times


def bond_degraded(state: VirtualNodeState, now: datetime, nic: str = "eth1") -> None:
    """A bond of the front-end interfaces with one member down."""
    find_adapter(state, nic)
    members = [part["name"] for part in state["nics"]]
    state["host"]["bonds"]["bond0"] = {"members": members, "down": [nic]}


def hca_counter(state: VirtualNodeState, now: datetime, hca: str, counter: str, count: int = 100_000) -> None:
    """A counter of an HCA port: of the link (`port_rcv_errors`) or of mlx5 (`out_of_buffer`)."""
    require_among(counter, (*PORT_COUNTERS, *HW_COUNTERS))
    find_adapter(state, hca)["hw_counters" if counter in HW_COUNTERS else "counters"][counter] = count


def hca_partition(state: VirtualNodeState, now: datetime, hca: str, pkeys: str = "0x7fff") -> None:
    """An HCA with another P_Key table (comma separated)."""
    find_adapter(state, hca)["pkeys"] = pkeys.split(",")


def ib_link_flap(state: VirtualNodeState, now: datetime, hca: str, times: int = 3) -> None:
    """A rail link that went down and up `times` times in the last minutes."""
    slot = next(each for each in state["hcas"] if each["name"] == hca)
    slot["link_downed"] += times
    for flap in range(times):
        at = now - timedelta(seconds=20 * (times - flap))
        append_kernel_line(state, at, f"mlx5_core {slot['pci']} {hca}: Port: 1 Link DOWN")
        append_kernel_line(state, at + timedelta(seconds=4), f"mlx5_core {slot['pci']} {hca}: Port: 1 Link ACTIVE")


def ib_link_down(state: VirtualNodeState, now: datetime, hca: str) -> None:
    """A rail link that is down, though its cable is plugged."""
    slot = next(each for each in state["hcas"] if each["name"] == hca)
    slot |= {"state": "DOWN", "link_downed": slot["link_downed"] + 1}
    append_kernel_line(state, now, f"mlx5_core {slot['pci']} {hca}: Port: 1 Link DOWN")


def firmware_old(state: VirtualNodeState, now: datetime, version: str, ids: str) -> None:
    """Old firmware: the inventory `ids` (comma separated) have `version`."""
    known = ", ".join(state["firmware"])
    for inventory_id in ids.split(","):
        if inventory_id not in state["firmware"]:
            raise AssayError(f"{state['name']} has no firmware {inventory_id!r}", fix=f"use one of {known}")
        state["firmware"][inventory_id] = version


def find_adapter(state: VirtualNodeState, name: str) -> VirtualNodeState:
    """Return the adapter, drive or interface of that name. Raises AssayError if the node has none."""
    parts = {part["name"]: part for kind in ("hcas", "nvme", "nics") for part in state[kind]}
    part: VirtualNodeState = parts[require_among(name, parts)]
    return part


def _mount(state: VirtualNodeState, point: str) -> VirtualNodeState:
    mounts = {mount["point"]: mount for mount in state["host"]["mounts"]}
    mount: VirtualNodeState = mounts[require_among(point, mounts)]
    return mount


def require_among(name: str, among: Mapping[str, object] | list[str] | tuple[str, ...]) -> str:
    """Return a name that is among others. Raises AssayError with all of them for any other name."""
    if name not in among:
        raise AssayError(f"this node has no {name!r}", fix=f"use one of {', '.join(among)}")
    return name


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


HOST_FAULTS: Mapping[str, Callable[..., None]] = {
    "firmware.old": firmware_old,
    "ib.link.down": ib_link_down,
    "ib.link.flap": ib_link_flap,
    "bond.degraded": bond_degraded,
    "dimm.errors": dimm_errors,
    "dimm.missing": dimm_missing,
    "file-system.full": file_system_full,
    "file-system.read-only": file_system_read_only,
    "gpu.setting": gpu_setting,
    "hca.counter": hca_counter,
    "hca.partition": hca_partition,
    "hca.setting": hca_setting,
    "module.missing": module_missing,
    "nic.flap": nic_flap,
    "nvme.failing": drive_failing,
    "pcie.errors": pcie_errors,
    "pcie.narrow": pcie_narrow,
    "processes.hung": hung_processes,
    "swap.on": swap_on,
}
