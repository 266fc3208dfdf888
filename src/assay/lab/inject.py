"""Faults that a person or a story can plant in the virtual fleet while it runs: a closed vocabulary.

Each fault is a function from the node's state, the lab's time and its arguments to a changed state.
`FAULTS` is what `assay lab inject --help` lists.
"""

# ruff: noqa: ARG001 — every fault has the same shape, whether it needs the time or not
from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from difflib import get_close_matches
from inspect import signature
from typing import Any

from assay.lab.bmc.journal import logged
from assay.lab.inject_bmc import BMC_FAULTS
from assay.lab.inject_gpu import GPU_FAULTS
from assay.lab.inject_host import HOST_FAULTS
from assay.lab.kernel_log import kernel_line
from assay.lab.world import State, World
from assay.model.errors import Trouble


def ib_link_flap(state: State, now: datetime, hca: str, times: int = 3) -> None:
    """A rail link that went down and up again, `times` times in the last minutes."""
    slot = next(each for each in state["hcas"] if each["name"] == hca)
    slot["link_downed"] += times
    for flap in range(times):
        at = now - timedelta(seconds=20 * (times - flap))
        kernel_line(state, at, f"mlx5_core {slot['pci']} {hca}: Port: 1 Link DOWN")
        kernel_line(state, at + timedelta(seconds=4), f"mlx5_core {slot['pci']} {hca}: Port: 1 Link ACTIVE")


def psu_failed(state: State, now: datetime, psu: int) -> None:
    """A power supply that lost its input."""
    state["psus"][psu] |= {"health": "Critical", "input_v": 0.0, "output_w": 0.0}
    said = (f"Power supply {psu} input lost.", "ResourceEvent.1.3.ResourceErrorsDetected")
    state.update(logged(state, now, "Critical", *said))


def bmc_silent(state: State, now: datetime) -> None:
    """A BMC that accepts connections and never answers."""
    state["fails"]["bmc_silent"] = True


def probe_hangs(state: State, now: datetime) -> None:
    """A node on which the probe never returns."""
    state["fails"]["probe_hangs"] = True


def answers(state: State, now: datetime) -> None:
    """The end of bmc.silent and probe.hangs."""
    state["fails"] |= {"bmc_silent": False, "probe_hangs": False}


def flash_fails(state: State, now: datetime, component: str) -> None:
    """The next update of a component ends in an exception."""
    state["fails"]["flash"].append(component)


def firmware_old(state: State, now: datetime, version: str, ids: str) -> None:
    """Inventory ids (comma separated) that carry `version`, as a node delivered long ago does."""
    for inventory_id in ids.split(","):
        if inventory_id not in state["firmware"]:
            raise Trouble(
                f"no firmware {inventory_id!r} on {state['name']}", fix=f"one of {', '.join(state['firmware'])}"
            )
        state["firmware"][inventory_id] = version


FAULTS: Mapping[str, Callable[..., None]] = {
    "answers": answers,
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


def inject(world: World, fault: str, node: str, arguments: Mapping[str, Any]) -> None:
    """Plant `fault` on `node`. Raises Trouble for a fault, node or argument that does not exist."""
    if fault not in FAULTS:
        near = get_close_matches(fault, FAULTS, n=3) or list(FAULTS)
        raise Trouble(f"no fault {fault!r}", fix=f"one of {', '.join(near)}")
    if node not in world.nodes():
        raise Trouble(f"no node {node!r} in the lab", fix="`assay lab status` lists them")
    plant = FAULTS[fault]
    known = [*signature(plant).parameters][2:]
    if unknown := set(arguments) - set(known):
        raise Trouble(
            f"{fault} takes no {', '.join(sorted(unknown))}", fix=f"it takes: {', '.join(known) or 'nothing'}"
        )
    now = world.clock().now()
    with world.change(node) as state:
        try:
            plant(state, now, **arguments)
        except (TypeError, IndexError, StopIteration, AttributeError) as error:
            raise Trouble(
                f"{fault} on {node}: {error or 'no such part'}", fix=f"it takes: {', '.join(known)}"
            ) from error
