"""What a port counted between two scans: counters that stopped at their end, and counters that were cleared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.fabric.port_facts import PortFacts

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
class Growth:
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


NONE = Growth(0)


@dataclass(frozen=True, slots=True)
class Grown:
    """What one port counted in `seconds`, by counter. A counter that neither scan named has not grown."""

    seconds: float
    counters: Mapping[str, Growth] = field(default_factory=dict)

    def of(self, name: str) -> Growth:
        """Return the growth of a counter."""
        return self.counters.get(name, NONE)

    def per_hour(self, name: str) -> float:
        """Return the growth of a counter in an hour; the whole growth where less than that went by.

        A few errors within minutes of each other are no rate: they must not read as hundreds an hour.
        """
        return self.of(name).count / max(self.seconds / HOUR, 1.0)


def growth(before: int, after: int, *, saturated: bool = False) -> Growth:
    """Return how much a counter grew from `before` to `after`; less than before means that it was cleared.

    `saturated` says that `after` is where it stops counting.
    """
    if after < before:
        return Growth(after, at_least=True, reset=True)
    return Growth(after - before, at_least=saturated)


def grown(before: PortFacts | None, after: PortFacts, seconds: float) -> Grown:
    """Return what a port counted between two scans. Error counters that a scan does not name were 0 there.

    The tools leave out a counter that is 0 (ibqueryerrors). A port that the earlier scan did not know counts from 0.
    """
    earlier = before.counters if before else {}
    names = earlier.keys() | after.counters.keys()
    return Grown(
        seconds,
        {
            name: growth(earlier.get(name, 0), after.counters.get(name, 0), saturated=name in after.saturated)
            for name in names
        },
    )
