"""Faults of the next firmware update of a component."""

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time
from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from assay.lab.bmc.planned_flash_faults import plan_flash_fault
from assay.lab.virtual_node_state import VirtualNodeState
from assay.model.errors import AssayError


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
