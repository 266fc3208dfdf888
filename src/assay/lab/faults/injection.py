"""Faults of the box that only its BMC sees: power, air, water, memory, processors, settings, its log and its clock.

Faults that a person or a story can plant in the virtual fleet while it runs: a closed vocabulary.

Each fault is a function from the node's state, the lab's time and its arguments to a changed state.
`FAULTS` is what `assay lab inject --help` lists.
"""

from __future__ import annotations

# ruff: noqa: ARG001 — every fault has the same shape, whether it needs the time or not
from collections.abc import Callable, Mapping

# ruff: noqa: ARG001 — every fault has the same shape, whether it needs the time or not
from datetime import datetime, timedelta
from difflib import get_close_matches
from inspect import signature
from typing import Any, Literal

from assay.lab.faults.gpu_faults import GPU_FAULTS
from assay.lab.faults.host_faults import HOST_FAULTS
from assay.lab.node_state import SelSeverity, append_kernel_line, with_sel_event
from assay.lab.world import LabWorld, VirtualNodeState
from assay.model.errors import AssayError


def psu_lost(state: VirtualNodeState, now: datetime, psu: int) -> None:
    """A power supply that was pulled out."""
    state["psus"][psu]["present"] = False


def psu_degraded(state: VirtualNodeState, now: datetime, psu: int, volts: float = 172.0) -> None:
    """A power supply whose input sags."""
    state["psus"][psu] |= {"health": "Warning", "input_v": volts}


def fan_failed(state: VirtualNodeState, now: datetime, fan: int) -> None:
    """A fan that stands still."""
    state["fans"][fan] |= {"health": "Critical", "rpm": 0}


def fan_slow(state: VirtualNodeState, now: datetime, fan: int, rpm: int = 4100) -> None:
    """A fan that turns at half the speed of the others and says that it is well."""
    state["fans"][fan]["rpm"] = rpm


def inlet_hot(state: VirtualNodeState, now: datetime, celsius: float = 41.0) -> None:
    """Air that comes in too warm."""
    state["inlet_c"] = celsius


def leak(
    state: VirtualNodeState, now: datetime, detector: int = 0, level: Literal["Warning", "Critical"] = "Critical"
) -> None:
    """Water where none should be."""
    state["box"]["leaks"][detector]["state"] = level
    said = (f"Leak detector {detector} found moisture.", "Environmental.1.0.LeakDetectedCritical")
    state.update(with_sel_event(state, now, level, *said))


def bios_changed(state: VirtualNodeState, now: datetime, attribute: str, value: str) -> None:
    """A BIOS attribute that somebody set."""
    if attribute not in state["box"]["bios"]:
        raise AssayError(f"no BIOS attribute {attribute!r}", fix=f"one of {', '.join(state['box']['bios'])}")
    state["box"]["bios"][attribute] = value


def boot_override(state: VirtualNodeState, now: datetime, target: str = "Pxe", enabled: str = "Continuous") -> None:
    """A boot override that was left behind."""
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
    """An entry of the event log."""
    state.update(with_sel_event(state, now, severity, message, message_id))


def dimm_unhealthy(state: VirtualNodeState, now: datetime, dimm: int) -> None:
    """A memory module with too many errors."""
    state["box"]["dimms"][dimm]["health"] = "Critical"


def cpu_unhealthy(state: VirtualNodeState, now: datetime, cpu: int) -> None:
    """A processor that reports errors."""
    state["box"]["cpus"][cpu]["health"] = "Critical"


def chassis_open(state: VirtualNodeState, now: datetime) -> None:
    """A lid that was opened."""
    state["box"]["lid"] = "HardwareIntrusion"


def power_cap(state: VirtualNodeState, now: datetime, watts: int) -> None:
    """A cap on what the box may draw."""
    state["box"]["power_cap_w"] = watts


def bmc_clock(state: VirtualNodeState, now: datetime, seconds: int) -> None:
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


def ib_link_flap(state: VirtualNodeState, now: datetime, hca: str, times: int = 3) -> None:
    """A rail link that went down and up again, `times` times in the last minutes."""
    slot = next(each for each in state["hcas"] if each["name"] == hca)
    slot["link_downed"] += times
    for flap in range(times):
        at = now - timedelta(seconds=20 * (times - flap))
        append_kernel_line(state, at, f"mlx5_core {slot['pci']} {hca}: Port: 1 Link DOWN")
        append_kernel_line(state, at + timedelta(seconds=4), f"mlx5_core {slot['pci']} {hca}: Port: 1 Link ACTIVE")


def psu_failed(state: VirtualNodeState, now: datetime, psu: int) -> None:
    """A power supply that lost its input."""
    state["psus"][psu] |= {"health": "Critical", "input_v": 0.0, "output_w": 0.0}
    said = (f"Power supply {psu} input lost.", "ResourceEvent.1.3.ResourceErrorsDetected")
    state.update(with_sel_event(state, now, "Critical", *said))


def bmc_silent(state: VirtualNodeState, now: datetime) -> None:
    """A BMC that accepts connections and never answers."""
    state["fails"]["bmc_silent"] = True


def probe_hangs(state: VirtualNodeState, now: datetime) -> None:
    """A node on which the probe never returns."""
    state["fails"]["probe_hangs"] = True


def answers_again(state: VirtualNodeState, now: datetime) -> None:
    """The end of bmc.silent and probe.hangs."""
    state["fails"] |= {"bmc_silent": False, "probe_hangs": False}


def flash_fails(state: VirtualNodeState, now: datetime, component: str) -> None:
    """The next update of a component ends in an exception."""
    state["fails"]["flash"].append(component)


def firmware_old(state: VirtualNodeState, now: datetime, version: str, ids: str) -> None:
    """Inventory ids (comma separated) that carry `version`, as a node delivered long ago does."""
    for inventory_id in ids.split(","):
        if inventory_id not in state["firmware"]:
            raise AssayError(
                f"no firmware {inventory_id!r} on {state['name']}", fix=f"one of {', '.join(state['firmware'])}"
            )
        state["firmware"][inventory_id] = version


FAULTS: Mapping[str, Callable[..., None]] = {
    "answers": answers_again,
    "bmc.silent": bmc_silent,
    "firmware.old": firmware_old,
    "flash.fails": flash_fails,
    "ib.link.flap": ib_link_flap,
    "probe.hangs": probe_hangs,
    "psu.failed": psu_failed,
    **BMC_FAULTS,
    **GPU_FAULTS,
    **HOST_FAULTS,
}


def inject_fault(world: LabWorld, fault: str, node: str, arguments: Mapping[str, Any]) -> None:
    """Plant `fault` on `node`. Raises Trouble for a fault, node or argument that does not exist."""
    if fault not in FAULTS:
        near = get_close_matches(fault, FAULTS, n=3) or list(FAULTS)
        raise AssayError(f"no fault {fault!r}", fix=f"one of {', '.join(near)}")
    if node not in world.nodes():
        raise AssayError(f"no node {node!r} in the lab", fix="`assay lab status` lists them")
    plant = FAULTS[fault]
    known = [*signature(plant).parameters][2:]
    if unknown := set(arguments) - set(known):
        raise AssayError(
            f"{fault} takes no {', '.join(sorted(unknown))}", fix=f"it takes: {', '.join(known) or 'nothing'}"
        )
    now = world.clock().now()
    with world.change(node) as state:
        try:
            plant(state, now, **arguments)
        except (TypeError, IndexError, StopIteration, AttributeError) as error:
            raise AssayError(
                f"{fault} on {node}: {error or 'no such part'}", fix=f"it takes: {', '.join(known)}"
            ) from error
