"""The blast radius: how much of a pool and a rack may be out through automation, how many restarts in an hour."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Story
from assay.lifecycle.when import hours, written
from assay.model.action import RESTARTS
from assay.model.policy import OF_RACK, LifecyclePolicy


@dataclass(frozen=True, slots=True)
class Refusal:
    """A limit that is reached. `limit` is its name in the policy, `where` what it counts, `text` says it."""

    limit: str
    where: str
    text: str


class Room:
    """What the limits still leave. Deciding takes from it, so that one pass cannot overspend."""

    def __init__(self, situation: Situation) -> None:
        self._situation, self._policy = situation, situation.policy
        self._size = Counter(view.node.pool for view in situation.nodes)
        self._in_rack = Counter(_rack(view) for view in situation.nodes)
        out = [view for view in situation.nodes if is_out(self._policy, view.story)]
        self._out = Counter(view.node.pool for view in out)
        self._rack_out = Counter(_rack(view) for view in out)
        self._hour_ago = written(situation.now - hours(1))
        self._restarts = sum(self._recent_restarts(view.story) for view in situation.nodes)

    def refusal(self, view: NodeView, to: str) -> Refusal | None:
        """Return the limit that forbids sending the node `to` a state (or holding it out while it waits), if any."""
        full = self._leaves(view) and (self._pool_is_full(view) or self._rack_is_full(view))
        return full or self._too_many_restarts(to)

    def take(self, view: NodeView, to: str) -> None:
        """Count the node as sent `to` a state."""
        if self._leaves(view):
            self._out[view.node.pool] += 1
            self._rack_out[_rack(view)] += 1
        self._restarts += self._restarts_in(to)

    def _leaves(self, view: NodeView) -> bool:
        return serves(self._policy, view.story) and not is_out(self._policy, view.story)

    def _pool_is_full(self, view: NodeView) -> Refusal | None:
        pool, percent = view.node.pool, self._policy.limits.pool_percent
        size = self._size[pool] + sum(count for (name, *_), count in self._situation.quiet.items() if name == pool)
        allowed = allowance(size, percent)
        if self._out[pool] < allowed:
            return None
        text = f"held back: {self._out[pool]} of {size} already out of pool {pool}, {allowed} may be"
        return Refusal("pool_percent", pool, text)

    def _rack_is_full(self, view: NodeView) -> Refusal | None:
        rack, allowed = _rack(view), self._policy.limits.rack_concurrent
        if self._rack_out[rack] < allowed:
            return None
        quiet = sum(count for (_, *place), count in self._situation.quiet.items() if tuple(place) == rack)
        out = f"{self._rack_out[rack]} of {self._in_rack[rack] + quiet}"
        text = f"held back: {out} already out in rack {view.node.rack}, {allowed} may be"
        return Refusal("rack_concurrent", "/".join(rack), text)

    def _too_many_restarts(self, to: str) -> Refusal | None:
        allowed = self._policy.limits.reboots_per_hour
        if not self._restarts_in(to) or self._restarts < allowed:
            return None
        text = f"held back: {self._restarts} restarts in the last hour, {allowed} may be"
        return Refusal("reboots_per_hour", "fleet", text)

    def _restarts_in(self, state: str) -> int:
        return int(bool(RESTARTS & set(self._policy.states[state].entry)))

    def _recent_restarts(self, story: Story) -> int:
        recent = (move for move in story.moves if move.at > self._hour_ago)  # no order: clocks have been set back
        return sum(self._restarts_in(move.target) for move in recent if move.target in self._policy.states)


def allowance(size: int, percent: float) -> int:
    """Return how many nodes of a pool may be out: never less than one."""
    return max(1, int(size * percent / 100))


def serves(policy: LifecyclePolicy, story: Story) -> bool:
    """Whether the node is in service."""
    return policy.states[story.state].in_service


def is_out(policy: LifecyclePolicy, story: Story) -> bool:
    """Whether automation has the node out of service, or cordoned while a decision waits.

    A node that never served in this round (it failed its burn-in) takes nothing from anybody.
    """
    if serves(policy, story):
        return story.pending is not None and takes_out(policy, story.pending.rule)
    if not policy.states[story.state].counts_out:
        return False
    for move in reversed(story.moves):
        origin = policy.states.get(move.origin)
        if origin is None or not origin.counts_out:
            return origin is not None and origin.in_service
    return False


def takes_out(policy: LifecyclePolicy, rule: str) -> bool:
    """Whether a pending decision of this rule (as written, `file:line name`) holds the node out of service.

    A cordon of the whole rack does not: nothing is wrong with such a node, and it keeps its jobs.
    """
    return not rule.rpartition(" ")[2].startswith(OF_RACK) and bool(policy.meanwhile(rule))


def _rack(view: NodeView) -> tuple[str, str]:
    return (view.node.site, view.node.rack)
