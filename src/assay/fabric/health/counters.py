"""What a port's counters and registers mean: growth between two scans, bit error ratio, how often the link went down.

A counter stops at its maximum, and may be cleared. A bit error ratio counts after the error correction that the link's
speed class has. A reboot of the node explains some link downs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Literal

from assay.fabric.discovery import PortFacts
from assay.fabric.link_words import SPEEDS, parse_rate
from assay.model.facts import frozen

SYMBOL = "SymbolErrorCounter"
RECOVERY = "LinkErrorRecoveryCounter"
DOWNED = "LinkDownedCounter"
RECEIVED = "PortRcvErrors"
INTEGRITY = "LocalLinkIntegrityErrors"
OVERRUN = "ExcessiveBufferOverrunErrors"
DISCARDS = "PortXmitDiscards"
VL15 = "VL15Dropped"
UNCORRECTED, IN_DISCARDS, PAUSES_IN, PAUSES_OUT, MARKED = ETHERNET_COUNTERS = (
    "FecUncorrected",
    "InDiscards",
    "PausesIn",
    "PausesOut",
    "EcnMarked",
)
"""What only switches of Ethernet count: blocks that FEC could not correct, packets that were received and discarded,
pauses of any priority (PFC), packets that were marked (ECN). Such switches tell counters that are 0 too."""
SAI_COUNTERS = {
    RECEIVED: ("IF_IN_ERRORS",),
    DISCARDS: ("IF_OUT_DISCARDS",),
    UNCORRECTED: ("IF_IN_FEC_NOT_CORRECTABLE_FRAMES",),
    IN_DISCARDS: ("IF_IN_DISCARDS",),
    PAUSES_IN: tuple(f"PFC_{priority}_RX_PKTS" for priority in range(8)),
    PAUSES_OUT: tuple(f"PFC_{priority}_TX_PKTS" for priority in range(8)),
    MARKED: ("ECN_MARKED_PACKETS",),
}
"""SONiC's counters of a port, after `SAI_PORT_STAT_` (sai/saiport.h); several are added up."""
FEC_BINS = tuple(f"SAI_PORT_STAT_IF_IN_FEC_CODEWORD_ERRORS_S{symbols}" for symbols in range(16))
SONIC_LANES = {"rx_power_dbm": "rx{}power", "tx_power_dbm": "tx{}power", "bias_ma": "tx{}bias"}
CONSTRAINTS = ("PortXmitConstraintErrors", "PortRcvConstraintErrors")
"""They count packets that a port must not pass, such as those with a wrong P_Key (InfiniBand Architecture Spec.)."""

LINK_ERRORS = (RECEIVED, INTEGRITY, OVERRUN)
"""Errors of the link itself. A counter about another port (PortRcvRemotePhysicalErrors) is not among them."""

HOUR = 3600.0
"""Seconds."""
JudgedRatio = Literal["symbol", "effective"]
FIRST_BY_SYMBOL = SPEEDS.index("HDR")
"""From HDR on, forward error correction is always on, and the application meets symbol errors. EDR and slower links are
judged by their effective errors. Source: ibdiagnet user manual, Bit Error Rate."""
NO_ERRORS = 1e-250
"""A ratio of this or less means no error at all: 15E-255 is the smallest that the registers can hold."""
LARGEST_EXPONENT = 255
DOWNS_PER_BOOT = 2
"""A boot takes the link down twice: when the driver stops, and when the firmware hands over (mlx5_core)."""


@frozen
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


@frozen
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

    Tools such as ibqueryerrors leave out counters that are 0. A port that the earlier scan lacks starts from 0. On
    Ethernet, what a scan does not list is unknown, and has no growth.
    """
    earlier, later = (before.counters if before else {}), after.counters
    names = earlier.keys() | later.keys()
    if names & set(ETHERNET_COUNTERS):
        names = earlier.keys() & later.keys()
    counters = {
        name: measure_counter_growth(earlier.get(name, 0), later.get(name, 0), saturated=name in after.saturated)
        for name in names
    }
    return PortGrowth(seconds, counters)


@frozen
class BitErrorRate:
    """The ratio that a port is judged by. `kind` names its limit: `symbol_ber` or `effective_ber`."""

    kind: JudgedRatio
    ratio: float


def find_judged_ratio(rate: str) -> JudgedRatio | None:
    """Return which ratio a rate (`4xNDR`) is judged by, None for a text that is no rate."""
    parsed = parse_rate(rate)
    if parsed is None:
        return None
    return "symbol" if parsed.speed >= FIRST_BY_SYMBOL else "effective"


def find_bit_error_rate(facts: PortFacts, rate: str = "") -> BitErrorRate | None:
    """Return the ratio that a port is judged by, None if it was not read. `rate` is used if the port reports none."""
    kind = find_judged_ratio(facts.rate or rate)
    if kind is None or kind not in facts.ber:
        return None
    return BitErrorRate(kind, facts.ber[kind])


def decode_register(mantissa: int, exponent: int) -> float | None:
    """Return mantissa × 10^-exponent, 0 for a ratio that means no error.

    Return None where the two are no ratio, as in a register that was never written.
    """
    if not (mantissa or exponent) or exponent > LARGEST_EXPONENT:
        return None
    ratio = mantissa * 10.0**-exponent
    if ratio > 1:
        return None
    return 0.0 if ratio <= NO_ERRORS else ratio


def count_unexplained_downs(port_growth: PortGrowth, boots: int) -> int:
    """Return how often a link went down without a reboot. Each of the `boots` of its nodes explains up to two downs."""
    return max(0, port_growth.find_growth(DOWNED).count - boots * DOWNS_PER_BOOT)


def has_booted_between(start: datetime, end: datetime, seen_at: datetime, uptime_s: float) -> bool:
    """Return whether a node that was up for `uptime_s` at `seen_at` booted between `start` and `end`."""
    return start <= seen_at - timedelta(seconds=uptime_s) <= end
