"""Says whether a node is on its way to what the repository declares."""

from __future__ import annotations

from collections.abc import Collection

from assay.decide.state.node_state import NodeState
from assay.model.specs.lifecycle_policy import LifecyclePolicy

APPLYING_ACTIONS = frozenset({"zap"})
"""The actions that bring declared firmware and configuration."""


def list_applying_states(policy: LifecyclePolicy) -> frozenset[str]:
    """Return the states on whose entry assay applies what the repository declares."""
    return frozenset(name for name, state in policy.states.items() if APPLYING_ACTIONS & set(state.entry))


def is_rolling(node: str, node_state: NodeState | None, applying: Collection[str], rollout: Collection[str]) -> bool:
    """Whether a node is on its way to what is declared.

    It is in a state that applies it (`applying`), or has a decision or an order to go there. Or it is among the nodes
    of a `rollout` that has not proved them yet.
    """
    if node in rollout:
        return True
    if node_state is None:
        return False
    asked, pending = node_state.move_request, node_state.pending
    targets = {node_state.state, pending.to if pending else "", asked.to if asked else ""}
    return not targets.isdisjoint(applying)
