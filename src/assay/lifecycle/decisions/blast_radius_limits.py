"""The blast radius: how much of a pool and a rack may be out through automation, how many restarts in an hour."""

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
    """A limit that is reached. `limit` is its name in the policy, `where` what it counts, `text` says it."""

    limit: str
    where: str
    text: str


class LimitCapacity:
    """What the limits still leave. Deciding takes from it, so that one pass cannot overspend."""

    def __init__(self, situation: FleetSnapshot) -> None:
        self._situation, self._policy = situation, situation.policy
        self._size = Counter(view.node.pool for view in situation.nodes)
        self._in_rack = Counter(_rack(view) for view in situation.nodes)
        out = [view for view in situation.nodes if is_out_of_service(self._policy, view.node_state)]
        self._out = Counter(view.node.pool for view in out)
        self._rack_out = Counter(_rack(view) for view in out)
        self._hour_ago = format_time(situation.now - hours(1))
        self._restarts = sum(self._recent_restarts(view.node_state) for view in situation.nodes)

    def find_refusal(self, view: NodeSnapshot, to: str) -> LimitRefusal | None:
        """Return the limit that forbids sending the node `to` a state (or holding it out while it waits), if any."""
        full = self._leaves_service(view) and (self._pool_is_full(view) or self._rack_is_full(view))
        return full or self._too_many_restarts(to)

    def reserve(self, view: NodeSnapshot, to: str) -> None:
        """Count the node as sent `to` a state."""
        if self._leaves_service(view):
            self._out[view.node.pool] += 1
            self._rack_out[_rack(view)] += 1
        self._restarts += self._restarts_in(to)

    def _leaves_service(self, view: NodeSnapshot) -> bool:
        return is_in_service(self._policy, view.node_state) and not is_out_of_service(self._policy, view.node_state)

    def _pool_is_full(self, view: NodeSnapshot) -> LimitRefusal | None:
        pool, percent = view.node.pool, self._policy.limits.pool_percent
        size = self._size[pool] + sum(
            count for (name, *_), count in self._situation.quiet_counts.items() if name == pool
        )
        allowed = count_allowed_out(size, percent)
        if self._out[pool] < allowed:
            return None
        text = f"held back: {self._out[pool]} of {size} already out of pool {pool}, {allowed} may be"
        return LimitRefusal("pool_percent", pool, text)

    def _rack_is_full(self, view: NodeSnapshot) -> LimitRefusal | None:
        rack, allowed = _rack(view), self._policy.limits.rack_concurrent
        if self._rack_out[rack] < allowed:
            return None
        quiet = sum(count for (_, *place), count in self._situation.quiet_counts.items() if tuple(place) == rack)
        out = f"{self._rack_out[rack]} of {self._in_rack[rack] + quiet}"
        text = f"held back: {out} already out in rack {view.node.rack}, {allowed} may be"
        return LimitRefusal("rack_concurrent", "/".join(rack), text)

    def _too_many_restarts(self, to: str) -> LimitRefusal | None:
        allowed = self._policy.limits.reboots_per_hour
        if not self._restarts_in(to) or self._restarts < allowed:
            return None
        text = f"held back: {self._restarts} restarts in the last hour, {allowed} may be"
        return LimitRefusal("reboots_per_hour", "fleet", text)

    def _restarts_in(self, state: str) -> int:
        return int(bool(RESTART_ACTIONS & set(self._policy.states[state].entry)))

    def _recent_restarts(self, story: NodeState) -> int:
        recent = (move for move in story.transitions if move.at > self._hour_ago)  # no order: clocks have been set back
        return sum(self._restarts_in(move.target) for move in recent if move.target in self._policy.states)


def count_allowed_out(size: int, percent: float) -> int:
    """Return how many nodes of a pool may be out: never less than one."""
    return max(1, int(size * percent / 100))


def is_in_service(policy: LifecyclePolicy, story: NodeState) -> bool:
    """Whether the node is in service."""
    return policy.states[story.state].in_service


def is_out_of_service(policy: LifecyclePolicy, story: NodeState) -> bool:
    """Whether automation has the node out of service, or cordoned while a decision waits.

    A node that never served in this round (it failed its burn-in) takes nothing from anybody.
    """
    if is_in_service(policy, story):
        return story.pending is not None and holds_out_of_service(policy, story.pending.rule)
    if not policy.states[story.state].counts_out:
        return False
    for move in reversed(story.transitions):
        origin = policy.states.get(move.origin)
        if origin is None or not origin.counts_out:
            return origin is not None and origin.in_service
    return False


def holds_out_of_service(policy: LifecyclePolicy, rule: str) -> bool:
    """Whether a pending decision of this rule (as written, `file:line name`) holds the node out of service.

    A cordon of the whole rack does not: nothing is wrong with such a node, and it keeps its jobs.
    """
    return not rule.rpartition(" ")[2].startswith(RACK_RULE_PREFIX) and bool(policy.actions_while_pending(rule))


def _rack(view: NodeSnapshot) -> tuple[str, str]:
    return (view.node.site, view.node.rack)
