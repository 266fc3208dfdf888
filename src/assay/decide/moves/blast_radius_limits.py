"""Limits the blast radius: how many nodes of a pool or rack automation may have out, and how many restarts per hour."""

from __future__ import annotations

from collections import Counter

from assay.decide.moves.corrections import find_open_correction
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.model.decision import HELD_RULE, PERSON_RULE, RESTART_ACTIONS, find_rule_name
from assay.model.facts import frozen
from assay.model.specs.lifecycle_policy import RACK_RULE_PREFIX, LifecyclePolicy
from assay.model.specs.policy_sections import count_allowed_out
from assay.model.timestamps import format_time, hours


@frozen
class LimitRefusal:
    """A limit that is reached: its name in the policy, what it counts (pool, site/rack or fleet), and a text."""

    limit: str
    where: str
    text: str


class LimitCapacity:
    """The capacity that the limits leave. Each decision takes from it, so that one pass cannot exceed a limit.

    A pool is as large as the nodes that serve and those that automation took out. What people took out counts only
    against further orders, and only until it has arrived there. A node that is only cordoned while its answer is held
    back takes no room from orders.
    """

    def __init__(self, snapshot: FleetSnapshot) -> None:
        self._snapshot, self._policy = snapshot, snapshot.policy
        self._rack_sizes = Counter(view.node.rack_place for view in snapshot.nodes)
        out = [view for view in snapshot.nodes if is_out_of_service(self._policy, view.node_state)]
        self._pool_out = Counter(view.node.pool for view in out)
        self._rack_out = Counter(view.node.rack_place for view in out)
        serving = [view for view in snapshot.nodes if self._serves(view)]
        self._pool_sizes = Counter(view.node.pool for view in serving) + self._pool_out
        for (pool, *rack), count in snapshot.quiet_counts.items():
            self._pool_sizes[pool] += count
            self._rack_sizes[(rack[0], rack[1])] += count
        held = [view for view in out if is_only_held(view.node_state)]
        self._pool_held = Counter(view.node.pool for view in held)
        self._rack_held = Counter(view.node.rack_place for view in held)
        ordered = [view for view in snapshot.nodes if is_ordered_out(self._policy, view.node_state)]
        self._pool_ordered = Counter(view.node.pool for view in ordered)
        self._rack_ordered = Counter(view.node.rack_place for view in ordered)
        self._hour_ago = format_time(snapshot.now - hours(1))
        # All transitions are read: where a clock was set back, they are not in order.
        moves = (move for view in snapshot.nodes for move in view.node_state.transitions)
        recent = [move.target for move in moves if move.at > self._hour_ago and move.target in self._policy.states]
        self._restarts = sum(map(self._count_restarts, recent))

    def has_room_to_hold(self, view: NodeSnapshot) -> bool:
        """Whether half of what may be out has room for a node, so that the other half is left for answers."""
        pool = view.node.pool
        rack = view.node.rack_place
        limits = self._policy.limits
        of_pool = count_allowed_out(self._pool_sizes[pool], limits.pool_percent) // 2
        return self._pool_out[pool] < of_pool and self._rack_out[rack] < limits.rack_concurrent // 2

    def find_refusal(self, view: NodeSnapshot, to: str, *, is_order: bool = False) -> LimitRefusal | None:
        """Return the limit that forbids to send the node to state `to`, or to keep it out while it waits; else None.

        `is_order`: a person asks for it.
        """
        leaves = self._leaves_service(view, is_order)
        full = leaves and (self._find_full_pool(view, is_order) or self._find_full_rack(view, is_order))
        return full or self._find_restart_limit(to)

    def reserve(self, view: NodeSnapshot, to: str, *, is_order: bool = False, is_only_held: bool = False) -> None:
        """Count the node as sent to state `to`, or as cordoned where it is while its answer is held back."""
        if self._leaves_service(view, is_order):
            pool, rack = view.node.pool, view.node.rack_place
            (self._pool_ordered if is_order else self._pool_out)[pool] += 1
            (self._rack_ordered if is_order else self._rack_out)[rack] += 1
            self._pool_held[pool] += is_only_held
            self._rack_held[rack] += is_only_held
        self._restarts += self._count_restarts(to)

    def _leaves_service(self, view: NodeSnapshot, is_order: bool) -> bool:
        """Whether the move counts: the node serves, and no order for it, if this is one, counts already."""
        return self._serves(view) and not (is_order and is_ordered_out(self._policy, view.node_state))

    def _serves(self, view: NodeSnapshot) -> bool:
        return is_in_service(self._policy, view.node_state) and not is_out_of_service(self._policy, view.node_state)

    def _find_full_pool(self, view: NodeSnapshot, is_order: bool) -> LimitRefusal | None:
        pool = view.node.pool
        size = self._pool_sizes[pool]
        out = self._pool_out[pool] + is_order * (self._pool_ordered[pool] - self._pool_held[pool])
        allowed = count_allowed_out(size, self._policy.limits.pool_percent)
        if out < allowed:
            return None
        text = f"held back: {out} of {size} already out of pool {pool}, {allowed} may be"
        return LimitRefusal("pool_percent", pool, text)

    def _find_full_rack(self, view: NodeSnapshot, is_order: bool) -> LimitRefusal | None:
        rack, allowed = view.node.rack_place, self._policy.limits.rack_concurrent
        out = self._rack_out[rack] + is_order * (self._rack_ordered[rack] - self._rack_held[rack])
        if out < allowed:
            return None
        text = f"held back: {out} of {self._rack_sizes[rack]} already out in rack {view.node.rack}, {allowed} may be"
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


def is_in_service(policy: LifecyclePolicy, node_state: NodeState) -> bool:
    """Whether the node is in a state that serves customers."""
    return policy.states[node_state.state].in_service


def is_out_of_service(policy: LifecyclePolicy, node_state: NodeState) -> bool:
    """Whether automation took the node out of service, or cordoned it for a pending decision or a correction.

    It counts wherever it is now, until it serves again, is a spare, is retired, or a person moves it. A node that
    failed its burn-in does not count: it has not served since it was last brought up.
    """
    if is_in_service(policy, node_state):
        if node_state.pending is None:
            correction = find_open_correction(node_state)
            return correction is not None and correction.needs_idle
        return holds_out_of_service(policy, node_state.pending.rule)
    if policy.states[node_state.state].final or policy.states[node_state.state].spare:
        return False
    for move in reversed(node_state.transitions):
        origin = policy.states.get(move.origin)
        if move.is_order or (origin and (origin.in_service or origin.spare)):
            return not move.is_order and origin is not None and origin.in_service
    return False


def is_ordered_out(policy: LifecyclePolicy, node_state: NodeState) -> bool:
    """Whether a person ordered the node out of service, and it is not drained yet, or not where the person wants it."""
    if is_in_service(policy, node_state):
        pending = node_state.pending
        return pending is not None and is_order(pending.rule) and bool(policy.waiting.by_hand)
    is_on_its_way = node_state.move_request is not None or policy.states[node_state.state].until_idle
    return is_on_its_way and any(move.is_order for move in node_state.transitions[-1:])


def is_only_held(node_state: NodeState) -> bool:
    """Whether a node is cordoned only because the breaker or a limit holds back its answer."""
    return node_state.pending is not None and node_state.pending.rule_name == HELD_RULE


def is_order(rule: str) -> bool:
    """Whether a rule (`file:line name`) stands for a person's order."""
    return find_rule_name(rule) == PERSON_RULE


def holds_out_of_service(policy: LifecyclePolicy, rule: str) -> bool:
    """Whether a pending decision of this rule (`file:line name`) holds the node out of service for automation.

    The cordon of a whole rack does not: such a node is healthy and keeps its jobs. An order counts as an order.
    """
    if is_order(rule) or find_rule_name(rule).startswith(RACK_RULE_PREFIX):
        return False
    return bool(policy.actions_while_pending(rule))
