"""assay.fleet.power: restart a node through its BMC and wait for it, in the process of ansible-playbook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from assay.actions.ansible_playbook import find_task_node, preload_fleet
from assay.actions.boot import restart_node
from assay.ledger.leases_and_locks import hold_node_lock
from assay.model.errors import AssayError

preload_fleet(__file__)

RESETS = ["", "ForceRestart", "GracefulRestart", "PowerCycle"]


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible ships no types
    """See the documentation of the module of the same name."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Do it; with --check only say that it would be done."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, asked = self.validate_argument_spec(
            {
                "reset": {"type": "str", "choices": RESETS, "default": ""},
                "unless_after": {"type": "str", "default": ""},
                "wait_s": {"type": "float", "default": 1800.0},
            }
        )
        if self._task.check_mode:
            return result | {"changed": bool(asked["reset"]), "boot_id": ""}
        fleet, node = find_task_node(task_vars or {})
        try:
            with hold_node_lock(Path(fleet.root, ".assay"), node.name, asked["wait_s"]):
                changed, boot = restart_node(node, fleet, asked["reset"], asked["unless_after"], asked["wait_s"])
        except AssayError as trouble:
            return result | {"failed": True, "msg": str(trouble)}
        return result | {"changed": changed, "boot_id": boot}
