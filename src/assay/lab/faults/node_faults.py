"""Faults of a node that do more than change values: of GPUs, the host, adapters, settings, the BMC and its updates.

A fault is a function of the node's state, the lab's time and its own arguments. Its docstring is the line of `assay lab
inject list`. Some show only under load: wrong results, slow GPUs and adapters, a diagnosis that fails.
"""

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time
from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from assay.lab.bmc.firmware_flash import plan_flash_fault
from assay.lab.node.device_files import HW_COUNTERS, PORT_COUNTERS, print_firmware_value
from assay.lab.node.healthy_devices import COMPUTE_MODES
from assay.lab.virtual_node_state import VirtualNodeState, append_kernel_line
from assay.model.errors import AssayError
from assay.node.probe.gpu.gpu_device import RECOVERY_ACTIONS, THROTTLE_REASONS

XID_TEXTS = {
    79: "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    48: "pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been detected on GPU.",
}
EVERY_TEST = "*"


def gpu_xid(state: VirtualNodeState, now: datetime, gpu: int, xid: int = 79, times: int = 1) -> None:
    """An XID, in the kernel log and as NVML's event; 79 also takes the GPU off the bus until the next reboot."""
    slot = state["gpus"][gpu]
    slot["lost"] = slot["lost"] or xid == 79
    slot["xids"] = [*slot.get("xids", []), *[xid] * times]
    text = XID_TEXTS.get(xid, "pid=4242, name=python3, Ch 00000008")
    for _ in range(times):
        append_kernel_line(state, now, f"NVRM: Xid (PCI:{slot['pci'][:-2]}): {xid}, {text}")


def gpu_throttled(state: VirtualNodeState, now: datetime, gpu: int, reason: str = "hw_power_brake_slowdown") -> None:
    """A GPU throttled for one of NVML's reasons."""
    state["gpus"][gpu]["throttle"] |= 1 << _numbered(reason, THROTTLE_REASONS)


def gpu_memory_remap(state: VirtualNodeState, now: datetime, gpu: int, failed: bool = False) -> None:
    """A memory row that waits for its remapping at the next reset, or one whose remapping failed."""
    slot = state["gpus"][gpu]
    slot["remap_failed" if failed else "remap_pending"] = 1
    if failed:
        slot["remap_banks"] = {**slot["remap_banks"], "max": slot["remap_banks"]["max"] - 1, "none": 1}


def gpu_nvlink_down(state: VirtualNodeState, now: datetime, gpu: int, links: int = 1) -> None:
    """NVLinks of a GPU that went down."""
    state["gpus"][gpu]["nvlink_up"] -= links


def gpu_recovery(state: VirtualNodeState, now: datetime, gpu: int, action: str = "reset") -> None:
    """A GPU for which the driver asks for a recovery action."""
    state["gpus"][gpu]["recovery_action"] = _numbered(action, RECOVERY_ACTIONS)


def gpu_busy(state: VirtualNodeState, now: datetime, gpu: int, pid: int = 4242, job: int = 0) -> None:
    """A process on a GPU: a leftover one, or one of a running `job` of the lab's scheduler."""
    slot = state["gpus"][gpu]
    jobs = {**slot.get("pid_jobs", {}), str(pid): job} if job else slot.get("pid_jobs", {})
    slot |= {"pids": [*slot["pids"], pid], "pid_jobs": jobs, "memory_used_bytes": 2**30}


def _numbered(word: str, words: tuple[str, ...]) -> int:
    if word not in words:
        raise AssayError(f"{word!r} is not known to NVML", fix=f"one of {', '.join(words)}")
    return words.index(word)


def gpu_computes_wrong(
    state: VirtualNodeState,
    now: datetime,
    gpu: int,
    kind: Literal["permanent", "flip", "burst", "nan", "heat"] = "permanent",
    test: str = EVERY_TEST,
    bit: int = 3,
    rate: float = 1.0,
    side: Literal["result", "send"] = "result",
) -> None:
    """A GPU with wrong results: always the same bit, a flipped bit, 32 neighbours, NaN, or more and more with heat.

    `side`: `send` spoils what it sends to other GPUs.
    """
    chosen = "" if kind in ("nan", "heat") else f",bit={bit}"
    slot = state["gpus"][gpu]
    slot["computes"] = [*slot.get("computes", []), f"kind={kind},test={test},rate={rate},side={side}{chosen}"]


def gpu_slow(state: VirtualNodeState, now: datetime, gpu: int, percent: float = 20) -> None:
    """A GPU that multiplies so much more slowly on its tensor cores."""
    _slow_down(state["load"]["tensor_gflops"], gpu, percent)


def gpu_copies_slowly(state: VirtualNodeState, now: datetime, gpu: int, percent: float = 50) -> None:
    """A GPU that copies so much more slowly from and to the host, and from and to other GPUs."""
    for name in ("host_copy_gb_s", "peer_copy_gb_s"):
        _slow_down(state["load"][name], gpu, percent)


def gpu_fails_diagnosis(state: VirtualNodeState, now: datetime, gpu: int, test: str = "memory") -> None:
    """A GPU that fails a test of `dcgmi diag`."""
    pci = state["gpus"][gpu]["pci"]
    state["load"]["diagnosis"].setdefault(str(gpu), {})[test] = f"GPU {gpu} ({pci}) failed the test"


def hca_slow(state: VirtualNodeState, now: datetime, hca: str, percent: float = 50) -> None:
    """An adapter that writes so much more slowly although its link is well."""
    next(each for each in state["hcas"] if each["name"] == hca)
    speeds = state["load"]["write_gbps"]
    speeds[hca] = round(speeds[hca] * (1 - percent / 100), 2)


def _slow_down(speeds: list[float], gpu: int, percent: float) -> None:
    speeds[gpu] = round(speeds[gpu] * (1 - percent / 100), 2)


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


def boot_server(state: VirtualNodeState, now: datetime, url: str) -> None:
    """A boot server, http://HOST:PORT, that DHCP names: the machine starts from it from now on."""
    state["boot_server"] = url.rstrip("/")


def bmc_ntp(state: VirtualNodeState, now: datetime, enabled: bool = True, servers: str = "") -> None:
    """Changed NTP settings of the BMC; `servers` are separated by commas."""
    state["box"]["ntp"] = {"enabled": enabled, "servers": [name for name in servers.split(",") if name]}


def bmc_syslog(state: VirtualNodeState, now: datetime, server: str = "") -> None:
    """A BMC that sends its log to no server, or by UDP to another `server` (HOST:PORT)."""
    subscriptions = state["subscriptions"]
    others = {ident: entry for ident, entry in subscriptions.items() if "Syslog" not in entry.get("protocol", "")}
    added = {"destination": f"syslog://{server}", "context": "", "protocol": "SyslogUDP"}
    state["subscriptions"] = others | ({"planted": added} if server else {})


def bmc_account(
    state: VirtualNodeState, now: datetime, user: str, role: str = "Administrator", locked: bool = False
) -> None:
    """An account that somebody added to the BMC or changed there."""
    accounts = state["accounts"]
    known = [ident for ident, account in accounts.items() if account["user"] == user]
    ident = known[0] if known else str(max(map(int, accounts), default=1) + 1)
    entry = {"user": user, "digest": "", "enabled": True}
    accounts[ident] = entry | accounts.get(ident, {}) | {"role": role, "locked": locked}


def bmc_first_password(state: VirtualNodeState, now: datetime, user: str) -> None:
    """An account of the BMC that still has the password it was shipped with."""
    known = next((account for account in state["accounts"].values() if account["user"] == user), None)
    if known is None:
        raise AssayError(f"the BMC has no account {user!r}", fix="plant bmc.account first")
    known["must_change"] = True


def firmware_unverified(state: VirtualNodeState, now: datetime, component: str) -> None:
    """A component whose firmware is signed by nobody that the BMC trusts."""
    if component not in state["firmware"]:
        raise AssayError(f"no component {component!r}", fix=f"use one of {', '.join(state['firmware'])}")
    state["box"].setdefault("unverified", []).append(component)


def flash_second_reset(state: VirtualNodeState, now: datetime, component: str) -> None:
    """A component whose next version runs only after a second reset."""
    plan_flash_fault(state, component, "second-reset")


def flash_rolls_back(state: VirtualNodeState, now: datetime, component: str, after_s: float = 60) -> None:
    """A component that runs its next version for `after_s`, and then the old one again."""
    plan_flash_fault(state, component, "rolls-back", after_s=after_s)


def flash_task_lost(
    state: VirtualNodeState, now: datetime, component: str, at_percent: int = 50, written: bool = True
) -> None:
    """A BMC that forgets the task of a component's next update; `written`: it writes the image all the same."""
    plan_flash_fault(state, component, "task-lost", at_percent=_percent(at_percent), written=written)


def flash_bmc_restarts(
    state: VirtualNodeState,
    now: datetime,
    component: str,
    at_percent: int = 50,
    forgets: bool = False,
    breaks: bool = True,
) -> None:
    """A BMC that restarts in the middle of a component's next update: it may forget the task, and break the update."""
    arguments = {"at_percent": _percent(at_percent), "forgets": forgets, "breaks": breaks}
    plan_flash_fault(state, component, "bmc-restarts", **arguments)


def _percent(number: int) -> int:
    if not 0 <= number < 100:
        raise AssayError(f"at_percent {number} is not within the update", fix="use 0 to 99")
    return number


def wipe_unknown(state: VirtualNodeState, now: datetime, drive: int, knows: str = "format-erase") -> None:
    """A drive that knows only these ways to erase (comma separated), or none."""
    state["nvme"][drive]["can_wipe"] = knows.split(",") if knows else []


NODE_FAULTS: Mapping[str, Callable[..., None]] = {
    "bmc.account": bmc_account,
    "bmc.first-password": bmc_first_password,
    "bmc.ntp": bmc_ntp,
    "bmc.syslog": bmc_syslog,
    "bond.degraded": bond_degraded,
    "boot.server": boot_server,
    "dimm.errors": dimm_errors,
    "dimm.missing": dimm_missing,
    "file-system.full": file_system_full,
    "file-system.read-only": file_system_read_only,
    "firmware.old": firmware_old,
    "firmware.unverified": firmware_unverified,
    "flash.bmc-restarts": flash_bmc_restarts,
    "flash.rolls-back": flash_rolls_back,
    "flash.second-reset": flash_second_reset,
    "flash.task-lost": flash_task_lost,
    "gpu.busy": gpu_busy,
    "gpu.computes-wrong": gpu_computes_wrong,
    "gpu.copies-slowly": gpu_copies_slowly,
    "gpu.fails-diagnosis": gpu_fails_diagnosis,
    "gpu.memory.remap": gpu_memory_remap,
    "gpu.nvlink.down": gpu_nvlink_down,
    "gpu.recovery": gpu_recovery,
    "gpu.setting": gpu_setting,
    "gpu.slow": gpu_slow,
    "gpu.throttled": gpu_throttled,
    "gpu.xid": gpu_xid,
    "hca.counter": hca_counter,
    "hca.partition": hca_partition,
    "hca.setting": hca_setting,
    "hca.slow": hca_slow,
    "ib.link.down": ib_link_down,
    "ib.link.flap": ib_link_flap,
    "module.missing": module_missing,
    "nic.flap": nic_flap,
    "nvme.failing": drive_failing,
    "nvme.wipe-unknown": wipe_unknown,
    "pcie.errors": pcie_errors,
    "pcie.narrow": pcie_narrow,
    "processes.hung": hung_processes,
    "swap.on": swap_on,
}
