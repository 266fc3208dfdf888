"""Limits the blast radius: how many nodes of a pool or rack automation may have out, and how many restarts per hour."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.lifecycle.node_state import NodeState
from assay.model.decision import RESTART_ACTIONS
from assay.model.specs.lifecycle_policy import RACK_RULE_PREFIX, LifecyclePolicy
from assay.model.timestamps import format_time, hours


@dataclass(frozen=True, slots=True)
class LimitRefusal:
    """A limit that is reached: its name in the policy, what it counts (pool, site/rack or fleet), and a text."""

    limit: str
    where: str
    text: str


class LimitCapacity:
    """The capacity that the limits leave. Each decision takes from it, so that one pass cannot exceed a limit."""

    def __init__(self, snapshot: FleetSnapshot) -> None:
        self._snapshot, self._policy = snapshot, snapshot.policy
        self._pool_sizes = Counter(view.node.pool for view in snapshot.nodes)
        self._rack_sizes = Counter(view.node.rack_place for view in snapshot.nodes)
        for (pool, *rack), count in snapshot.quiet_counts.items():
            self._pool_sizes[pool] += count
            self._rack_sizes[(rack[0], rack[1])] += count
        out = [view for view in snapshot.nodes if is_out_of_service(self._policy, view.node_state)]
        self._pool_out = Counter(view.node.pool for view in out)
        self._rack_out = Counter(view.node.rack_place for view in out)
        self._hour_ago = format_time(snapshot.now - hours(1))
        self._restarts = sum(self._count_recent_restarts(view.node_state) for view in snapshot.nodes)

    def find_refusal(self, view: NodeSnapshot, to: str) -> LimitRefusal | None:
        """Return the limit that forbids to send the node to state `to`, or to keep it out while it waits; else None."""
        full = self._leaves_service(view) and (self._find_full_pool(view) or self._find_full_rack(view))
        return full or self._find_restart_limit(to)

    def reserve(self, view: NodeSnapshot, to: str) -> None:
        """Count the node as sent to state `to`."""
        if self._leaves_service(view):
            self._pool_out[view.node.pool] += 1
            self._rack_out[view.node.rack_place] += 1
        self._restarts += self._count_restarts(to)

    def _leaves_service(self, view: NodeSnapshot) -> bool:
        return is_in_service(self._policy, view.node_state) and not is_out_of_service(self._policy, view.node_state)

    def _find_full_pool(self, view: NodeSnapshot) -> LimitRefusal | None:
        pool = view.node.pool
        size, out = self._pool_sizes[pool], self._pool_out[pool]
        allowed = count_allowed_out(size, self._policy.limits.pool_percent)
        if out < allowed:
            return None
        text = f"held back: {out} of {size} already out of pool {pool}, {allowed} may be"
        return LimitRefusal("pool_percent", pool, text)

    def _find_full_rack(self, view: NodeSnapshot) -> LimitRefusal | None:
        rack, allowed = view.node.rack_place, self._policy.limits.rack_concurrent
        if self._rack_out[rack] < allowed:
            return None
        out = f"{self._rack_out[rack]} of {self._rack_sizes[rack]}"
        text = f"held back: {out} already out in rack {view.node.rack}, {allowed} may be"
        return LimitRefusal("rack_concurrent", "/".join(rack), text)

    def _find_restart_limit(self, to: str) -> LimitRefusal | None:
        allowed = self._policy.limits.reboots_per_hour
        if not self._count_restarts(to) or self._restarts < allowed:
            return None
        text = f"held back: {self._restarts} restarts in the last hour, {allowed} may be"
        return LimitRefusal("reboots_per_hour", "fleet", text)

    def _count_restarts(self, state: str) -> int:
        """Return 1 if a state restarts the node on arrival, else 0."""
        return int(bool(RESTART_ACTIONS & set(self._policy.states[state].entry)))

    def _count_recent_restarts(self, node_state: NodeState) -> int:
        recent = [move for move in node_state.transitions if move.at > self._hour_ago]  # unsorted: clocks are set back
        return sum(self._count_restarts(move.target) for move in recent if move.target in self._policy.states)


def count_allowed_out(size: int, percent: float) -> int:
    """Return how many nodes of a pool of this size may be out of service: at least one."""
    return max(1, int(size * percent / 100))


def is_in_service(policy: LifecyclePolicy, node_state: NodeState) -> bool:
    """Whether the node is in a state that serves customers."""
    return policy.states[node_state.state].in_service


def is_out_of_service(policy: LifecyclePolicy, node_state: NodeState) -> bool:
    """Whether automation has the node out of service, or cordoned while a decision is pending.

    A node that failed its burn-in does not count: it has not served since it was last brought up.
    """
    if is_in_service(policy, node_state):
        return node_state.pending is not None and holds_out_of_service(policy, node_state.pending.rule)
    if not policy.states[node_state.state].counts_out:
        return False
    for move in reversed(node_state.transitions):
        origin = policy.states.get(move.origin)
        if origin is None or not origin.counts_out:
            return origin is not None and origin.in_service
    return False


def holds_out_of_service(policy: LifecyclePolicy, rule: str) -> bool:
    """Whether a pending decision of this rule (`file:line name`) holds the node out of service.

    The cordon of a whole rack does not: such a node is healthy and keeps its jobs.
    """
    return not rule.rpartition(" ")[2].startswith(RACK_RULE_PREFIX) and bool(policy.actions_while_pending(rule))
