"""Which parts get worse among their peers: the scores of two days out of three, against the fleet's own tail."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from assay.decide.trends.change_scores import ChangeScores, SeriesCount
from assay.decide.trends.day_comparison import LEAST_KEPT, SAMPLED_NODES
from assay.decide.trends.series import ChangeScore
from assay.decide.trends.warning_record import ForecastFactors

USUAL_THRESHOLD = 8.0
LEAST_THRESHOLD = LEAST_KEPT
MOST_THRESHOLD = 24.0
"""8: at most 0.08 false alarms per 1,000 nodes and day on six measurements of planted fleets. It holds while the
history is too short to tell."""
LEAST_WEEKS = 3
DAYS_SEEN = 4
"""Each past week is looked at on three days in a row: an alarm of two days is seen with 4 chances in 7."""


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


@dataclass(frozen=True, slots=True)
class ChangeWarning:
    """A part that gets worse. `forecast`: None where it reaches no limit."""

    score: ChangeScore
    forecast: Forecast | None
    group: str = ""

    @property
    def limit(self) -> float | None:
        """The limit in the direction in which it goes, None without one."""
        return self.score.limit

    @property
    def because(self) -> str:
        """Return the reason, in a sentence."""
        score, peers = self.score, self.score.peers - 1
        moved = f"{score.name} went from {_format(score.own)} to {_format(score.recent)} {score.unit}".rstrip()
        compared = f"{peers} peers moved by {_format(score.peers_change)}"
        return f"{moved} within two months, while {compared}{self._tell_days()}"

    def forecast_by(self, factors: ForecastFactors | None) -> ChangeWarning:
        """Return the warning with the range of days that these factors give."""
        if self.forecast is None or factors is None:
            return self
        low, middle, high = factors.apply(self.forecast.line)
        return replace(self, forecast=Forecast(middle, low, high, factors.middle))

    def _tell_days(self) -> str:
        if self.forecast is None:
            return ""
        if self.forecast.days is None:
            return f"; at this rate it reaches {_format(self.limit)} in {self.forecast.line:.0f} d"
        low, middle, high = self.forecast.days
        return f"; it reaches {_format(self.limit)} in {low:.0f} to {high:.0f} d ({middle:.0f})"


class ChangeFindings(NamedTuple):
    """The warnings, the worst first; how many series were judged, and how many nobody can; the threshold that held."""

    warnings: list[ChangeWarning]
    series: SeriesCount
    threshold: float
    is_learned: bool


def find_change_warnings(scores: ChangeScores, weeks: int) -> ChangeFindings:
    """Return what gets worse; so many past `weeks` say from which score on."""
    count = scores.count()
    threshold, is_learned = _learn_threshold(scores, weeks, count.nodes)
    warnings = [
        ChangeWarning(score, None if score.days_left is None else Forecast(score.days_left))
        for score in scores.find_above(threshold)
    ]
    return ChangeFindings(warnings, count, threshold, is_learned)


def _learn_threshold(scores: ChangeScores, weeks: int, nodes: int) -> tuple[float, bool]:
    """Return the score above which healthy parts of past weeks cost the budget, and whether history told it.

    A series that is above it in two weeks in a row counts twice: that errs to the side of fewer alarms.
    """
    if weeks < LEAST_WEEKS:
        return USUAL_THRESHOLD, False
    budget = scores.settings.alarms_per_1000_node_days
    allowed = int(budget * min(nodes, SAMPLED_NODES) / 1000 * DAYS_SEEN * weeks)
    worst = scores.list_past(allowed + 1, LEAST_THRESHOLD)
    learned = worst[allowed] if allowed < len(worst) else 0.0
    return min(max(learned, LEAST_THRESHOLD), MOST_THRESHOLD), True


def _format(number: float | None) -> str:
    return "none" if number is None else f"{number:.4g}"
