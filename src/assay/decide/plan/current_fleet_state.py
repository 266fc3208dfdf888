"""The present state of the fleet. The caller passes all of it, so planning reads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from assay.decide.moves.blast_radius_limits import is_ordered_out, is_out_of_service
from assay.decide.plan.assumptions import CountingChange
from assay.decide.state.node_entry import find_start_state
from assay.decide.state.node_state import NodeState
from assay.model.backtest_report import BacktestReport, MedianDuration, PolicyReplayReport
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """Each enrolled node's state, and how long actions and stays in states took. Empty if there is no ledger.

    `now` is the fleet's time, None if it is not known: then imports do not expire.
    `recounts`: the last outcomes that begin to count, or stop counting.
    """

    node_states: Mapping[str, NodeState] = field(default_factory=dict)
    actions: Mapping[str, MedianDuration] = field(default_factory=dict)
    stays: Mapping[str, MedianDuration] = field(default_factory=dict)
    backtest: BacktestReport | None = None
    recounts: tuple[CountingChange, ...] = ()
    policy_replay: PolicyReplayReport | None = None
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class NodeStanding:
    """The present standing of a node: its `state`, whether customers use it, whether it is out, who holds it."""

    state: str
    is_in_service: bool
    is_out: bool
    hold_reason: str = ""

    @property
    def is_meant_to_serve(self) -> bool:
        """Whether the node counts in the size of its pool: it serves, or it was taken out and is to come back."""
        return self.is_in_service or self.is_out


def find_node_standing(policy: LifecyclePolicy, facts: FleetFacts, node: Node) -> NodeStanding:
    """Return the standing of a node; for a node that was never enrolled, its start in the inventory."""
    node_state = facts.node_states.get(node.name)
    if node_state is None:
        state = find_start_state(policy, node, facts.now)
        return NodeStanding(state, policy.is_in_service(state), False)
    is_out = node_state.state in policy.states and (
        is_out_of_service(policy, node_state) or is_ordered_out(policy, node_state)
    )
    held = f"held by {node_state.hold.who}: {node_state.hold.reason}" if node_state.hold else ""
    return NodeStanding(node_state.state, policy.is_in_service(node_state.state), is_out, held)
