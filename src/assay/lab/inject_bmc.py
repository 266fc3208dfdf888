"""Faults of the box that only its BMC sees: power, air, water, memory, processors, settings, its log and its clock."""

# ruff: noqa: ARG001 — every fault has the same shape, whether it needs the time or not
from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from assay.lab.bmc.journal import Severity, logged
from assay.lab.world import State
from assay.model.errors import Trouble


def psu_lost(state: State, now: datetime, psu: int) -> None:
    """A power supply that was pulled out."""
    state["psus"][psu]["present"] = False


def psu_degraded(state: State, now: datetime, psu: int, volts: float = 172.0) -> None:
    """A power supply whose input sags."""
    state["psus"][psu] |= {"health": "Warning", "input_v": volts}


def fan_failed(state: State, now: datetime, fan: int) -> None:
    """A fan that stands still."""
    state["fans"][fan] |= {"health": "Critical", "rpm": 0}


def fan_slow(state: State, now: datetime, fan: int, rpm: int = 4100) -> None:
    """A fan that turns at half the speed of the others and says that it is well."""
    state["fans"][fan]["rpm"] = rpm


def inlet_hot(state: State, now: datetime, celsius: float = 41.0) -> None:
    """Air that comes in too warm."""
    state["inlet_c"] = celsius


def leak(state: State, now: datetime, detector: int = 0, level: Literal["Warning", "Critical"] = "Critical") -> None:
    """Water where none should be."""
    state["box"]["leaks"][detector]["state"] = level
    said = (f"Leak detector {detector} found moisture.", "Environmental.1.0.LeakDetectedCritical")
    state.update(logged(state, now, level, *said))


def bios_changed(state: State, now: datetime, attribute: str, value: str) -> None:
    """A BIOS attribute that somebody set."""
    if attribute not in state["box"]["bios"]:
        raise Trouble(f"no BIOS attribute {attribute!r}", fix=f"one of {', '.join(state['box']['bios'])}")
    state["box"]["bios"][attribute] = value


def boot_override(state: State, now: datetime, target: str = "Pxe", enabled: str = "Continuous") -> None:
    """A boot override that was left behind."""
    state["boot_override"] = {"enabled": enabled, "target": target}


def secure_boot(state: State, now: datetime, on: bool) -> None:
    """Secure boot switched on or off."""
    state["box"]["secure_boot"] = on


def sel_entry(
    state: State, now: datetime, message: str, severity: Severity = "Critical", message_id: str = "Assay.1.0.Planted"
) -> None:
    """An entry of the event log."""
    state.update(logged(state, now, severity, message, message_id))


def dimm_unhealthy(state: State, now: datetime, dimm: int) -> None:
    """A memory module with too many errors."""
    state["box"]["dimms"][dimm]["health"] = "Critical"


def cpu_unhealthy(state: State, now: datetime, cpu: int) -> None:
    """A processor that reports errors."""
    state["box"]["cpus"][cpu]["health"] = "Critical"


def chassis_open(state: State, now: datetime) -> None:
    """A lid that was opened."""
    state["box"]["lid"] = "HardwareIntrusion"


def power_cap(state: State, now: datetime, watts: int) -> None:
    """A cap on what the box may draw."""
    state["box"]["power_cap_w"] = watts


def bmc_clock(state: State, now: datetime, seconds: int) -> None:
    """A BMC whose clock is off."""
    state["box"]["clock_s"] = seconds


BMC_FAULTS: Mapping[str, Callable[..., None]] = {
    "bios.changed": bios_changed,
    "bmc.clock": bmc_clock,
    "boot.override": boot_override,
    "chassis.open": chassis_open,
    "cooling.leak": leak,
    "cpu.unhealthy": cpu_unhealthy,
    "dimm.unhealthy": dimm_unhealthy,
    "fan.failed": fan_failed,
    "fan.slow": fan_slow,
    "inlet.hot": inlet_hot,
    "power.cap": power_cap,
    "psu.degraded": psu_degraded,
    "psu.lost": psu_lost,
    "secure-boot": secure_boot,
    "sel.entry": sel_entry,
}
