"""A part that gets worse: what was measured of it, when it reaches its limit, and the reason in a sentence."""

from __future__ import annotations

from typing import Literal, NamedTuple

from assay.decide.trends.days import RATE_DAYS
from assay.decide.trends.warning_record import ForecastFactors
from assay.model.facts import frozen

Statistic = Literal["change", "creep", "level", "rate", "fortnight", "total"]
"""What told it: the first three are of gauges, the others of counters."""
OF_A_DAY = "/d"
"""Ends the unit of a growth."""
LOST_READINGS = "readings"
"""The measurement that says which share of its usual measurements a part gave."""
MOST_DAYS = 365
"""A straight line says nothing of a limit that is farther away."""


class ChangeScore(NamedTuple):
    """A measurement of a part today. `z`: in deviations of its peers, up is positive.

    `own`: what was usual for it, or for its peers where its level tells. `evidence`: of how many healthy parts one
    looks so, as its decimal logarithm; `part_evidence`: with the part's other measurements. `peers`: with itself.
    `traits`: what it may share with others, see `SHARED_TRAITS`.
    """

    node: str
    subject: str
    name: str
    unit: str
    serial: str
    traits: tuple[str, ...]
    own: float
    earlier: float | None
    recent: float
    peers_change: float
    peers: int
    at_least: float | None
    at_most: float | None
    z: float
    evidence: float
    part_evidence: float
    statistic: Statistic = "change"

    @property
    def limit(self) -> float | None:
        """The limit in the direction in which it goes, None without one."""
        return self.at_most if self.z > 0 else self.at_least

    @property
    def is_beyond(self) -> bool:
        """Whether it is beyond its limit already."""
        beyond = self.at_most is not None and self.recent > self.at_most
        return beyond or (self.at_least is not None and self.recent < self.at_least)

    @property
    def days_left(self) -> float | None:
        """Days until the limit at the rate of the last two weeks; None without one, beyond it, or if it is far away."""
        if self.limit is None or self.earlier is None or self.is_beyond:
            return None
        rate = (self.recent - self.earlier) / RATE_DAYS
        days = (self.limit - self.recent) / rate if rate else MOST_DAYS + 1
        return days if 0 <= days <= MOST_DAYS else None


class SeriesCount(NamedTuple):
    """How many series were judged, or are of no use: with few peers, silent, or new; how many parts and nodes."""

    judged: int = 0
    few_peers: int = 0
    silent: int = 0
    new: int = 0
    parts: int = 0
    nodes: int = 0

    @property
    def cannot_tell(self) -> int:
        """Of how many series nobody can tell."""
        return self.few_peers + self.silent + self.new


@frozen
class ChangeWarning:
    """A part that gets worse. `factors`: None below 30 closed warnings, so only a straight line tells its days."""

    score: ChangeScore
    factors: ForecastFactors | None = None
    group: str = ""

    @property
    def days(self) -> tuple[float, float, float] | None:
        """The range of days until the limit with its middle, None without one."""
        line = self.score.days_left
        return None if line is None or self.factors is None else self.factors.apply(line)

    @property
    def because(self) -> str:
        """Return the reason, in a sentence."""
        score, peers = self.score, self.score.peers - 1
        own, recent = _format(score.own), f"{_format(score.recent)} {score.unit.removeprefix('count')}".rstrip()
        if score.name == LOST_READINGS:
            others = f"{peers} peers give {score.own + score.peers_change:.0%}"
            return f"it gives {score.recent:.0%} of its usual measurements, before it gave {score.own:.0%}; {others}"
        if score.statistic in ("level", "total"):
            return f"{score.name} stands at {recent}, while {peers} peers stand at {own}{self._tell_days()}"
        time = "within most of a year" if score.statistic == "creep" else "within two months"
        compared = f"{peers} peers moved by {_format(score.peers_change)}"
        return f"{score.name} went from {own} to {recent} {time}, while {compared}{self._tell_days()}"

    def _tell_days(self) -> str:
        if self.score.is_beyond:
            return f"; it is beyond its limit of {_format(self.score.limit)}"
        if self.score.days_left is None:
            return ""
        if self.days is None:
            return f"; at this rate it reaches {_format(self.score.limit)} in {self.score.days_left:.0f} d"
        low, middle, high = self.days
        return f"; it reaches {_format(self.score.limit)} in {low:.0f} to {high:.0f} d ({middle:.0f})"


def _format(number: float | None) -> str:
    return "none" if number is None else f"{number:.4g}"
