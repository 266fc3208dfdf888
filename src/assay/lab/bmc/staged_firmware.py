"""Firmware that is written and waits for its reset, and firmware that rolls back by itself, as pure functions."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from assay.lab.virtual_node_state import VirtualNodeState, with_sel_event

WrittenFirmware = dict[str, Any]
"""What a task has written: its `inventory`, `version`, `reset`, and the faults `resets` and `rolls_back_s`."""


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
    fitting = {name: entry for name, entry in state.get("staged", {}).items() if entry["reset"] in resets}
    waiting = {name: {**entry, "resets": entry["resets"] - 1} for name, entry in fitting.items() if _waits(entry)}
    left = {name: entry for name, entry in state.get("staged", {}).items() if name not in fitting}
    ready = {name: entry for name, entry in fitting.items() if name not in waiting}
    return _activate({**state, "staged": {**left, **waiting}}, ready, now)


def roll_back(state: VirtualNodeState, rollback: dict[str, Any]) -> VirtualNodeState:
    """Return the state with the old versions in force again."""
    left = [entry for entry in state.get("rollbacks", []) if entry != rollback]
    state = {**state, "rollbacks": left, "firmware": {**state["firmware"], **rollback["firmware"]}}
    text = f"{', '.join(rollback['firmware'])} did not start its new firmware and runs the old one"
    return with_sel_event(state, datetime.fromisoformat(rollback["at"]), "Critical", text, "Update.1.0.RolledBack")


def _waits(entry: dict[str, Any]) -> bool:
    return bool(entry.get("resets", 1) > 1)


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
