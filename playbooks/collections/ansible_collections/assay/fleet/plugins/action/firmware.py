"""assay.fleet.firmware: bring components of a node's bundle to their versions, in the process of ansible-playbook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from assay.actions.firmware import Bringing, owed, unequal
from assay.actions.node_lock import node_lock
from assay.actions.playbook import node_of, read_before_hosts
from assay.actions.updates import connect
from assay.model.errors import Trouble

read_before_hosts(__file__)


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible ships no types
    """See the documentation of the module of the same name."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Do it, or with --check only say whether it would be done."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(
            {
                "components": {"type": "list", "elements": "str", "required": True},
                "deadline_s": {"type": "float", "default": 3600.0},
            }
        )
        try:
            return result | self._bring(task_vars or {}, arguments["components"], arguments["deadline_s"])
        except Trouble as trouble:
            return result | {"failed": True, "msg": str(trouble)}

    def _bring(self, variables: dict[str, Any], names: list[str], deadline_s: float) -> dict[str, Any]:
        fleet, node = node_of(variables)
        known = {component.name for component in fleet.bundle_of(node.name).components}
        if strangers := set(names) - known:
            raise Trouble(f"the bundle has no {', '.join(sorted(strangers))}", where=node.name)
        components = [component for component in owed(fleet, node.name) if component.name in names]
        bringing = Bringing(node.name, connect(node, fleet), fleet.root, deadline_s)
        if not components:
            return {"changed": False, "firmware": {}, "pushed": [], "msg": "left out by the management profile"}
        if self._task.check_mode:
            changed = bool(unequal(bringing.read(components), components))
        else:
            with node_lock(Path(fleet.root, ".assay"), node.name, deadline_s):
                changed = bringing.bring(components)
        return {"changed": changed, "firmware": bringing.read(components), "pushed": bringing.pushed}
