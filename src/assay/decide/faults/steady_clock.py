"""A clock that goes on where a log's own clock jumps: with each boot, or when somebody sets the time."""

from __future__ import annotations

from assay.model.faults.counting_and_correlation import EVENT_SECONDS
from assay.model.log_message import LogMessage

REORDERED_S = 10.0  # processors may write a little out of order; a larger jump back is a boot, or the clock was set
UNKNOWN_GAP_S = 61.0
"""What passes for the time between two lines where the clock was set: longer than any burst, and than what follows."""
LINE_S = EVENT_SECONDS / 10
"""What passes for the time between two faults of a log without times: ten of them may be one event."""
CLOCK_UNSET = 946_684_800.0
"""A time before 2000 is that of a machine that does not know the time yet."""


class SteadyClock:
    """Gives the lines of one host times that never go back. Seconds; only differences have a meaning.

    The time since the boot counts before the wall clock, which people and NTP set.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._uptime: float | None = None
        self._wall: float | None = None
        self._untimed = self._later = self._earlier = 0

    def read(self, message: LogMessage) -> float | None:
        """Return the time of a line, after those that were read before it; None if it has no time."""
        if message.at is None:
            return None
        wall = message.wall
        uptime = message.at if wall is None else message.uptime_s
        if uptime is not None and self._uptime is not None:
            elapsed = uptime if uptime < self._uptime - REORDERED_S else uptime - self._uptime
        elif wall is not None and self._wall is not None:
            elapsed = _measure(self._wall, wall)
            self._later += wall > self._wall
            self._earlier += wall < self._wall
        else:
            elapsed = message.at if self._uptime is self._wall is None else UNKNOWN_GAP_S
        self._uptime = uptime if uptime is not None else self._uptime
        self._wall = wall if wall is not None else self._wall
        self._now += max(elapsed, 0.0)
        return self._now

    @property
    def runs_back(self) -> bool:
        """Whether each line is older than the one before it, by the wall clock alone: the newest stands first."""
        return self._earlier > 0 and self._later == 0

    def count_line(self) -> float | None:
        """Return a time for a line of a log without times: its number. None where a line before it had a time."""
        if self._uptime is not None or self._wall is not None:
            return None
        self._untimed += 1
        return self._untimed * LINE_S


def _measure(before: float, now: float) -> float:
    """Return the seconds between two times of a wall clock, `UNKNOWN_GAP_S` where it was set in between."""
    was_set = now < before - REORDERED_S or (before < CLOCK_UNSET <= now)
    return UNKNOWN_GAP_S if was_set else now - before
