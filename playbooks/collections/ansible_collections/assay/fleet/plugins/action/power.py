"""assay.fleet.power: restarts a node through its BMC and waits for it, in the process of ansible-playbook."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from assay.fleetkit import AssayError, find_home, find_task_node, hold_node_lock, preload_fleet, restart_node

preload_fleet(__file__)

RESETS = ["", "ForceRestart", "GracefulRestart", "PowerCycle"]


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible ships no types
    """The module of the same name has the documentation."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Restart the node; with --check only report that it would restart."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(
            {
                "reset": {"type": "str", "choices": RESETS, "default": ""},
                "unless_after": {"type": "str", "default": ""},
                "wait_s": {"type": "float", "default": 1800.0},
            }
        )
        reset, unless_after, wait_s = arguments["reset"], arguments["unless_after"], arguments["wait_s"]
        if self._task.check_mode:
            return result | {"changed": bool(reset), "boot_id": ""}
        fleet, node = find_task_node(task_vars or {})
        try:
            with hold_node_lock(find_home(fleet.root).folder, node.name, wait_s):
                changed, boot = restart_node(node, fleet, reset, unless_after, wait_s)
        except AssayError as error:
            return result | {"failed": True, "msg": str(error)}
        return result | {"changed": changed, "boot_id": boot}
