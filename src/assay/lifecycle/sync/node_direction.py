"""Says whether a node is on its way to what the repository declares, and who keeps it from going there."""

from __future__ import annotations

from collections.abc import Collection

from assay.lifecycle.node_state import NodeState
from assay.model.specs.lifecycle_policy import LifecyclePolicy

APPLYING_ACTIONS = frozenset({"zap"})
"""The actions that bring declared firmware and configuration."""


def list_applying_states(policy: LifecyclePolicy) -> frozenset[str]:
    """Return the states on whose entry assay applies what the repository declares."""
    return frozenset(name for name, state in policy.states.items() if APPLYING_ACTIONS & set(state.entry))


def is_rolling(node_state: NodeState, applying: Collection[str]) -> bool:
    """Whether a node is in a state that applies what is declared, or has a decision or an order to go there."""
    asked, pending = node_state.move_request, node_state.pending
    targets = {node_state.state, pending.to if pending else "", asked.to if asked else ""}
    return not targets.isdisjoint(applying)
