"""Counts sightings of a fault, and finds faults that follow from another one.

A burst of sightings counts as one. Only sightings within the class's window count towards its threshold. A secondary
fault is the consequence of a primary one: XID 45 after the XID 48 that caused it, or the XIDs of other GPUs after a
reset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from assay.model.faults.fault_record import SEVERITIES
from assay.model.specs.fault_catalog import FaultCatalog, FaultClass


class FaultCounter:
    """The count of one fault. Times are seconds on one clock. Holds at most as many times as the class's `count`.

    `count` is the number of sightings; those within `burst` seconds of the first one count as one. `recent` are the
    last ones that count towards the threshold, none older than the window.
    """

    __slots__ = ("_burst", "_burst_start", "_needed", "_window", "count", "recent")

    def __init__(self, needed: int, window: float, burst: float, recent: Iterable[float] = (), count: int = 0) -> None:
        self._needed, self._window, self._burst = needed, window, burst
        self.recent: deque[float] = deque(recent, maxlen=needed)
        self.count = count
        self._burst_start: float | None = self.recent[-1] if self.recent else None

    @classmethod
    def for_class(cls, rule: FaultClass | None, recent: Iterable[float] = (), count: int = 0) -> FaultCounter:
        """Return the counter of a class. If no catalogue has the class (None), every sighting counts."""
        if rule is None:
            return cls(1, 3600, 5, recent, count)
        return cls(rule.count, rule.window_minutes * 60, rule.burst_seconds, recent, count)

    def add(self, at: float | None, counts: bool = True, times: int = 1, lines: int = 1) -> None:
        """Add a sighting; with `counts` False, it does not count towards the threshold.

        A sighting without a time is a burst of its own, within the window of all others. `times`: so many errors are
        in its line, each of which counts. It stands for so many `lines` of one second.
        """
        times = times * lines if times > 1 or not self._burst else 1
        if at is None:
            self.count += times
            self.recent.extend([0.0] * min(times, self._needed) if counts else [])
            return
        starts_burst = self._burst_start is None or not self._burst or at - self._burst_start > self._burst
        further = times - 1
        if starts_burst:
            self._burst_start = at
        self.count += further + starts_burst
        if counts and (starts_burst or further or not self.recent or at - self.recent[-1] > self._burst):
            self.recent.extend([at] * min(times if starts_burst else max(further, 1), self._needed))
            while self.recent[-1] - self.recent[0] > self._window:
                self.recent.popleft()

    def copy(self) -> FaultCounter:
        """Return one that counts for itself."""
        other = FaultCounter(self._needed, self._window, self._burst, self.recent, self.count)
        other._burst_start = self._burst_start
        return other

    @property
    def is_threshold_reached(self) -> bool:
        """Whether the fault was seen often enough."""
        return len(self.recent) >= self._needed


class PrimaryFault(NamedTuple):
    """The fault from which a secondary one follows: its class, and its part."""

    name: str
    part: str


class FaultCorrelator:
    """When primary faults were last seen: one time for each class and part. Secondary faults cause no others.

    Times are seconds on one clock; record sightings in their order.
    """

    def __init__(self, catalog: FaultCatalog) -> None:
        self._catalog = catalog
        self._last: dict[str, dict[str, float]] = {}

    def is_relevant(self, name: str) -> bool:
        """Whether faults of class `name` can be primary or secondary."""
        fault = self._catalog.find_class(name)
        return name in self._catalog.primary_faults or (fault is not None and fault.follows is not None)

    def record(self, name: str, part: str, at: float) -> None:
        """Record a sighting."""
        if name in self._catalog.primary_faults:
            parts = self._last.setdefault(name, {})
            parts[part] = max(at, parts.get(part, at))

    def last_seen(self, name: str, part: str) -> float | None:
        """Return when a primary fault was seen last, None if it was not."""
        return self._last.get(name, {}).get(part)

    def forget(self, name: str, part: str) -> None:
        """Forget a sighting that turned out to follow from another fault."""
        self._last.get(name, {}).pop(part, None)

    def find_primary(self, name: str, part: str, at: float, within: float = float("inf")) -> PrimaryFault | None:
        """Return the latest earlier fault from which this one follows, None if there is none in the last seconds.

        One of the same class is that of a part, where this line names none and tells of the whole node.
        """
        fault = self._catalog.find_class(name)
        follows = fault.follows if fault else None
        if follows is None or not self._last:
            return None
        latest, primary = at - min(follows.within_seconds, within), None
        for other in follows.classes:
            for place, seen_at in self._last.get(other, {}).items():
                is_summary = other != name or (part == "" != place)
                if latest <= seen_at <= at and is_summary and (follows.where == "node" or part in (place, "")):
                    latest, primary = seen_at, PrimaryFault(other, place)
        return primary


def may_follow(catalog: FaultCatalog, name: str, part: str, primary: PrimaryFault) -> bool:
    """Whether a fault follows from a primary one whose line comes after it, in the same event.

    A part that is not named may be any. A primary fault that is less severe, such as the reset of a GPU, is an answer
    to what stands before it.
    """
    fault = catalog.find_class(name)
    follows = fault.follows if fault else None
    if follows is None or primary.name not in follows.classes or (primary.name == name and part):
        return False
    if follows.where != "node" and part not in (primary.part, ""):
        return False
    ranks = [SEVERITIES.index(catalog.find_treatment(fault_name).severity) for fault_name in (primary.name, name)]
    return ranks[0] <= ranks[1]
