"""Plants faults in the running virtual fleet. `FAULTS` lists all of them; `assay lab inject` prints the list.

A fault is a function of the node's state, the lab's time and its own arguments; it changes the state in place. Those
of cables and replaced parts change more than one node's state: they are functions of the world and the node's name.
This module has the faults of links and channels, and old firmware; its neighbours have those of updates, GPUs, host
and chassis.
"""

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time
from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from difflib import get_close_matches
from inspect import signature
from typing import Any

from assay.lab.faults.bmc_faults import BMC_FAULTS, BOOT_FAULTS, FLASH_FAULTS, WIPE_FAULTS
from assay.lab.faults.gpu_faults import COMPUTING_FAULTS, GPU_FAULTS, LOAD_FAULTS
from assay.lab.faults.host_faults import HOST_FAULTS, SETTING_FAULTS
from assay.lab.faults.replaced_parts import CABLE_FAULTS, REPLACED_PARTS
from assay.lab.virtual_node_state import VirtualNodeState, append_kernel_line, with_sel_event
from assay.lab.world import LabWorld
from assay.model.errors import AssayError


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


def psu_failed(state: VirtualNodeState, now: datetime, psu: int) -> None:
    """A power supply that has lost its input."""
    state["psus"][psu] |= {"health": "Critical", "input_v": 0.0, "output_w": 0.0}
    event = (f"Power supply {psu} input lost.", "ResourceEvent.1.3.ResourceErrorsDetected")
    state.update(with_sel_event(state, now, "Critical", *event))


def bmc_silent(state: VirtualNodeState, now: datetime) -> None:
    """A BMC that accepts connections and never answers."""
    state["fails"]["bmc_silent"] = True


def probe_hangs(state: VirtualNodeState, now: datetime) -> None:
    """A node on which the probe never returns."""
    state["fails"]["probe_hangs"] = True


def answers_again(state: VirtualNodeState, now: datetime) -> None:
    """The end of bmc.silent and probe.hangs."""
    state["fails"] |= {"bmc_silent": False, "probe_hangs": False}


def firmware_old(state: VirtualNodeState, now: datetime, version: str, ids: str) -> None:
    """Old firmware: the inventory `ids` (comma separated) have `version`."""
    known = ", ".join(state["firmware"])
    for inventory_id in ids.split(","):
        if inventory_id not in state["firmware"]:
            raise AssayError(f"{state['name']} has no firmware {inventory_id!r}", fix=f"use one of {known}")
        state["firmware"][inventory_id] = version


WORLD_FAULTS: Mapping[str, Callable[..., None]] = {**CABLE_FAULTS, **REPLACED_PARTS}
FAULTS: Mapping[str, Callable[..., None]] = {
    "answers": answers_again,
    "bmc.silent": bmc_silent,
    "firmware.old": firmware_old,
    "ib.link.down": ib_link_down,
    "ib.link.flap": ib_link_flap,
    "probe.hangs": probe_hangs,
    "psu.failed": psu_failed,
    **BMC_FAULTS,
    **BOOT_FAULTS,
    **COMPUTING_FAULTS,
    **FLASH_FAULTS,
    **GPU_FAULTS,
    **HOST_FAULTS,
    **LOAD_FAULTS,
    **SETTING_FAULTS,
    **WIPE_FAULTS,
    **WORLD_FAULTS,
}


def inject_fault(world: LabWorld, fault: str, node: str, arguments: Mapping[str, Any]) -> None:
    """Plant `fault` on `node`. Raises AssayError for an unknown fault, node or argument."""
    if fault not in FAULTS:
        near = get_close_matches(fault, FAULTS, n=3) or list(FAULTS)
        raise AssayError(f"no fault {fault!r}", fix=f"use one of {', '.join(near)}")
    if node not in world.nodes():
        raise AssayError(f"no node {node!r} in the lab", fix="`assay lab status` lists the nodes")
    plant = FAULTS[fault]
    parameters = [*signature(plant).parameters.values()][2:]
    known = [parameter.name for parameter in parameters]
    if unknown := set(arguments) - set(known):
        raise AssayError(
            f"{fault} takes no {', '.join(sorted(unknown))}", fix=f"it takes: {', '.join(known) or 'nothing'}"
        )
    if missing := [each.name for each in parameters if each.default is each.empty and each.name not in arguments]:
        raise AssayError(f"{fault} needs {', '.join(missing)}", fix=" ".join(f"--with {name}=…" for name in missing))
    try:
        if fault in WORLD_FAULTS:
            plant(world, node, **arguments)
            return
        with world.change(node) as state:
            plant(state, world.clock().now(), **arguments)
    except (IndexError, StopIteration) as error:
        raise AssayError(f"{fault}: {node} has no such part", fix="its spec says how many it has") from error
    except (TypeError, AttributeError) as error:
        values = ", ".join(f"{name}={value}" for name, value in arguments.items())
        raise AssayError(f"{fault} makes no sense with {values}", fix="parts are numbers, from 0") from error
