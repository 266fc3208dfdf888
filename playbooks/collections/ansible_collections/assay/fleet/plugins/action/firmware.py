"""assay.fleet.firmware: brings a node's firmware to its bundle, stage by stage, in the process of ansible-playbook."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from assay.fleetkit import (
    PROGRESS_MARK,
    AssayError,
    FirmwareStage,
    FirmwareUpdateRun,
    StageResult,
    find_home,
    find_image,
    find_task_node,
    hold_node_lock,
    make_bmc_connector,
    preload_fleet,
    report_failure,
    report_planned,
    report_stages,
    require_effect,
    select_stages,
)

preload_fleet(__file__)

OPTIONS = {
    "components": {"type": "list", "elements": "str"},
    "deadline_s": {"type": "float", "default": 3600.0},
    "read_back_s": {"type": "float", "default": 120.0},
    "steady_s": {"type": "float", "default": 30.0},
}


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible ships no types
    """The module of the same name has the documentation."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Update the components; with --check only report whether they would change."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(OPTIONS)
        try:
            return result | self._update(task_vars or {}, arguments)
        except AssayError as error:
            return result | {"failed": True, "msg": str(error)}

    def _update(self, variables: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
        fleet, node = find_task_node(variables)
        stages = select_stages(fleet, node.name, arguments["components"])
        if not stages:
            return report_stages([])
        work = FirmwareUpdateRun(
            node.name,
            make_bmc_connector(node, fleet),
            partial(find_image, fleet, fleet.bundle_of(node.name)),
            arguments["deadline_s"],
            arguments["read_back_s"],
            arguments["steady_s"],
            tell=lambda text: _show_progress(f"{PROGRESS_MARK}{node.name}: {text}"),
        )
        if self._task.check_mode:
            parts = [part for stage in stages for part in stage.components]
            return report_planned(stages, work.read_versions(parts) if parts else {})
        if cycled := work.list_ac_cycled(stages):
            require_effect(fleet, node.name, "ac-cycles", f"{', '.join(cycled)} needs an AC cycle")
        done: list[StageResult] = []
        playbook = os.getppid()
        try:
            with hold_node_lock(find_home(fleet.root).folder, node.name, arguments["deadline_s"]):
                update_stages(work, stages, done, playbook)
        except AssayError as error:
            return report_failure(work, done, error)
        return report_stages(done)


def _show_progress(line: str) -> None:
    with suppress(BrokenPipeError):  # ansible-playbook has been ended: the task outlives it
        Display().display(line)


def update_stages(
    work: FirmwareUpdateRun, stages: Sequence[FirmwareStage], done: list[StageResult], playbook: int
) -> None:
    """Update one stage after the other, and add the results to `done`. At the end, look whether all versions hold.

    A task outlives an ansible-playbook (process id `playbook`) that is ended: it then begins no other stage.
    """
    for stage in stages:
        if os.getppid() != playbook:
            raise AssayError(f"ansible-playbook was ended before the stage {stage.name}", where=work.node)
        done.append(work.update_stage(stage))
    if any(result.changed for result in done):
        work.confirm([part for stage in stages for part in stage.components])
