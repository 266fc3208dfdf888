"""The lemon score of a node, as plain data and as a branch: a part of the answer of `assay explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.cli.workspace import Workspace
from assay.model.timestamps import format_minute

if TYPE_CHECKING:
    from rich.tree import Tree

    from assay.lifecycle.node_state import NodeState

MAX_REASONS_SHOWN = 5


def describe_lemon_score(workspace: Workspace, state: NodeState) -> dict[str, Any] | None:
    """Return the score with all its reasons. None if no policy has the node's state, or the policy has no score."""
    from assay.lifecycle.lemon_score import compute_lemon_score

    policy = next((policy for policy in workspace.fleet.policies.values() if state.state in policy.states), None)
    score = compute_lemon_score(policy, state) if policy else None
    return {**score.as_json(), "summary": str(score)} if score else None


def add_lemon_branch(tree: Tree, lemon: dict[str, Any] | None) -> None:
    """Add the answer of `describe_lemon_score` to a tree: nothing for a node without points."""
    from rich.markup import escape

    if lemon is None or not lemon["points"]:
        return
    verdict = "; [red]a lemon[/]: its next fault goes to people" if lemon["is_lemon"] else ""
    branch = tree.add(f"{escape(lemon['summary'])}{verdict}")
    reasons = lemon["reasons"]
    for reason in reasons[-MAX_REASONS_SHOWN:]:
        because = f": {escape(reason['because'])}" if reason["because"] else ""
        branch.add(f"[dim]{reason['weight']:g} for[/] {reason['what']}, {format_minute(reason['at'])}{because}")
    if len(reasons) > MAX_REASONS_SHOWN:
        branch.add(f"[dim]and {len(reasons) - MAX_REASONS_SHOWN} earlier, see --format json[/]")
