"""assay.fleet.firmware: brings components of a node's bundle to their versions, in the process of ansible-playbook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from assay.actions.ansible_playbook import find_task_node, preload_fleet
from assay.actions.firmware_update import FirmwareUpdateRun, find_version_mismatches, list_managed_components
from assay.actions.redfish_update_service import make_bmc_connector
from assay.ledger.file_locks import hold_node_lock
from assay.model.errors import AssayError

preload_fleet(__file__)


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible ships no types
    """The module of the same name has the documentation."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Update the components; with --check only report whether they would change."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(
            {
                "components": {"type": "list", "elements": "str", "required": True},
                "deadline_s": {"type": "float", "default": 3600.0},
            }
        )
        try:
            return result | self._update(task_vars or {}, arguments["components"], arguments["deadline_s"])
        except AssayError as error:
            return result | {"failed": True, "msg": str(error)}

    def _update(self, variables: dict[str, Any], names: list[str], deadline_s: float) -> dict[str, Any]:
        fleet, node = find_task_node(variables)
        known = {component.name for component in fleet.bundle_of(node.name).components}
        if unknown := set(names) - known:
            raise AssayError(f"the bundle has no {', '.join(sorted(unknown))}", where=node.name)
        components = [component for component in list_managed_components(fleet, node.name) if component.name in names]
        work = FirmwareUpdateRun(node.name, make_bmc_connector(node, fleet), fleet.root, deadline_s)
        if not components:
            return {"changed": False, "firmware": {}, "pushed": [], "msg": "left out by the management profile"}
        if self._task.check_mode:
            changed = bool(find_version_mismatches(work.read_versions(components), components))
        else:
            with hold_node_lock(Path(fleet.root, ".assay"), node.name, deadline_s):
                changed = work.update_components(components)
        return {"changed": changed, "firmware": work.read_versions(components), "pushed": work.pushed}
