"""assay.fleet.declared_settings: what the node spec declares for each role, and where the node's root is."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from assay.fleetkit import AssayError, find_task_node, make_role_values, preload_fleet, refuse_spec

preload_fleet(__file__)


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible ships no types
    """The module of the same name has the documentation."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Read the spec here and one variable on the node. Changes nothing."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        self.validate_argument_spec({})
        try:
            fleet, node = find_task_node(task_vars or {})
            if not self._task.check_mode:
                refuse_spec(fleet, fleet.spec_of(node.name), "a change of settings", "host")
        except AssayError as error:
            return result | {"failed": True, "msg": str(error)}
        root = self._low_level_execute_command('printf %s "$ASSAY_ROOT"').get("stdout", "").strip()
        managed = fleet.profile_of(node.name).host_settings
        return result | {
            "changed": False,
            "root": root,
            "managed": managed,
            "settings": make_role_values(fleet.spec_of(node.name)),
        }
