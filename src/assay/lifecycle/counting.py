"""How often a fault was seen: bursts count as one, and only what lies within the window counts to the threshold."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from assay.model.faults import FaultClass


class Counting:
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
    def of(cls, rule: FaultClass | None, recent: Iterable[float] = (), count: int = 0) -> Counting:
        """Return the counting of a class; None is one that no catalogue knows: each time counts."""
        if rule is None:
            return cls(1, 3600, 5, recent, count)
        return cls(rule.count, rule.window_minutes * 60, rule.burst_seconds, recent, count)

    def see(self, at: float | None, counts: bool = True) -> None:
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
    def reached(self) -> bool:
        """Whether it was seen often enough."""
        return len(self.recent) >= self._needed
