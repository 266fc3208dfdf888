"""What a port counted between two scans: counters that stopped at their end, and counters that were cleared."""

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
"""What is dropped here was forbidden, such as a P_Key that does not fit (InfiniBand Architecture Specification)."""

LINK_ERRORS = (RECEIVED, INTEGRITY, OVERRUN)
"""Errors of the link itself. What only tells of another port (PortRcvRemotePhysicalErrors) is not among them."""

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class CounterGrowth:
    """How much one counter grew. `at_least`: it stopped at its end, or was cleared, so the truth may be more."""

    count: int
    at_least: bool = False
    reset: bool = False

    @property
    def stuck(self) -> bool:
        """Whether the counter stood at its end before: then nothing can be told of what came since."""
        return self.at_least and not self.reset and not self.count

    def __str__(self) -> str:
        return f"{'at least ' if self.at_least else ''}{self.count}{' since it was cleared' if self.reset else ''}"


NO_GROWTH = CounterGrowth(0)


@dataclass(frozen=True, slots=True)
class PortGrowth:
    """What one port counted in `seconds`, by counter. A counter that neither scan named has not grown."""

    seconds: float
    counters: Mapping[str, CounterGrowth] = field(default_factory=dict)

    def find_growth(self, name: str) -> CounterGrowth:
        """Return the growth of a counter."""
        return self.counters.get(name, NO_GROWTH)

    def per_hour(self, name: str) -> float:
        """Return the growth of a counter in an hour; the whole growth where less than that went by.

        A few errors within minutes of each other are no rate: they must not read as hundreds an hour.
        """
        return self.find_growth(name).count / max(self.seconds / HOUR, 1.0)


def measure_counter_growth(before: int, after: int, *, saturated: bool = False) -> CounterGrowth:
    """Return how much a counter grew from `before` to `after`; less than before means that it was cleared.

    `saturated` says that `after` is where it stops counting.
    """
    if after < before:
        return CounterGrowth(after, at_least=True, reset=True)
    return CounterGrowth(after - before, at_least=saturated)


def measure_port_growth(before: PortFacts | None, after: PortFacts, seconds: float) -> PortGrowth:
    """Return what a port counted between two scans. Error counters that a scan does not name were 0 there.

    The tools leave out a counter that is 0 (ibqueryerrors). A port that the earlier scan did not know counts from 0.
    """
    earlier = before.counters if before else {}
    names = earlier.keys() | after.counters.keys()
    return PortGrowth(
        seconds,
        {
            name: measure_counter_growth(
                earlier.get(name, 0), after.counters.get(name, 0), saturated=name in after.saturated
            )
            for name in names
        },
    )
