"""Time as something that is handed in, so that a rehearsal can compress it without touching the logic."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

MAX_CLOCK_SKEW = timedelta(minutes=5)
"""How far clocks that are kept right may be apart; what is dated further ahead was dated by a wrong one."""


class Clock(Protocol):
    """The fleet's time. Deadlines of real I/O use `time.monotonic`; everything that policy counts uses this."""

    def now(self) -> datetime:
        """Return the current time, in UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait until `seconds` of this clock have passed."""


class SystemClock:
    """The machine's own time."""

    def now(self) -> datetime:
        """Return the current time, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class ScaledClock:
    """`rate` seconds of this clock pass in one real second, counted from `origin` at the real time `anchor`."""

    def __init__(self, origin: datetime, anchor: float, rate: float) -> None:
        self.origin, self.anchor, self.rate = origin, anchor, rate

    def now(self) -> datetime:
        """Return the compressed time, in UTC."""
        return self.origin + timedelta(seconds=(time.time() - self.anchor) * self.rate)

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of compressed time."""
        time.sleep(seconds / self.rate)
