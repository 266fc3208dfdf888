"""Whether a virtual node's state goes on to change."""

from __future__ import annotations

from assay.lab.bmc.firmware_flash import is_task_running
from assay.lab.virtual_node_state import VirtualNodeState


def has_pending_changes(state: VirtualNodeState) -> bool:
    """Return whether time alone will change this state."""
    running = any(is_task_running(task) for task in state.get("tasks", []))
    return bool(state["power"].get("on_at") or state.get("rollbacks")) or running
