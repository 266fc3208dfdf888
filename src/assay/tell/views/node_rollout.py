"""Reads how far the active rollout is with one node, and which failures it explains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.decide.rollouts.rollout_history import ROLLOUT_KINDS, Rollout, project_rollouts
from assay.ledger.location import locate_existing_ledger
from assay.model.text.text_lists import format_count
from assay.tell.views.record_source import RecordSource

if TYPE_CHECKING:
    from assay.decide.rollouts.decide_rollouts import RolloutStep
    from assay.decide.rollouts.node_progress import NodeProgress
    from assay.tell.report.rollout_waits import RolloutWaits
    from assay.tell.views.explanation_answer import RolloutOfNode

EXPLAINED = ("waiting", "leaving", "out", "held")
"""How far a node is while the rollout explains its drift. Drift of a node that failed is a failure."""


@dataclass(frozen=True, slots=True)
class NodeInRollout:
    """The active rollout, the node's progress in it, and what the rollout as a whole waits for, "" for nothing."""

    rollout: Rollout
    progress: NodeProgress
    waits_for: str


def find_node_rollout(source: RecordSource, node: str) -> NodeInRollout | None:
    """Return the active rollout with this node, None without one. Nothing is written."""
    rollout = _find_active(source)
    step = _decide_next_step(source, rollout) if rollout and node in rollout.members else None
    progress = next((one for one in step.progress if one.node == node), None) if step else None
    return NodeInRollout(rollout, progress, step.waits_for) if rollout and step and progress else None


def find_rollout_waits(source: RecordSource) -> RolloutWaits:
    """Return which failures the active rollout explains: drift of the nodes that it has not brought the change to."""
    from assay.decide.drift.fleet_comparison import list_drift_checks
    from assay.tell.report.rollout_waits import NO_ROLLOUT, RolloutWaits

    rollout = _find_active(source)
    step = _decide_next_step(source, rollout) if rollout else None
    if rollout is None or step is None:
        return NO_ROLLOUT
    nodes = frozenset(one.node for one in step.progress if one.kind in EXPLAINED)
    return RolloutWaits(rollout.id, nodes, frozenset(check.id for check in list_drift_checks(source.fleet)))


def _find_active(source: RecordSource) -> Rollout | None:
    """Return the active rollout, None without one, without a ledger, or without the one policy that it goes by."""
    if not locate_existing_ledger(source.data_dir, is_lab=source.fleet.is_lab) or len(source.fleet.policies) != 1:
        return None
    return project_rollouts(source.ledger_for_reading.entries(kinds=ROLLOUT_KINDS)).find_active()


def _decide_next_step(source: RecordSource, rollout: Rollout) -> RolloutStep:
    from assay.act.rollouts.rollout_report import find_next_step  # few need it, and all would wait for it

    states = source.read_node_states()
    return find_next_step(source.fleet, source.ledger_for_reading, states, rollout, source.clock.now())[1]


def node_rollout_as_json(one: NodeInRollout) -> RolloutOfNode:
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
