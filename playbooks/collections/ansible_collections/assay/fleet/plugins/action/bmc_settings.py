"""assay.fleet.bmc_settings: brings the settings of a BMC to the node spec, in the process of ansible-playbook."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from assay.fleetkit import (
    AssayError,
    BmcSettingsUpdate,
    SettingMismatch,
    find_home,
    find_task_node,
    format_setting_diff,
    hold_node_lock,
    preload_fleet,
    redact,
)

preload_fleet(__file__)


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible ships no types
    """The module of the same name has the documentation."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Bring the settings to the spec; with --check only report what differs."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        options = {
            "read_back_s": {"type": "float", "default": 60.0},
            "check_passwords": {"type": "bool", "default": False},
        }
        _, arguments = self.validate_argument_spec(options)
        try:
            mismatches = self._update(task_vars or {}, **arguments)
        except AssayError as error:
            return result | {"failed": True, "msg": redact(str(error))}
        return result | {"changed": bool(mismatches), "diff": [format_setting_diff("settings of the BMC", mismatches)]}

    def _update(self, variables: dict[str, Any], read_back_s: float, check_passwords: bool) -> list[SettingMismatch]:
        fleet, node = find_task_node(variables)
        update = BmcSettingsUpdate(fleet, node, read_back_s, check_passwords)
        if self._task.check_mode:
            return update.find_mismatches()
        with hold_node_lock(find_home(fleet.root).folder, node.name, read_back_s):
            return update.apply()
