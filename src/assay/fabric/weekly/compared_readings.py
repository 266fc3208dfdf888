"""The readings of a port that are compared with its peers and over time, and how far from usual is too far.

A week compares thousands of readings, so some are far from usual by chance alone. The budget is for the whole report:
at most about one healthy week in 20 names a port. Each kind of comparison has a part of it, shared by all comparisons
of that kind (Bonferroni): the more ports and groups a fabric has, the farther away a reading must be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log10
from typing import Literal

from assay.fabric.discovery import PortFacts
from assay.fabric.health.counters import find_bit_error_rate
from assay.fabric.weekly.week import DAYS, PortWeek
from assay.model.facts import frozen
from assay.model.peer_statistics import find_student_bound
from assay.model.specs.fabric.cable import PortId

MIN_BER = 1e-20
"""A smaller bit error ratio counts as this: a logarithm needs more than zero."""
OUTLIER_BUDGET = 0.025
"""The share of healthy weeks that may name an outlier."""
DRIFT_BUDGET = 0.02
"""The share of healthy weeks that may name a drift. Events that repeat have `chance` of the design."""
HOURS_A_WEEK = DAYS * 24
Drifts = Mapping[tuple[PortId, str], float]
"""How much each reading gets worse in a week, by port and key of the reading; those that do not are left out."""


@frozen
class ComparedReading:
    """A reading that a port's peers have too, and that may drift.

    - `key` names it in evidence.
    - `worse` is the direction in which it gets worse: 1 up, -1 down.
    - `limits` is how its limits in a design begin. A smaller distance from the peers than the one, or a smaller drift
      in a week than the other, is ignored.
    - `resolution`: the step in which tools print it. A smaller change is none.
    - `of` returns the reading from a port's facts and its designed rate, None if it was not read.
    """

    key: str
    name: str
    unit: str
    worse: Literal[1, -1]
    limits: str
    resolution: float
    of: Callable[[PortFacts, str], float | None]

    def find(self, port: PortWeek) -> float | None:
        """Return what a port's peers are compared by: the median of the week, of errors how many a day; None unread."""
        return port.errors_per_day if self is ERRORS else port.summary.median(self.key)

    @property
    def distance_limit(self) -> str:
        """The limit of the distance from the peers."""
        return f"{self.limits}_apart"

    @property
    def drift_limit(self) -> str:
        """The limit of the drift in a week."""
        return f"{self.limits}_drift"


def read_bit_error_exponent(facts: PortFacts, rate: str) -> float | None:
    """Return the power of ten of the bit error ratio that the link is judged by."""
    judged = find_bit_error_rate(facts, rate)
    return log10(max(judged.ratio, MIN_BER)) if judged else None


def find_highest_fec_bin(facts: PortFacts, _: str) -> float | None:
    """Return the highest bin of the FEC histogram in which any block was counted: how many wrong symbols a block had.

    The correction of 200 and 400 Gb/s lanes repairs 15; what comes close is about to lose packets.
    """
    used = [number for number, count in enumerate(facts.fec_bins) if count]
    return float(used[-1]) if used else None


READINGS = (
    ComparedReading(
        key="temperature",
        name="module temperature",
        unit="°C",
        worse=1,
        limits="module_temperature",
        resolution=1.0,
        of=lambda facts, _: facts.module_number("temperature_c"),
    ),
    ComparedReading(
        key="light",
        name="received light",
        unit="dBm",
        worse=-1,
        limits="rx_power",
        resolution=0.1,
        of=lambda facts, _: min(facts.module_lanes("rx_power_dbm"), default=None),  # the weakest lane
    ),
    ComparedReading(
        key="bias",
        name="laser current",
        unit="mA",
        worse=1,
        limits="bias",
        resolution=0.1,
        of=lambda facts, _: max(facts.module_lanes("bias_ma"), default=None),
    ),
    ComparedReading(
        key="ber_power",
        name="bit error ratio",
        unit="powers of ten",
        worse=1,
        limits="ber",
        resolution=0.1,
        of=read_bit_error_exponent,
    ),
    ComparedReading(
        key="fec_bin",
        name="highest FEC bin",
        unit="wrong symbols",
        worse=1,
        limits="fec_bin",
        resolution=1.0,
        of=find_highest_fec_bin,
    ),
)


ERRORS = ComparedReading("errors", "errors a day", "", 1, "errors", 1.0, lambda *_: None)
METRICS = (ERRORS, *READINGS)
"""What a port is compared with its peers by. Errors do not drift."""
READING_OF_KEY = {reading.key: reading for reading in READINGS}


def judge_drifts(ports: Sequence[PortWeek], hours: float) -> Drifts:
    """Return each reading that gets worse by more than scatter, and by more than one step, over a week of `hours`."""
    trends, rising = 0, []
    for port in ports:
        for key, trend in port.summary.trends.items():
            if trend.per_week is not None:
                trends += 1
                if (worse := trend.per_week * READING_OF_KEY[key].worse) > 0:
                    rising.append((port.end.port_id, key, trend, worse))
    chance = DRIFT_BUDGET / max(trends, 1)
    share = min(hours / HOURS_A_WEEK, 1.0)
    drifts: dict[tuple[PortId, str], float] = {}
    for port_id, key, trend, worse in rising:
        scatter = trend.noise * find_student_bound(max(trend.scans - 3, 1), chance)
        if worse * share > READING_OF_KEY[key].resolution and worse > scatter:
            drifts[port_id, key] = worse
    return drifts
