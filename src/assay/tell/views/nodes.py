"""Nodes and pools in short: what a list of them shows to staff, and to customers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from assay.decide.state.node_state import NodeState
from assay.model.fleet import Fleet

IN_SERVICE, OUT_OF_SERVICE = "in service", "out of service"
"""The states that customers are told of."""


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """A node in a list. For customers, what follows `since` is ""."""

    node: str
    """The name of the node."""
    pool: str
    """The pool that the node is in."""
    state: str
    """The state that the node is in; for customers "in service" or "out of service"."""
    in_service: bool
    """Whether customers can use the node."""
    since: str
    """When the node came into this state: ISO 8601 with the offset of UTC."""
    rack: str = ""
    """The rack that the node is in."""
    pending_to: str = ""
    """The state that the node will go to; "" if no move waits."""
    held_by: str = ""
    """Who holds the node; "" if nobody does."""
    because: str = ""
    """Why the node is in its state."""


@dataclass(frozen=True, slots=True)
class PoolSummary:
    """A pool: how its nodes are."""

    pool: str
    """The name of the pool."""
    nodes: int
    """How many nodes it has."""
    in_service: int
    """How many of them customers can use."""
    states: dict[str, int]
    """How many nodes are in each state, by the state."""


def summarize_node(fleet: Fleet, state: NodeState, *, for_customer: bool) -> NodeSummary:
    """Return a node in short."""
    in_service = any(policy.is_in_service(state.state) for policy in fleet.policies.values())
    if for_customer:
        told = IN_SERVICE if in_service else OUT_OF_SERVICE
        return NodeSummary(state.node, state.pool, told, in_service, state.since)
    declared = fleet.nodes.get(state.node)
    return NodeSummary(
        node=state.node,
        pool=state.pool,
        state=state.state,
        in_service=in_service,
        since=state.since,
        rack=declared.rack if declared else "",
        pending_to=state.pending.to if state.pending else "",
        held_by=state.hold.who if state.hold else "",
        because=state.note or state.reason,
    )


def summarize_pools(nodes: Iterable[NodeSummary]) -> list[PoolSummary]:
    """Return the pools of these nodes, by name."""
    by_pool: dict[str, list[NodeSummary]] = {}
    for node in nodes:
        by_pool.setdefault(node.pool, []).append(node)
    return [
        PoolSummary(pool, len(some), sum(one.in_service for one in some), dict(Counter(one.state for one in some)))
        for pool, some in sorted(by_pool.items())
    ]
