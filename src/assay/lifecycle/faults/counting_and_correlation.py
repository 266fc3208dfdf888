"""How often a fault was seen: bursts count as one, and only what lies within the window counts to the threshold.

Which faults are only the echo of another: a XID 45 after the XID 48 that caused it, peers' XIDs after a reset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from assay.model.specs.fault_catalog import FaultCatalog, FaultClass


class FaultCounter:
    """One fault's count. Times are seconds on one clock. Memory: as many times as the class's `count` asks for.

    `count`: sightings, those within `burst` seconds of the first of them being one. `recent`: the last of them that
    count towards the threshold, none older than the window.
    """

    __slots__ = ("_burst", "_from", "_needed", "_window", "count", "recent")

    def __init__(self, needed: int, window: float, burst: float, recent: Iterable[float] = (), count: int = 0) -> None:
        self._needed, self._window, self._burst = needed, window, burst
        self.recent: deque[float] = deque(recent, maxlen=needed)
        self.count = count
        self._from: float | None = self.recent[-1] if self.recent else None

    @classmethod
    def for_class(cls, rule: FaultClass | None, recent: Iterable[float] = (), count: int = 0) -> FaultCounter:
        """Return the counting of a class; None is one that no catalogue knows: each time counts."""
        if rule is None:
            return cls(1, 3600, 5, recent, count)
        return cls(rule.count, rule.window_minutes * 60, rule.burst_seconds, recent, count)

    def add(self, at: float | None, counts: bool = True) -> None:
        """Take in a sighting; one that does not count towards the threshold is only noted.

        Without a time each sighting is one of its own, within the window of all others.
        """
        if at is None:
            self.count += 1
            self.recent.extend([0.0] if counts else [])
            return
        fresh = self._from is None or at - self._from > self._burst
        if fresh:
            self._from = at
            self.count += 1
        if counts and (fresh or not self.recent or at - self.recent[-1] > self._burst):
            self.recent.append(at)
            while self.recent[-1] - self.recent[0] > self._window:
                self.recent.popleft()

    @property
    def is_threshold_reached(self) -> bool:
        """Whether it was seen often enough."""
        return len(self.recent) >= self._needed


class PrimaryFault(NamedTuple):
    """The fault that an echo belongs to: its class and the part on which it was."""

    name: str
    part: str


class FaultCorrelator:
    """When faults that have echoes were last seen. Memory: one time for each such class and part.

    Times are seconds on any one clock; sightings are to come in their order. An echo is nobody's cause.
    """

    def __init__(self, catalog: FaultCatalog) -> None:
        self._catalog = catalog
        self._last: dict[str, dict[str, float]] = {}

    def is_relevant(self, name: str) -> bool:
        """Whether a fault of that name may have echoes, or be one."""
        fault = self._catalog.find_class(name)
        return name in self._catalog.primary_faults or (fault is not None and fault.follows is not None)

    def record(self, name: str, part: str, at: float) -> None:
        """Remember a fault that was seen."""
        if name in self._catalog.primary_faults:
            parts = self._last.setdefault(name, {})
            parts[part] = max(at, parts.get(part, at))

    def find_primary(self, name: str, part: str, at: float) -> PrimaryFault | None:
        """Return what a fault is the echo of: the latest before it, None where it stands for itself."""
        fault = self._catalog.find_class(name)
        follows = fault.follows if fault else None
        if follows is None or not self._last:
            return None
        earliest, found = at - follows.within_seconds, None
        for other in follows.classes:
            for place, when in self._last.get(other, {}).items():
                if earliest <= when <= at and (follows.where == "node" or place == part):
                    earliest, found = when, PrimaryFault(other, place)
        return found
