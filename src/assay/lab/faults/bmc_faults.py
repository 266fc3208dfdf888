"""Faults of what assay orders through the BMC, and what only the BMC sees.

These are power supplies, fans, leaks, memory, processors, BIOS, its event log and clock; then starts from a boot
server, the next firmware update of a component, and wipes of drives that fail or only seem to succeed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from assay.lab.bmc.firmware_flash import plan_flash_fault
from assay.lab.virtual_node_state import SelSeverity, VirtualNodeState, with_sel_event
from assay.model.errors import AssayError

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time


def psu_lost(state: VirtualNodeState, now: datetime, psu: int) -> None:
    """A power supply that is missing."""
    state["psus"][psu]["present"] = False


def psu_degraded(state: VirtualNodeState, now: datetime, psu: int, volts: float = 172.0) -> None:
    """A power supply with low input voltage."""
    state["psus"][psu] |= {"health": "Warning", "input_v": volts}


def fan_failed(state: VirtualNodeState, now: datetime, fan: int) -> None:
    """A fan that has stopped."""
    state["fans"][fan] |= {"health": "Critical", "rpm": 0}


def fan_slow(state: VirtualNodeState, now: datetime, fan: int, rpm: int = 4100) -> None:
    """A fan at half the speed of the others that still reports OK."""
    state["fans"][fan]["rpm"] = rpm


def inlet_hot(state: VirtualNodeState, now: datetime, celsius: float = 41.0) -> None:
    """Inlet air that is too warm."""
    state["inlet_c"] = celsius


def leak(
    state: VirtualNodeState, now: datetime, detector: int = 0, level: Literal["Warning", "Critical"] = "Critical"
) -> None:
    """A leak that a leak detector reports."""
    state["box"]["leaks"][detector]["state"] = level
    event = (f"Leak detector {detector} found moisture.", "Environmental.1.0.LeakDetectedCritical")
    state.update(with_sel_event(state, now, level, *event))


def bios_changed(state: VirtualNodeState, now: datetime, attribute: str, value: str) -> None:
    """A changed BIOS attribute."""
    if attribute not in state["box"]["bios"]:
        raise AssayError(f"no BIOS attribute {attribute!r}", fix=f"use one of {', '.join(state['box']['bios'])}")
    state["box"]["bios"][attribute] = value


def boot_override(state: VirtualNodeState, now: datetime, target: str = "Pxe", enabled: str = "Continuous") -> None:
    """A leftover boot override."""
    state["boot_override"] = {"enabled": enabled, "target": target}


def secure_boot(state: VirtualNodeState, now: datetime, on: bool) -> None:
    """Secure boot switched on or off."""
    state["box"]["secure_boot"] = on


def sel_entry(
    state: VirtualNodeState,
    now: datetime,
    message: str,
    severity: SelSeverity = "Critical",
    message_id: str = "Assay.1.0.Planted",
) -> None:
    """An event in the BMC's event log."""
    state.update(with_sel_event(state, now, severity, message, message_id))


def dimm_unhealthy(state: VirtualNodeState, now: datetime, dimm: int) -> None:
    """A memory module with too many errors."""
    state["box"]["dimms"][dimm]["health"] = "Critical"


def cpu_unhealthy(state: VirtualNodeState, now: datetime, cpu: int) -> None:
    """A processor that reports errors."""
    state["box"]["cpus"][cpu]["health"] = "Critical"


def chassis_open(state: VirtualNodeState, now: datetime) -> None:
    """An open chassis lid."""
    state["box"]["lid"] = "HardwareIntrusion"


def power_cap(state: VirtualNodeState, now: datetime, watts: int) -> None:
    """A power cap on the whole chassis."""
    state["box"]["power_cap_w"] = watts


def bmc_clock(state: VirtualNodeState, now: datetime, seconds: int) -> None:
    """A BMC whose clock is wrong by `seconds`."""
    state["box"]["clock_s"] = seconds


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


def bmc_ipmi(state: VirtualNodeState, now: datetime, on: bool = True) -> None:
    """IPMI over LAN switched on or off at the BMC."""
    state["box"]["ipmi"] = on


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


def power_restore(
    state: VirtualNodeState, now: datetime, policy: Literal["AlwaysOn", "AlwaysOff", "LastState"] = "AlwaysOff"
) -> None:
    """A changed policy for the return of power."""
    state["box"]["power_restore"] = policy


def bmc_lacks(state: VirtualNodeState, now: datetime, name: str) -> None:
    """A BMC without a Redfish property (`PowerRestorePolicy`, `NTP`, `EventService`), or without `Syslog`."""
    state["box"]["lacks"].append(name)


BMC_FAULTS: Mapping[str, Callable[..., None]] = {
    "bios.changed": bios_changed,
    "bmc.account": bmc_account,
    "bmc.clock": bmc_clock,
    "bmc.first-password": bmc_first_password,
    "bmc.ipmi": bmc_ipmi,
    "bmc.lacks": bmc_lacks,
    "bmc.ntp": bmc_ntp,
    "bmc.syslog": bmc_syslog,
    "boot.override": boot_override,
    "chassis.open": chassis_open,
    "cooling.leak": leak,
    "cpu.unhealthy": cpu_unhealthy,
    "dimm.unhealthy": dimm_unhealthy,
    "fan.failed": fan_failed,
    "fan.slow": fan_slow,
    "firmware.unverified": firmware_unverified,
    "inlet.hot": inlet_hot,
    "power.cap": power_cap,
    "power.restore": power_restore,
    "psu.degraded": psu_degraded,
    "psu.lost": psu_lost,
    "secure-boot": secure_boot,
    "sel.entry": sel_entry,
}


def boot_server(state: VirtualNodeState, now: datetime, url: str) -> None:
    """A boot server, http://HOST:PORT, that DHCP names: the machine starts from it from now on."""
    state["boot_server"] = url.rstrip("/")


def boot_from_disk(state: VirtualNodeState, now: datetime) -> None:
    """A machine that starts from its disk, whatever its BMC was asked for."""
    state["fails"]["network_start"] = True


def boot_hangs(state: VirtualNodeState, now: datetime) -> None:
    """A machine that stops after it has loaded its kernel."""
    state["fails"]["start_hangs"] = True


def other_machine(state: VirtualNodeState, now: datetime, serial: str) -> None:
    """Another machine in the node's place: its serial number differs."""
    state["serial"] = serial


def other_place(state: VirtualNodeState, now: datetime, rack: str, u: int) -> None:
    """A machine in another place, as its BMC says."""
    state |= {"rack": rack, "u": u}


BOOT_FAULTS: Mapping[str, Callable[..., None]] = {
    "boot.from-disk": boot_from_disk,
    "boot.hangs": boot_hangs,
    "boot.server": boot_server,
    "machine.other": other_machine,
    "machine.other-place": other_place,
}


def flash_fails(state: VirtualNodeState, now: datetime, component: str) -> None:
    """A component whose next firmware update fails."""
    state["fails"]["flash"].append(component)


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


FLASH_FAULTS: Mapping[str, Callable[..., None]] = {
    "flash.bmc-restarts": flash_bmc_restarts,
    "flash.fails": flash_fails,
    "flash.rolls-back": flash_rolls_back,
    "flash.second-reset": flash_second_reset,
    "flash.task-lost": flash_task_lost,
}


def sanitize_fails(state: VirtualNodeState, now: datetime, drive: int) -> None:
    """A drive whose sanitize begins, fails, and erases nothing. It refuses to be formatted after that."""
    state["nvme"][drive]["wipe_fails"] = True


def sanitize_lies(state: VirtualNodeState, now: datetime, drive: int) -> None:
    """A drive that reports each wipe as a success, and erases nothing."""
    state["nvme"][drive]["wipe_lies"] = True


def wipe_unknown(state: VirtualNodeState, now: datetime, drive: int, knows: str = "format-erase") -> None:
    """A drive that knows only these ways to erase (comma separated), or none."""
    state["nvme"][drive]["can_wipe"] = knows.split(",") if knows else []


WIPE_FAULTS: Mapping[str, Callable[..., None]] = {
    "nvme.sanitize-fails": sanitize_fails,
    "nvme.sanitize-lies": sanitize_lies,
    "nvme.wipe-unknown": wipe_unknown,
}
