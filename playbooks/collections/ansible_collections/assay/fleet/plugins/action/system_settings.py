"""assay.fleet.system_settings: brings BIOS and boot settings to the node spec, in the process of ansible-playbook."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from assay.fleetkit import (
    AssayError,
    SettingMismatch,
    SystemSettingsUpdate,
    find_home,
    find_task_node,
    format_setting_diff,
    hold_node_lock,
    preload_fleet,
)

preload_fleet(__file__)


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible ships no types
    """The module of the same name has the documentation."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Bring the settings to the spec; with --check only report what differs."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec({"deadline_s": {"type": "float", "default": 3600.0}})
        try:
            mismatches = self._update(task_vars or {}, arguments["deadline_s"])
        except AssayError as error:
            return result | {"failed": True, "msg": str(error)}
        return result | {
            "changed": bool(mismatches),
            "diff": [format_setting_diff("BIOS and boot settings", mismatches)],
        }

    def _update(self, variables: dict[str, Any], deadline_s: float) -> list[SettingMismatch]:
        fleet, node = find_task_node(variables)
        update = SystemSettingsUpdate(fleet, node, deadline_s)
        if self._task.check_mode:
            return update.find_mismatches()
        with hold_node_lock(find_home(fleet.root).folder, node.name, deadline_s):
            return update.apply()
