"""What is known of the fleet at present, handed in whole: planning asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.lifecycle.decisions.blast_radius_limits import is_out_of_service
from assay.lifecycle.node_state import NodeState
from assay.model.backtest_report import BacktestReport, MedianDuration
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.plan.known_issue_changes import CountingChange


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """Each enrolled node's node_state, and how long actions and stays in states took. Empty where there is no ledger.

    `recounts`: what comes to count of the last outcomes, or counts no more.
    """

    node_states: Mapping[str, NodeState] = field(default_factory=dict)
    actions: Mapping[str, MedianDuration] = field(default_factory=dict)
    stays: Mapping[str, MedianDuration] = field(default_factory=dict)
    backtest: BacktestReport | None = None
    recounts: tuple[CountingChange, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeStanding:
    """Where one node is: `state`, whether customers use it, whether automation has it out, who holds it."""

    state: str
    is_in_service: bool
    is_out: bool
    hold_reason: str = ""


def find_node_standing(policy: LifecyclePolicy, facts: FleetFacts, node: Node) -> NodeStanding:
    """Return where a node is; one that was never enrolled is where the inventory starts it."""
    node_state = facts.node_states.get(node.name)
    if node_state is None:
        state = node.settings.lifecycle_start
        return NodeStanding(state, _serves(policy, state), False)
    known = node_state.state in policy.states
    held = f"held by {node_state.hold.who}: {node_state.hold.reason}" if node_state.hold else ""
    return NodeStanding(
        node_state.state, _serves(policy, node_state.state), known and is_out_of_service(policy, node_state), held
    )


def _serves(policy: LifecyclePolicy, state: str) -> bool:
    return state in policy.states and policy.states[state].in_service
