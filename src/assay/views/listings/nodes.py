"""Nodes and pools in short: what a list of them shows to staff, and to customers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from assay.lifecycle.node_state import NodeState
from assay.model.fleet import Fleet

IN_SERVICE, OUT_OF_SERVICE = "in service", "out of service"
"""The states that customers are told of."""


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """A node in a list. Times are ISO 8601 UTC.

    For customers, `state` is "in service" or "out of service", and what follows `since` is "".
    """

    node: str
    pool: str
    state: str
    in_service: bool
    since: str
    rack: str = ""
    pending_to: str = ""
    held_by: str = ""
    because: str = ""


@dataclass(frozen=True, slots=True)
class PoolSummary:
    """A pool: its nodes, how many are in service, and how many are in each state."""

    pool: str
    nodes: int
    in_service: int
    states: dict[str, int]


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
