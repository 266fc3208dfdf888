"""A part that gets worse: what was measured of it, when it reaches its limit, and the reason in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from assay.decide.trends.days import RATE_DAYS
from assay.decide.trends.fleet_tables import SHARED_TRAITS
from assay.decide.trends.warning_record import ForecastFactors

Statistic = Literal["change", "creep", "level", "rate", "fortnight", "total"]
"""What told it: the first three are of gauges, the others of counters."""
OF_A_DAY = "/d"
"""Ends the unit of a growth."""


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
    def sku(self) -> str:
        """What kind of part it is of."""
        return self.traits[SHARED_TRAITS.index("sku")]

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
        """Days until the limit at the rate of the last two weeks; None without one, beyond it, or if it goes away."""
        if self.limit is None or self.earlier is None or self.is_beyond:
            return None
        rate = (self.recent - self.earlier) / RATE_DAYS
        return (self.limit - self.recent) / rate if rate and (self.limit - self.recent) / rate >= 0 else None


class Forecast(NamedTuple):
    """Days until the limit. `low` and `high` are None below 30 closed warnings: then `middle` is a straight line's.

    `factor`: of the middle to the straight line.
    """

    middle: float
    low: float | None = None
    high: float | None = None
    factor: float = 1.0

    @property
    def line(self) -> float:
        """Days until the limit in a straight line."""
        return self.middle / self.factor

    @property
    def days(self) -> tuple[float, float, float] | None:
        """The range with its middle, None without one."""
        return None if self.low is None or self.high is None else (self.low, self.middle, self.high)


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


@dataclass(frozen=True, slots=True)
class ChangeWarning:
    """A part that gets worse. `forecast`: None where it reaches no limit."""

    score: ChangeScore
    forecast: Forecast | None
    group: str = ""

    @property
    def because(self) -> str:
        """Return the reason, in a sentence."""
        score, peers = self.score, self.score.peers - 1
        own, recent = _format(score.own), f"{_format(score.recent)} {score.unit}".rstrip()
        if score.statistic in ("level", "total"):
            return f"{score.name} stands at {recent}, while {peers} peers stand at {own}{self._tell_days()}"
        time = "within most of a year" if score.statistic == "creep" else "within two months"
        compared = f"{peers} peers moved by {_format(score.peers_change)}"
        return f"{score.name} went from {own} to {recent} {time}, while {compared}{self._tell_days()}"

    def forecast_by(self, factors: ForecastFactors | None) -> ChangeWarning:
        """Return the warning with the range of days that these factors give."""
        if self.forecast is None or factors is None:
            return self
        low, middle, high = factors.apply(self.forecast.line)
        return replace(self, forecast=Forecast(middle, low, high, factors.middle))

    def _tell_days(self) -> str:
        if self.score.is_beyond:
            return f"; it is beyond its limit of {_format(self.score.limit)}"
        if self.forecast is None:
            return ""
        if self.forecast.days is None:
            return f"; at this rate it reaches {_format(self.score.limit)} in {self.forecast.line:.0f} d"
        low, middle, high = self.forecast.days
        return f"; it reaches {_format(self.score.limit)} in {low:.0f} to {high:.0f} d ({middle:.0f})"


def _format(number: float | None) -> str:
    return "none" if number is None else f"{number:.4g}"
