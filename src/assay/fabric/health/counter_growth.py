"""How much a port's counters grew between two scans, also where one reached its maximum or was cleared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.fabric.discovery import PortFacts

SYMBOL = "SymbolErrorCounter"
RECOVERY = "LinkErrorRecoveryCounter"
DOWNED = "LinkDownedCounter"
RECEIVED = "PortRcvErrors"
INTEGRITY = "LocalLinkIntegrityErrors"
OVERRUN = "ExcessiveBufferOverrunErrors"
DISCARDS = "PortXmitDiscards"
WAIT = "PortXmitWait"
VL15 = "VL15Dropped"
CONSTRAINTS = ("PortXmitConstraintErrors", "PortRcvConstraintErrors")
"""They count packets that a port must not pass, such as those with a wrong P_Key (InfiniBand Architecture Spec.)."""

LINK_ERRORS = (RECEIVED, INTEGRITY, OVERRUN)
"""Errors of the link itself. A counter about another port (PortRcvRemotePhysicalErrors) is not among them."""

HOUR = 3600.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class CounterGrowth:
    """How much one counter grew. `at_least`: it reached its maximum or was cleared, so it may have grown more."""

    count: int
    at_least: bool = False
    reset: bool = False

    @property
    def stuck(self) -> bool:
        """Whether the counter was at its maximum before, so that its growth since is unknown."""
        return self.at_least and not self.reset and not self.count

    def __str__(self) -> str:
        return f"{'at least ' if self.at_least else ''}{self.count}{' since it was cleared' if self.reset else ''}"


NO_GROWTH = CounterGrowth(0)


@dataclass(frozen=True, slots=True)
class PortGrowth:
    """How much each counter of a port grew in `seconds`. A counter that neither scan lists has not grown."""

    seconds: float
    counters: Mapping[str, CounterGrowth] = field(default_factory=dict)

    def find_growth(self, name: str) -> CounterGrowth:
        """Return the growth of a counter."""
        return self.counters.get(name, NO_GROWTH)

    def per_hour(self, name: str) -> float:
        """Return the growth of a counter per hour. Over less than an hour, return the whole growth.

        A few errors within minutes must not read as hundreds per hour.
        """
        return self.find_growth(name).count / max(self.seconds / HOUR, 1.0)


def measure_counter_growth(before: int, after: int, *, saturated: bool = False) -> CounterGrowth:
    """Return how much a counter grew. If `after` is less than `before`, it was cleared in between.

    `saturated`: `after` is the maximum, where the counter stops.
    """
    if after < before:
        return CounterGrowth(after, at_least=True, reset=True)
    return CounterGrowth(after - before, at_least=saturated)


def measure_port_growth(before: PortFacts | None, after: PortFacts, seconds: float) -> PortGrowth:
    """Return how much a port's counters grew between two scans. A counter that a scan does not list was 0 there.

    Tools such as ibqueryerrors leave out counters that are 0. A port that the earlier scan lacks starts from 0.
    """
    earlier, later = (before.counters if before else {}), after.counters
    counters = {
        name: measure_counter_growth(earlier.get(name, 0), later.get(name, 0), saturated=name in after.saturated)
        for name in earlier.keys() | later.keys()
    }
    return PortGrowth(seconds, counters)
