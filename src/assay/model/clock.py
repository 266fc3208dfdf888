"""Clocks: the machine's own, and a scaled one for rehearsals. Logic takes a Clock and never reads the time itself."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

MAX_CLOCK_SKEW = timedelta(minutes=5)
"""The largest difference between two synchronised clocks. A time further ahead comes from a wrong clock."""


class Clock(Protocol):
    """The fleet's time. Everything that a policy counts uses it; deadlines of I/O use `time.monotonic`."""

    def now(self) -> datetime:
        """Return the current time, in UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait until `seconds` of this clock have passed."""


class SystemClock:
    """The time of this machine."""

    def now(self) -> datetime:
        """Return the current time, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class ScaledClock:
    """A clock that runs `rate` times as fast as real time. At the Unix time `anchor` it showed `origin`."""

    def __init__(self, origin: datetime, anchor: float, rate: float) -> None:
        self.origin, self.anchor, self.rate = origin, anchor, rate

    def now(self) -> datetime:
        """Return the scaled time, in UTC."""
        return self.origin + timedelta(seconds=(time.time() - self.anchor) * self.rate)

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of scaled time."""
        time.sleep(seconds / self.rate)
