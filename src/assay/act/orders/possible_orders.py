"""The orders that would change something now, whoever gives them."""

from __future__ import annotations

from assay.act.orders.trust_orders import list_fleet_waits
from assay.decide.rollouts.rollout_history import Rollout
from assay.decide.state.node_state import NodeState
from assay.model.fleet import Fleet


def list_node_orders(fleet: Fleet, state: NodeState) -> list[str]:
    """Return the names of the orders for a node."""
    waits = state.node in fleet.nodes and fleet.policy.states[state.state].certified_to and not state.certified
    asks = any(one.kind != "would" for one in list_fleet_waits(fleet, [state]))
    words = ["approve", "decline"] if asks else []
    return ["release" if state.hold else "hold", *(["certify"] if waits else []), *words]


def list_rollout_orders(rollout: Rollout) -> list[str]:
    """Return the names of the orders for a rollout; one that has ended takes none."""
    return [] if rollout.ended_at else ["resume" if rollout.pause else "pause"]
