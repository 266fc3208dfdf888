"""Finds counters that stood at their maximum over a week: nothing that happened since shows in them."""

from __future__ import annotations

from collections import Counter, defaultdict

from assay.fabric.health import counter_growth
from assay.fabric.health.counter_growth import PortGrowth

ERRORS = (counter_growth.SYMBOL, counter_growth.RECOVERY, *counter_growth.LINK_ERRORS)
JUDGED_COUNTERS = (counter_growth.DOWNED, *ERRORS)
"""What a week is judged by. Another counter at its maximum, such as PortXmitDiscards, hides nothing of it."""


class StuckCounters:
    """In how many scans each counter of each port stood at its maximum. Ports are numbered; scans come newest first."""

    def __init__(self) -> None:
        self._scans: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self._newest: dict[int, str] = {}

    def add(self, port: int, growth: PortGrowth, *, is_newest: bool) -> None:
        """Add the growth of a port with a counter at its maximum."""
        for name in JUDGED_COUNTERS:
            if growth.find_growth(name).stuck:
                self._scans[port][name] += 1
                if is_newest:
                    self._newest.setdefault(port, name)

    def find(self, port: int, scans: int) -> tuple[str, int]:
        """Return the counter that does not count, and in how many of all `scans` it did not; "" and 0 for none.

        It is one that stands at its maximum now, or did in half of the scans.
        """
        own = self._scans.get(port)
        if not own:
            return "", 0
        longest, most = own.most_common(1)[0]
        name = self._newest.get(port) or (longest if 2 * most >= scans else "")
        return name, own[name]
