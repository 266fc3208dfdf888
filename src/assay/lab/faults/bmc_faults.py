"""Faults that only the BMC sees: power supplies, fans, leaks, memory, processors, BIOS, its event log and clock."""

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time
from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from assay.lab.virtual_node_state import SelSeverity, VirtualNodeState, with_sel_event
from assay.model.errors import AssayError


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
    others = {ident: one for ident, one in state["subscriptions"].items() if "Syslog" not in one.get("protocol", "")}
    added = {"destination": f"syslog://{server}", "context": "", "protocol": "SyslogUDP"}
    state["subscriptions"] = others | ({"planted": added} if server else {})


def bmc_account(
    state: VirtualNodeState, now: datetime, user: str, role: str = "Administrator", locked: bool = False
) -> None:
    """An account that somebody added to the BMC or changed there."""
    accounts = state["accounts"]
    known = [ident for ident, one in accounts.items() if one["user"] == user]
    ident = known[0] if known else str(max(map(int, accounts), default=1) + 1)
    entry = {"user": user, "digest": "", "enabled": True}
    accounts[ident] = entry | accounts.get(ident, {}) | {"role": role, "locked": locked}


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
    "inlet.hot": inlet_hot,
    "power.cap": power_cap,
    "power.restore": power_restore,
    "psu.degraded": psu_degraded,
    "psu.lost": psu_lost,
    "secure-boot": secure_boot,
    "sel.entry": sel_entry,
}
