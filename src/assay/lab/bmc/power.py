"""What a reset does to a node. Pure: state, what was asked and when → the state after it."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Literal, get_args

from assay.lab.bmc.box import with_pending_bios
from assay.lab.bmc.journal import logged
from assay.lab.bmc.settle import interrupted, running, settle
from assay.lab.gpu_parts import after_boot
from assay.lab.host_parts import fresh_kernel
from assay.lab.world import State

ResetType = Literal[
    "On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle", "FullPowerCycle"
]
RESET_TYPES: tuple[ResetType, ...] = get_args(ResetType)
BMC_RESET_TYPES = ("GracefulRestart", "ForceRestart")
OFF: tuple[ResetType, ...] = ("ForceOff", "GracefulShutdown")
NEEDS_POWER: tuple[ResetType, ...] = ("GracefulRestart", "ForceRestart")
CYCLES: tuple[ResetType, ...] = ("PowerCycle", "FullPowerCycle")
STANDBY = {"BMC"}  # the only firmware that runs on standby power


class NotPossible(Exception):
    """The system's power state does not allow this reset."""


def is_on(state: State) -> bool:
    """Whether the system was asked to be on (it may still be powering on)."""
    return bool(state["power"]["state"] == "On")


def power_state(state: State, now: datetime) -> str:
    """Return the PowerState that a BMC shows: On, Off or PoweringOn."""
    on_at = state["power"].get("on_at")
    if is_on(state) and on_at and datetime.fromisoformat(on_at) > now:
        return "PoweringOn"
    return str(state["power"]["state"])


def bmc_ready(state: State, now: datetime) -> bool:
    """Whether the BMC itself answers, that is, is not restarting."""
    ready_at = state.get("bmc", {}).get("ready_at")
    return not ready_at or datetime.fromisoformat(ready_at) <= now


def reset(state: State, reset_type: ResetType, now: datetime) -> State:
    """Return the state after `ComputerSystem.Reset` of this type at `now`.

    Turning on what is on, or off what is off, changes nothing. Raises NotPossible for restarting what is off.
    """
    state = settle(state, now)
    if reset_type in NEEDS_POWER and not is_on(state):
        raise NotPossible(f"{reset_type} needs a system that is on, and this one is off")
    if reset_type in OFF:
        return _off(state, reset_type, now) if is_on(state) else state
    if reset_type == "On" and is_on(state):
        return state
    return _restarted(state, reset_type, now)


def reset_bmc(state: State, now: datetime, why: str = "BMC reset") -> State:
    """Return the state after `Manager.Reset`: the BMC is away for a while and every running update is lost."""
    state = _cut(settle(state, now), now, why, everything=True)
    away = now + timedelta(seconds=state["timing"]["bmc_reset_s"])
    state = _activated({**state, "bmc": {"ready_at": away.isoformat(), "reset_at": now.isoformat()}}, {"bmc"})
    return logged(state, now, "OK", f"{why} was requested", "Assay.1.0.BmcReset")


def _off(state: State, reset_type: ResetType, now: datetime) -> State:
    state = _cut(state, now, f"{reset_type} cut the power", everything=False)
    state = {**state, "power": {**state["power"], "state": "Off", "on_at": None}}
    return logged(state, now, "OK", f"System power is off: {reset_type}", "Assay.1.0.PowerOff")


def _restarted(state: State, reset_type: ResetType, now: datetime) -> State:
    state = _cut(state, now, f"{reset_type} cut the power", everything=False)
    if reset_type == "FullPowerCycle":
        state = reset_bmc(state, now, "FullPowerCycle")
    state = with_pending_bios(_activated(state, {"host", "ac"} if reset_type in CYCLES else {"host"}))
    return logged(_booting(state, now), now, "OK", f"System restart: {reset_type}", "Assay.1.0.SystemReset")


def _booting(state: State, now: datetime) -> State:
    """A boot starts: new boot id at once, nothing in the kernel's log, and what a reset heals is healed."""
    on_at = now + timedelta(seconds=state["timing"]["power_on_s"])
    ready_at = on_at + timedelta(seconds=state["timing"]["boot_s"])
    boot = {**state["boot"], "id": str(uuid.uuid4()), "reset_at": now.isoformat(), "ready_at": ready_at.isoformat()}
    override = state.get("boot_override", {})
    return {
        **state,
        "power": {**state["power"], "state": "On", "on_at": on_at.isoformat()},
        "boot": {**boot, "count": state["boot"]["count"] + 1},
        "boot_override": {} if override.get("enabled") == "Once" else override,
        "kernel_log": [],
        "gpus": [after_boot(gpu) for gpu in state.get("gpus", [])],
        **({"host": fresh_kernel(state["host"])} if "host" in state else {}),
    }


def _activated(state: State, resets: Collection[str]) -> State:
    """Staged firmware that waited for one of these resets runs from now on."""
    staged = state.get("staged", {})
    fitting = {name: entry["version"] for name, entry in staged.items() if entry["reset"] in resets}
    left = {name: entry for name, entry in staged.items() if name not in fitting}
    return {**state, "firmware": {**state["firmware"], **fitting}, "staged": left}


def _cut(state: State, now: datetime, why: str, *, everything: bool) -> State:
    """End the updates that lose their power: all but the BMC's own, or `everything`."""
    for task in state.get("tasks", []):
        if running(task) and (everything or not set(task["inventory"]) <= STANDBY):
            state = interrupted(state, task["id"], now, f"{why} while {task['component']} was being written")
    return state
