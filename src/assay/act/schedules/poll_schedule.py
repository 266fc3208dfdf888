"""When each node is polled next: once an interval, spread over it in a large fleet, and at once on news.

Pure. Times are seconds of the fleet's clock since 1970.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping

from assay.act.schedules.due_slots import list_schedules
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.policy_sections import LifecycleState

MIN_SLICE_NODES = 256
"""So many nodes are polled together. Only larger fleets are spread over the interval."""
MAX_SLICES = 10
"""The most rounds in an interval."""
MAX_GAP_S = 60.0
"""Nodes with news wait no longer for a round, however long the interval is: a rollout waits for their readings."""


class PollSchedule:
    """When each node is due. A node that was never polled is due at once."""

    def __init__(self, intervals_s: Mapping[str, float], polled_at: Mapping[str, float], now: float) -> None:
        self._intervals: dict[str, float] = {}
        self._next: dict[str, float] = {}
        self.replace_nodes(intervals_s, polled_at, now)

    def replace_nodes(self, intervals_s: Mapping[str, float], polled_at: Mapping[str, float], now: float) -> None:
        """Poll these nodes from now on, each at its interval; `polled_at` is when each was polled last."""
        known, self._intervals = self._next, dict(intervals_s)
        self._next = {}
        for name, interval in intervals_s.items():
            last = polled_at.get(name, 0.0)
            is_overdue = not 0 <= now - last < interval
            self._next[name] = known.get(name, now if is_overdue else self._next_time(name, last))
        self.slices = max(1, min(MAX_SLICES, len(intervals_s) // MIN_SLICE_NODES))

    @property
    def gap_s(self) -> float:
        """The seconds between two rounds, so that a round is worth its start."""
        return min(min(self._intervals.values(), default=MAX_GAP_S) / self.slices, MAX_GAP_S)

    def due(self, now: float) -> list[str]:
        """Return the nodes that are due. After a clock went back, no node waits longer than its interval."""
        for name, at in self._next.items():
            if at > now + self._intervals[name]:
                self._next[name] = self._next_time(name, now)
        return [name for name, at in self._next.items() if at <= now]

    def mark_observed(self, names: Collection[str], now: float) -> None:
        """Note that a poll of these nodes begins."""
        for name in names:
            if name in self._intervals:
                self._next[name] = self._next_time(name, now)

    def mark_due(self, names: Collection[str]) -> None:
        """Make these nodes due."""
        self._next |= {name: 0.0 for name in names if name in self._intervals}

    def limit_interval(self, name: str, interval_s: float, now: float) -> None:
        """Poll the node again after `interval_s` at the latest."""
        if name in self._next:
            self._next[name] = min(self._next[name], now + interval_s)

    def _next_time(self, name: str, after: float) -> float:
        """Return the node's next time after `after`: in a large fleet, its own moment in every interval."""
        interval = self._intervals[name]
        if len(self._intervals) < 2 * MIN_SLICE_NODES:
            return after + interval
        own = zlib.crc32(name.encode()) / 2**32 * interval
        return after + interval - (after - own) % interval


def read_poll_intervals(
    fleet: Fleet, names: Collection[str], override_s: float | None, default_s: float
) -> dict[str, float]:
    """Return the poll interval of each node in seconds: `override_s`, else its pool's schedule, else `default_s`."""
    scheduled = {
        pool: schedule.every_minutes * 60.0
        for _, schedule, _ in list_schedules(fleet.schedules)
        if schedule.does == "observe" and schedule.every_minutes
        for pool in schedule.pools or {node.pool for node in fleet.nodes.values()}
    }
    return {name: override_s or scheduled.get(fleet.nodes[name].pool, default_s) for name in names}


def find_max_evidence_age_s(state: LifecycleState) -> float | None:
    """Return the age in seconds at which evidence for a state's requirements is renewed, None where none expires."""
    hours = [requirement.fresh_hours for requirement in state.requires]
    return min(hours) * 3600 / 2 if hours else None


def find_unscheduled_fabrics(fleet: Fleet, nodes: Collection[Node]) -> set[str]:
    """Return the fabrics of these nodes that no schedule scans."""
    scans = [schedule for _, schedule, _ in list_schedules(fleet.schedules) if schedule.does == "fabric-scan"]
    left = [node for node in nodes if not any(not scan.pools or node.pool in scan.pools for scan in scans)]
    return {fabric for node in left if (fabric := node.settings.fabric)}
