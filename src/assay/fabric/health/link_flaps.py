"""Link flaps: how often a link went down, how much of that a reboot explains, and how often within a time window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.fabric.health.counter_growth import DOWNED, PortGrowth

DOWNS_PER_BOOT = 2
"""A boot takes the link down twice: when the driver stops, and when the firmware hands over (mlx5_core)."""


@dataclass(frozen=True, slots=True)
class LinkDowns:
    """How often a link went down between two scans, and how much of that a reboot of its node explains."""

    count: int
    explained: int = 0
    at_least: bool = False

    @property
    def unexplained(self) -> int:
        """How often the link went down without a reboot."""
        return self.count - self.explained


def count_link_downs(port_growth: PortGrowth, boots: int = 0) -> LinkDowns:
    """Return how often a link went down. Each of the `boots` of its node in that time explains up to two."""
    downed = port_growth.find_growth(DOWNED)
    return LinkDowns(downed.count, min(downed.count, boots * DOWNS_PER_BOOT), downed.at_least)


def has_booted_between(start: datetime, end: datetime, seen_at: datetime, uptime_s: float) -> bool:
    """Return whether a node that was up for `uptime_s` at `seen_at` booted between `start` and `end`."""
    return start <= seen_at - timedelta(seconds=uptime_s) <= end


def count_most_in_window(moments: Iterable[datetime], window: timedelta) -> int:
    """Return the largest number of moments that any window of this length holds."""
    ordered = sorted(moments)
    most = first = 0
    for last, moment in enumerate(ordered):
        while moment - ordered[first] > window:
            first += 1
        most = max(most, last - first + 1)
    return most


def drop_bursts(
    moments: Sequence[datetime], *, more_than: int = 50, within: timedelta = timedelta(seconds=1)
) -> list[datetime]:
    """Return the moments outside of bursts. A burst is `more_than` moments within a time: one reboot, or one outage.

    Source of the defaults: imbue-ai/cluster-health, which drops more than 50 events in one second as a reboot.
    """
    ordered = sorted(moments)
    burst: set[int] = set()
    first = 0
    for last, moment in enumerate(ordered):
        while moment - ordered[first] > within:
            first += 1
        if last - first + 1 > more_than:
            burst.update(range(first, last + 1))
    return [moment for index, moment in enumerate(ordered) if index not in burst]
