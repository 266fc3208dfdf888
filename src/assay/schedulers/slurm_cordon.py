"""Why no job starts on a node, by Slurm's states and reasons of nodes (`man sinfo`). Pure."""

from __future__ import annotations

from assay.model.cordon_reason_checksum import display_reason, is_our_reason
from assay.schedulers.slurm_json import SlurmNode

CLOSED_NODE_STATES = ("DOWN", "FAIL", "ERROR", "INVAL", "FUTURE")
"""Slurm starts no job on the node, even if it is not drained."""
SELF_CLEARING_REASONS = (
    "Not responding",
    "Node unexpectedly rebooted",
    "batch job complete failure",
    "ResumeTimeout reached",
)
"""How reasons start with which slurmctld itself sets a node DOWN. It clears them when the node is back."""


def find_slurm_cordon(node: SlurmNode) -> str:
    """Return why no job starts on the node, "" if jobs do: our reasons with our prefix, others' as they are."""
    reason, closed = display_reason(node.reason, node.reason_set_by_user), _find_closed_state(node)
    if "DRAIN" in node.states or (closed and is_our_reason(display_reason(node.reason))):
        return reason or "drained without a reason"
    return f"{closed} in Slurm: {reason or 'no reason is given'}" if closed else ""


def is_closed_in_slurm(node: SlurmNode) -> bool:
    """Say whether a person, or assay, closed the node.

    A node that slurmctld itself set DOWN does not count: it opens again once it answers, and jobs would start.
    """
    if "DRAIN" in node.states:
        return True
    return bool(_find_closed_state(node)) and not node.reason.startswith(SELF_CLEARING_REASONS)


def _find_closed_state(node: SlurmNode) -> str:
    return next((state for state in CLOSED_NODE_STATES if state in node.states), "")
