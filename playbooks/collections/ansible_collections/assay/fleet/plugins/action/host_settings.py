"""assay.fleet.host_settings: reads the host's settings with the probe, and restarts the host where that is needed."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from assay.fleetkit import (
    AssayError,
    HostSettingsReadBack,
    find_home,
    find_task_node,
    format_setting_mismatches,
    hold_node_lock,
    preload_fleet,
)

preload_fleet(__file__)


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible ships no types
    """The module of the same name has the documentation."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Compare the probe's readings with the spec; with --check only say what differs."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(
            {"restart": {"type": "bool", "default": True}, "deadline_s": {"type": "float", "default": 3600.0}}
        )
        try:
            return result | self._read_back(task_vars or {}, arguments["deadline_s"], restart=arguments["restart"])
        except AssayError as error:
            return result | {"failed": True, "msg": str(error)}

    def _read_back(self, variables: dict[str, Any], deadline_s: float, *, restart: bool) -> dict[str, Any]:
        fleet, node = find_task_node(variables)
        work = HostSettingsReadBack(fleet, node, deadline_s)
        found = work.find_mismatches() if self._task.check_mode else work.settle()
        waits = restart and work.is_restart_needed(found)
        if self._task.check_mode:
            return {"changed": waits, "msg": f"reads otherwise: {format_setting_mismatches(found)}" if found else ""}
        if waits:
            with hold_node_lock(find_home(fleet.root).folder, node.name, deadline_s):
                return {"changed": True, "boot_id": work.restart()}
        work.require_no_mismatch(found)
        return {"changed": False}
