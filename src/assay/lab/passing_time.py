"""Lets the lab's clock jump, and lets the burn-ins of its nodes work through the hours that passed."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from assay.lab.process_control import list_marked_processes
from assay.lab.world import LabWorld
from assay.node.burnin.journal import LOCK, BurnInFolder
from assay.node.probe.node_access import NodeRoot

POLL_S = 0.2


def let_time_pass(world: LabWorld, step: timedelta, tell: Callable[[str], object] = lambda _: None) -> None:
    """Move the lab's clock forward, and wait until each burn-in has done these hours or has ended.

    `tell` gets a line about a wait. Each part of a phase runs twice or more.
    """
    folders = {node: BurnInFolder(NodeRoot(str(world.folder(node) / "root"))) for node in world.nodes()}
    supervisors = {node: folder.read_text(LOCK) for node, folder in folders.items()}
    running = _find_running(world, supervisors)
    ends = {node: folders[node].read_clock() + step.total_seconds() for node in running}
    if running:
        tell(f"{', '.join(running)}: under load for {step.total_seconds() / 3600:g} h; this takes some minutes")
    world.jump(step)
    while running := [node for node in _find_running(world, supervisors) if folders[node].read_clock() < ends[node]]:
        time.sleep(POLL_S)


def _find_running(world: LabWorld, supervisors: dict[str, str]) -> list[str]:
    """Return the nodes whose supervisor lives. `supervisors`: its process id by node, "" for none."""
    if not any(supervisors.values()):
        return []
    alive = {str(process) for process in list_marked_processes(world.home)}
    return [node for node, process in supervisors.items() if process in alive]
