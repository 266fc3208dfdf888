"""What is due when: the only clock that a replay has."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

What = Literal["effect", "suites", "person", "look", "reset", "reminder"]


@dataclass(frozen=True, slots=True, order=True)
class Due:
    """One thing that is due: `what`, for which node (of a `reset`: for which pool), and what it is about."""

    at: datetime
    order: int
    what: What = field(compare=False)
    name: str = field(compare=False)
    about: Any = field(compare=False, default=None)


class Agenda:
    """Things due, the earliest first; of one moment in the order in which they were entered."""

    def __init__(self) -> None:
        self._heap: list[Due] = []
        self._count = self._reminders = 0

    def enter(self, at: datetime, what: What, name: str, about: Any = None) -> None:
        """Enter one thing."""
        self._count += 1
        self._reminders += what == "reminder"
        heapq.heappush(self._heap, Due(at, self._count, what, name, about))

    @property
    def next(self) -> datetime | None:
        """When the next thing is due."""
        return self._heap[0].at if self._heap else None

    @property
    def over(self) -> bool:
        """Whether nothing but reminders is left, which could go on for ever."""
        return len(self._heap) == self._reminders

    def take(self, now: datetime) -> list[Due]:
        """Take out what is due at that moment."""
        taken = []
        while self._heap and self._heap[0].at <= now:
            taken.append(heapq.heappop(self._heap))
            self._reminders -= taken[-1].what == "reminder"
        return taken
