"""Resets and elapsed time as pure functions of a node's state.

With time, a pending power-on takes effect, update tasks end, and firmware rolls back (`apply_elapsed_time`). Written
firmware is staged until the reset that activates it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, get_args

from assay.lab.bmc.firmware_flash import UpdateTask, is_task_running
from assay.lab.node.device_files import adapter_after_boot
from assay.lab.node.healthy_devices import gpu_after_boot
from assay.lab.node.healthy_host import apply_pending_settings, host_after_boot
from assay.lab.virtual_node_state import VirtualNodeState, with_sel_event

WrittenFirmware = dict[str, Any]
"""What a task has written: its `inventory`, `version`, `reset`, and the faults `resets` and `rolls_back_s`."""
StateStep = Callable[[VirtualNodeState], VirtualNodeState]
ResetType = Literal[
    "On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle", "FullPowerCycle"
]
RESET_TYPES: tuple[ResetType, ...] = get_args(ResetType)
BMC_RESET_TYPES = ("GracefulRestart", "ForceRestart")
OFF: tuple[ResetType, ...] = ("ForceOff", "GracefulShutdown")
NEEDS_POWER: tuple[ResetType, ...] = ("GracefulRestart", "ForceRestart")
CYCLES: tuple[ResetType, ...] = ("PowerCycle", "FullPowerCycle")
NEVER = "9999-12-31T00:00:00+00:00"
STANDBY = {"BMC", "FW_BMC_0"}  # the only firmware that runs on standby power


def stage_firmware(state: VirtualNodeState, written: WrittenFirmware, now: datetime) -> VirtualNodeState:
    """Return the state with the version active, or staged until the reset that activates it."""
    ids = written["inventory"]
    if written["reset"] == "none":
        staged = {name: entry for name, entry in state.get("staged", {}).items() if name not in ids}
        return _activate({**state, "staged": staged}, dict.fromkeys(ids, written), now)
    entry = {name: written[name] for name in ("version", "reset", "resets", "rolls_back_s") if name in written}
    return {**state, "staged": {**state.get("staged", {}), **{name: dict(entry) for name in ids}}}


def activate_staged(state: VirtualNodeState, resets: Collection[str], now: datetime) -> VirtualNodeState:
    """Return the state after these resets: the staged firmware that they activate is in force.

    Firmware that needs several resets (`resets`) waits until the last of them.
    """
    staged = {}
    ready = {}
    for name, entry in state.get("staged", {}).items():
        if entry["reset"] not in resets:
            staged[name] = entry
        elif entry.get("resets", 1) > 1:
            staged[name] = {**entry, "resets": entry["resets"] - 1}
        else:
            ready[name] = entry
    return _activate({**state, "staged": staged}, ready, now)


def roll_back(state: VirtualNodeState, rollback: dict[str, Any]) -> VirtualNodeState:
    """Return the state with the old versions in force again."""
    left = [entry for entry in state.get("rollbacks", []) if entry != rollback]
    state = {**state, "rollbacks": left, "firmware": {**state["firmware"], **rollback["firmware"]}}
    text = f"{', '.join(rollback['firmware'])} did not start its new firmware and runs the old one"
    return with_sel_event(state, datetime.fromisoformat(rollback["at"]), "Critical", text, "Update.1.0.RolledBack")


def _activate(state: VirtualNodeState, entries: dict[str, WrittenFirmware], now: datetime) -> VirtualNodeState:
    """Return the state with each id's version in force; what rolls back does so later."""
    rollbacks = [
        {
            "at": (now + timedelta(seconds=entry["rolls_back_s"])).isoformat(),
            "firmware": {name: state["firmware"][name]},
        }
        for name, entry in entries.items()
        if "rolls_back_s" in entry
    ]
    if rollbacks:
        state = {**state, "rollbacks": [*state.get("rollbacks", []), *rollbacks]}
    return {**state, "firmware": {**state["firmware"], **{name: entry["version"] for name, entry in entries.items()}}}


class ResetNotPossible(Exception):
    """The system's power state does not allow this reset."""


def apply_elapsed_time(state: VirtualNodeState, now: datetime) -> VirtualNodeState:
    """Return the state as of `now`: all changes due by then are applied, in the order of their times.

    The result is the same whether time passes at once or in steps. Returns `state` itself if nothing is due.
    """
    while due := min(_due_changes(state, now), key=lambda pair: pair[0], default=None):
        state = due[1](state)
    return state


def interrupt_task(state: VirtualNodeState, task_id: str, now: datetime, reason: str) -> VirtualNodeState:
    """Return the state with a running task ended in Exception for this reason; the firmware is unchanged."""
    return _end_task(state, task_id, now, "Exception", reason)


def _due_changes(state: VirtualNodeState, now: datetime) -> Iterator[tuple[datetime, StateStep]]:
    if (on_at := state["power"].get("on_at")) and (at := datetime.fromisoformat(on_at)) <= now:
        yield at, _complete_power_on
    for task in state.get("tasks", []):
        if is_task_running(task):
            yield from _due_task_changes(task, now)
    for rollback in state.get("rollbacks", []):
        if (at := datetime.fromisoformat(rollback["at"])) <= now:
            yield at, partial(roll_back, rollback=rollback)


def _due_task_changes(task: UpdateTask, now: datetime) -> Iterator[tuple[datetime, StateStep]]:
    steps = {"lost_at": _lose_task, "restart_at": _restart_bmc_in_task, "ends_at": _complete_task}
    for key, step in steps.items():
        if key in task and (at := datetime.fromisoformat(task[key])) <= now:
            yield at, partial(step, task=task, at=at)


def _lose_task(state: VirtualNodeState, task: UpdateTask, at: datetime) -> VirtualNodeState:
    """Return the state of a BMC that no longer knows a task; `written`: it goes on writing all the same."""
    state = _edit_task(state, task["id"], lost_at=None, forgotten=True)
    return state if task["written"] else interrupt_task(state, task["id"], at, f"{task['component']} was not written")


def _restart_bmc_in_task(state: VirtualNodeState, task: UpdateTask, at: datetime) -> VirtualNodeState:
    """Return the state of a BMC that restarts in the middle of an update. It breaks the update only if it `breaks`."""
    state = _edit_task(state, task["id"], restart_at=None, forgotten=task["forgets"])
    if task["breaks"]:
        return reset_bmc(state, at, "Watchdog restart of the BMC")
    number = [other["id"] for other in state["tasks"]].index(task["id"])
    others = [*state["tasks"][:number], *state["tasks"][number + 1 :]]
    after = reset_bmc({**state, "tasks": others}, at, "Watchdog restart of the BMC")
    return {**after, "tasks": [*after["tasks"][:number], state["tasks"][number], *after["tasks"][number:]]}


def _edit_task(state: VirtualNodeState, task_id: str, **changes: Any) -> VirtualNodeState:
    """Return the state with changed entries of a task; an entry of None is removed."""
    tasks = [
        {key: entry for key, entry in {**task, **changes}.items() if entry is not None}
        if task["id"] == task_id
        else task
        for task in state["tasks"]
    ]
    return {**state, "tasks": tasks}


def _complete_power_on(state: VirtualNodeState) -> VirtualNodeState:
    on = {**state, "power": {**state["power"], "on_at": None}}
    return with_sel_event(
        on, datetime.fromisoformat(state["power"]["on_at"]), "OK", "System power is on", "Assay.1.0.PowerOn"
    )


def _complete_task(state: VirtualNodeState, task: UpdateTask, at: datetime) -> VirtualNodeState:
    if task["fails"]:
        text = f"Verification of {task['component']} failed after writing"
        return _end_task(state, task["id"], at, "Exception", text)
    done = _end_task(state, task["id"], at, "Completed", f"{task['component']} {task['version']} was written")
    return stage_firmware(done, task, at)


def _end_task(state: VirtualNodeState, task_id: str, at: datetime, outcome: str, message: str) -> VirtualNodeState:
    ending = {"state": outcome, "ended_at": at.isoformat(), "message": message}
    tasks = [{**task, **ending} if task["id"] == task_id else task for task in state["tasks"]]
    state = {**state, "tasks": tasks}
    if outcome == "Completed":
        return with_sel_event(state, at, "OK", message, "Update.1.0.UpdateSuccessful")
    return with_sel_event(state, at, "Critical", message, "Update.1.0.ApplyFailed")


def is_powered_on(state: VirtualNodeState) -> bool:
    """Return whether the system is on or powering on."""
    return bool(state["power"]["state"] == "On")


def power_state(state: VirtualNodeState, now: datetime) -> str:
    """Return Redfish's PowerState: On, Off or PoweringOn."""
    on_at = state["power"].get("on_at")
    if is_powered_on(state) and on_at and datetime.fromisoformat(on_at) > now:
        return "PoweringOn"
    return str(state["power"]["state"])


def is_bmc_ready(state: VirtualNodeState, now: datetime) -> bool:
    """Return whether the BMC answers, that is, is not restarting."""
    ready_at = state.get("bmc", {}).get("ready_at")
    return not ready_at or datetime.fromisoformat(ready_at) <= now


def reset_node(state: VirtualNodeState, reset_type: ResetType, now: datetime) -> VirtualNodeState:
    """Return the state after `ComputerSystem.Reset` of this type at `now`.

    Turning on a system that is on, or off one that is off, changes nothing. Raises ResetNotPossible for the
    restart of a system that is off.
    """
    state = apply_elapsed_time(state, now)
    if reset_type in NEEDS_POWER and not is_powered_on(state):
        raise ResetNotPossible(f"{reset_type} needs a system that is on, and this one is off")
    if reset_type in OFF:
        if not is_powered_on(state):
            return state
        state = _interrupt_updates(state, now, f"{reset_type} cut the power", everything=False)
        state = {**state, "power": {**state["power"], "state": "Off", "on_at": None}}
        return with_sel_event(state, now, "OK", f"System power is off: {reset_type}", "Assay.1.0.PowerOff")
    if reset_type == "On" and is_powered_on(state):
        return state
    return _restart(state, reset_type, now)


def reset_bmc(state: VirtualNodeState, now: datetime, cause: str = "BMC reset") -> VirtualNodeState:
    """Return the state after `Manager.Reset`: the BMC restarts, and every running update fails."""
    state = _interrupt_updates(apply_elapsed_time(state, now), now, cause, everything=True)
    ready_at = now + timedelta(seconds=state["timing"]["bmc_reset_s"])
    state = {**state, "bmc": {"ready_at": ready_at.isoformat(), "reset_at": now.isoformat()}}
    state = activate_staged(state, {"bmc"}, now)
    return with_sel_event(state, now, "OK", f"{cause} was requested", "Assay.1.0.BmcReset")


def _restart(state: VirtualNodeState, reset_type: ResetType, now: datetime) -> VirtualNodeState:
    state = _interrupt_updates(state, now, f"{reset_type} cut the power", everything=False)
    if reset_type == "FullPowerCycle":
        state = reset_bmc(state, now, "FullPowerCycle")
    state = apply_pending_settings(activate_staged(state, {"host", "ac"} if reset_type in CYCLES else {"host"}, now))
    return with_sel_event(_start_boot(state, now), now, "OK", f"System restart: {reset_type}", "Assay.1.0.SystemReset")


def _start_boot(state: VirtualNodeState, now: datetime) -> VirtualNodeState:
    """Return the state with a boot started: a new boot id, an empty kernel log, GPUs and host as after a boot."""
    on_at = now + timedelta(seconds=state["timing"]["power_on_s"])
    ready_at = on_at + timedelta(seconds=state["timing"]["boot_s"])
    override = state.get("boot_override", {})
    by_network = bool(state.get("boot_server")) and override.get("target") != "Hdd"
    by_network = by_network and not state["fails"].get("network_start")
    ready = NEVER if by_network else ready_at.isoformat()
    boot = {**state["boot"], "id": str(uuid.uuid4()), "reset_at": now.isoformat(), "ready_at": ready}
    return {
        **state,
        **state.get("next_boot", {}),
        "next_boot": {},
        "power": {**state["power"], "state": "On", "on_at": on_at.isoformat()},
        "boot": {**boot, "count": state["boot"]["count"] + 1, "asset_tag": state.get("asset_tag", "")},
        "network_start": by_network,
        "console": [],
        "boot_override": {} if override.get("enabled") == "Once" else override,
        "kernel_log": [],
        "gpus": [gpu_after_boot(gpu) for gpu in state.get("gpus", [])],
        "hcas": [adapter_after_boot(hca) for hca in state.get("hcas", [])],
        "nics": [adapter_after_boot(nic) for nic in state.get("nics", [])],
        **({"host": host_after_boot(state["host"])} if "host" in state else {}),
    }


def _interrupt_updates(state: VirtualNodeState, now: datetime, cause: str, *, everything: bool) -> VirtualNodeState:
    """Return the state with running updates failed: those without standby power, or `everything`."""
    for task in state.get("tasks", []):
        if is_task_running(task) and (everything or not set(task["inventory"]) <= STANDBY):
            state = interrupt_task(state, task["id"], now, f"{cause} while {task['component']} was being written")
    return state
