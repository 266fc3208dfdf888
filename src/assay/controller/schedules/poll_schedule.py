"""When each node is looked at next: once an interval, the nodes of a large fleet spread over it, and at once on news.

Pure. Times are seconds of the fleet's clock since 1970.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping

from assay.controller.schedules.due_slots import list_schedules
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecycleState

MIN_SLICE_NODES = 256
"""As many nodes as are looked at together without being spread."""
MAX_SLICES = 10
"""Rounds in an interval, at most."""


class PollSchedule:
    """Whose turn it is. A node that was never looked at is due at once."""

    def __init__(self, every_s: Mapping[str, float], looked: Mapping[str, float], now: float) -> None:
        self._every: dict[str, float] = {}
        self._next: dict[str, float] = {}
        self.replace_nodes(every_s, looked, now)

    def replace_nodes(self, every_s: Mapping[str, float], looked: Mapping[str, float], now: float) -> None:
        """Look after these nodes from now on, each as often; `looked` is when each was looked at last."""
        known, self._every = self._next, dict(every_s)
        self._next = {}
        for name, every in every_s.items():
            last = looked.get(name, 0.0)
            overdue = not 0 <= now - last < every
            self._next[name] = known.get(name, now if overdue else self._next_time(name, last))
        self.slices = max(1, min(MAX_SLICES, len(every_s) // MIN_SLICE_NODES))

    @property
    def gap_s(self) -> float:
        """How long to leave between two rounds, so that a round is worth its start."""
        return min(self._every.values(), default=60.0) / self.slices

    def due(self, now: float) -> list[str]:
        """Return whose turn it is. A clock that was put back makes nobody wait for longer than an interval."""
        for name, at in self._next.items():
            if at > now + self._every[name]:
                self._next[name] = self._next_time(name, now)
        return [name for name, at in self._next.items() if at <= now]

    def mark_observed(self, names: Collection[str], now: float) -> None:
        """Note that a look at these nodes begins."""
        for name in names:
            if name in self._every:
                self._next[name] = self._next_time(name, now)

    def mark_due(self, names: Collection[str]) -> None:
        """Let it be the turn of these nodes."""
        self._next |= {name: 0.0 for name in names if name in self._every}

    def limit_interval(self, name: str, every_s: float, now: float) -> None:
        """Let the node's next turn come in `every_s` at the latest."""
        if name in self._next:
            self._next[name] = min(self._next[name], now + every_s)

    def _next_time(self, name: str, after: float) -> float:
        """Return the node's next turn: at a time of its own in every interval, where nodes are spread."""
        every = self._every[name]
        if len(self._every) < 2 * MIN_SLICE_NODES:
            return after + every
        own = zlib.crc32(name.encode()) / 2**32 * every
        return after + every - (after - own) % every


def read_poll_intervals(
    fleet: Fleet, names: Collection[str], instead_s: float | None, default_s: float
) -> dict[str, float]:
    """Return how often each node is looked at, in seconds: as its pool's schedule says, or `instead_s` for all."""
    told = {
        pool: schedule.every_minutes * 60.0
        for _, schedule, _ in list_schedules(fleet.schedules)
        if schedule.does == "observe" and schedule.every_minutes
        for pool in schedule.pools or {node.pool for node in fleet.nodes.values()}
    }
    return {name: instead_s or told.get(fleet.nodes[name].pool, default_s) for name in names}


def find_max_evidence_age_s(state: LifecycleState) -> float | None:
    """Return how old the evidence for what a state requires may become before it is looked at again, in seconds."""
    hours = [want.fresh_hours for want in state.requires]
    return min(hours) * 3600 / 2 if hours else None


def find_unscheduled_fabrics(fleet: Fleet, nodes: Collection[Node]) -> set[str]:
    """Return the fabrics of these nodes that no schedule has scanned."""
    scanned = [one for _, one, _ in list_schedules(fleet.schedules) if one.does == "fabric-scan"]
    left = [node for node in nodes if not any(not one.pools or node.pool in one.pools for one in scanned)]
    return {fabric for node in left if (fabric := node.settings.fabric)}
