"""Reads for `assay explain` how far the active rollout is with one node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.cli.workspace import Workspace
from assay.ledger.location import read_all_entries
from assay.lifecycle.rollouts.rollout_history import ROLLOUT_KINDS, Rollout, project_rollouts
from assay.model.text_lists import format_count

if TYPE_CHECKING:
    from assay.lifecycle.rollouts.node_progress import NodeProgress


@dataclass(frozen=True, slots=True)
class NodeInRollout:
    """The active rollout, the node's progress in it, and what the rollout as a whole waits for, "" for nothing."""

    rollout: Rollout
    progress: NodeProgress
    waits_for: str


def find_node_rollout(workspace: Workspace, node: str) -> NodeInRollout | None:
    """Return the active rollout with this node, None without one. Nothing is written."""
    rollout = project_rollouts(workspace.ledger_for_reading.entries(kinds=ROLLOUT_KINDS)).find_active()
    if rollout is None or node not in rollout.members or len(workspace.fleet.policies) != 1:
        return None
    from assay.controller.rollouts.rollout_report import report_rollout  # few nodes need it, and all would wait for it

    entries = read_all_entries(workspace.ledger_location)
    step = report_rollout(workspace.fleet, workspace.ledger_for_reading, entries, rollout, workspace.clock.now()).step
    progress = next((one for one in step.progress if one.node == node), None) if step else None
    return NodeInRollout(rollout, progress, step.waits_for) if step and progress else None


def node_rollout_as_json(one: NodeInRollout) -> dict[str, Any]:
    """Return the object that `assay explain --format json` prints."""
    rollout, progress = one.rollout, one.progress
    return {
        "id": rollout.id,
        "base": rollout.base,
        "commit": rollout.commit,
        "status": rollout.status,
        "nodes": len(rollout.members),
        "proven": len(rollout.members) - len(rollout.unproven),
        "progress": progress.kind,
        "why": progress.why,
        "change": progress.member.reason,
        "waits_for": one.waits_for,
    }


def format_node_rollout(one: NodeInRollout) -> Iterator[str]:
    """Yield the lines for people."""
    rollout, progress = one.rollout, one.progress
    head = f"rollout {rollout.id[:8]} ({rollout.base[:8]} → {rollout.commit[:8]}): {progress.member.reason}"
    proven = len(rollout.members) - len(rollout.unproven)
    yield f"{head}; {proven} of {format_count(len(rollout.members), 'node')} proven"
    yield f"  this node: {progress.kind}{f', {progress.why}' if progress.why else ''}"
    if one.waits_for:
        yield f"  the rollout waits: {one.waits_for}"
