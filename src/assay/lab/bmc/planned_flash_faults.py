"""Planned faults of the next update of a component, as pure functions: what the update's task carries of them.

| fault | arguments | what the task carries |
|---|---|---|
| second-reset | – | `resets: 2`: the second reset activates the version |
| rolls-back | `after_s` | `rolls_back_s`: so long after its activation, the old version runs again |
| task-lost | `at_percent`, `written` | `lost_at`: from then on, the BMC does not know the task |
| bmc-restarts | `at_percent`, `forgets`, `breaks` | `restart_at`: the BMC restarts, may forget and break the update |
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from assay.lab.virtual_node_state import VirtualNodeState

FlashFault = dict[str, Any]


def plan_flash_fault(state: VirtualNodeState, component: str, fault: str, **arguments: Any) -> None:
    """Plan a fault of the next update of a component, in place."""
    planned = state["fails"].setdefault("flash_faults", [])
    planned.append({"component": component, "fault": fault, **arguments})


def take_planned_faults(state: VirtualNodeState, component: str) -> tuple[list[FlashFault], VirtualNodeState]:
    """Return the planned faults of a component, and the state without them."""
    planned: list[FlashFault] = state.get("fails", {}).get("flash_faults", [])
    taken = [fault for fault in planned if fault["component"] == component]
    if not taken:
        return [], state
    left = [fault for fault in planned if fault["component"] != component]
    return taken, {**state, "fails": {**state["fails"], "flash_faults": left}}


def start_faults(faults: list[FlashFault], now: datetime, flash_s: float) -> dict[str, Any]:
    """Return what the task of an update that starts `now` carries of its faults."""
    carried: dict[str, Any] = {}
    for fault in faults:
        at = (now + timedelta(seconds=flash_s * fault.get("at_percent", 50) / 100)).isoformat()
        match fault["fault"]:
            case "second-reset":
                carried["resets"] = 2
            case "rolls-back":
                carried["rolls_back_s"] = fault["after_s"]
            case "task-lost":
                carried |= {"lost_at": at, "written": fault["written"]}
            case "bmc-restarts":
                carried |= {"restart_at": at, "forgets": fault["forgets"], "breaks": fault["breaks"]}
    return carried
