"""The queue of events by time. It is the only clock of a replay."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

EventType = Literal["effect", "suites", "person", "look", "reset", "reminder"]


@dataclass(frozen=True, slots=True, order=True)
class ScheduledEvent:
    """One due event: `what`, for which node (for a `reset`: which pool), and what it concerns."""

    at: datetime
    order: int
    kind: EventType = field(compare=False)
    name: str = field(compare=False)
    payload: Any = field(compare=False, default=None)


class EventQueue:
    """Due events, the earliest first; events of one moment in the order in which they were added."""

    def __init__(self) -> None:
        self._heap: list[ScheduledEvent] = []
        self._count = self._reminders = 0

    def add(self, at: datetime, what: EventType, name: str, about: Any = None) -> None:
        """Add one event."""
        self._count += 1
        self._reminders += what == "reminder"
        heapq.heappush(self._heap, ScheduledEvent(at, self._count, what, name, about))

    @property
    def next_at(self) -> datetime | None:
        """The time of the next event."""
        return self._heap[0].at if self._heap else None

    @property
    def only_reminders_left(self) -> bool:
        """Whether only reminders are left, which could go on for ever."""
        return len(self._heap) == self._reminders

    def take(self, now: datetime) -> list[ScheduledEvent]:
        """Remove and return the events that are due at that moment."""
        taken = []
        while self._heap and self._heap[0].at <= now:
            taken.append(heapq.heappop(self._heap))
            self._reminders -= taken[-1].kind == "reminder"
        return taken
