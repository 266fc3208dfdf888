"""Which parts get worse among their peers: the scores of two days out of three, against the fleet's own tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from assay.trends.peers.change_scores import ChangeScore, ChangeScores, SeriesCount
from assay.trends.peers.series_changes import OWN_FROM, SAMPLED_NODES

USUAL_THRESHOLD, LEAST_THRESHOLD, MOST_THRESHOLD = 8.0, 6.0, 24.0
"""8: at most 0.08 false alarms per 1,000 nodes and day on six measurements of planted fleets. It holds while the
history is too short to tell."""
BUDGET = 0.1
"""Alarms per 1,000 nodes and day that a rule may cost, over all measurements."""
LOOK_BACK_WEEKS = 8
LEAST_WEEKS = 3
DAYS_SEEN = 4
"""Each past week is looked at on three days in a row: an alarm of two days is seen with 4 chances in 7."""


class Forecast(NamedTuple):
    """Days until the limit at this rate. `low` and `high` are None below 30 closed warnings."""

    middle: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ChangeWarning:
    """A part that gets worse. `before` and `now`: its own median then and lately. `limit`: None for none."""

    score: ChangeScore
    limit: float | None
    forecast: Forecast | None
    group: str = ""

    @property
    def because(self) -> str:
        """Return the reason, in a sentence."""
        one, peers = self.score, self.score.peers - 1
        moved = f"{one.name} went from {_format(one.own)} to {_format(one.recent)} {one.unit}".rstrip()
        compared = f"{peers} peers moved by {_format(one.peers_change)}"
        rate = (
            f"; at this rate it reaches {_format(self.limit)} in {self.forecast.middle:.0f} d" if self.forecast else ""
        )
        return f"{moved} within two months, while {compared}{rate}"

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data, as the edge has it."""
        days = (
            self.forecast
            and self.forecast.low is not None
            and [self.forecast.low, *self.forecast[:1], self.forecast.high]
        )
        one = self.score
        return {
            "node": one.node,
            "subject": one.subject,
            "name": one.name,
            "unit": one.unit,
            "serial": one.serial,
            "from": one.own,
            "to": one.recent,
            "peers": one.peers - 1,
            "peers_change": one.peers_change,
            "score": round(one.worse, 2),
            "limit": self.limit,
            "days": days or None,
            "group": self.group,
            "because": self.because,
        }


class ChangeFindings(NamedTuple):
    """The warnings, the worst first; how many series were judged, and how many nobody can; the threshold that held."""

    warnings: list[ChangeWarning]
    series: SeriesCount
    threshold: float
    is_learned: bool


def list_weeks(today: int, first_day: int) -> list[int]:
    """Return the same day of the weeks before, as far as the values reach."""
    past = (today - 7 * week for week in range(1, LOOK_BACK_WEEKS + 1))
    return [day for day in past if day - first_day >= OWN_FROM]


def find_change_warnings(scores: ChangeScores, weeks: int) -> ChangeFindings:
    """Return what gets worse; so many past `weeks` say from which score on."""
    count = scores.count()
    threshold, is_learned = _learn_threshold(scores, weeks, count.nodes)
    return ChangeFindings([_warn(one) for one in scores.find_above(threshold)], count, threshold, is_learned)


def _warn(one: ChangeScore) -> ChangeWarning:
    limit = one.at_most if one.z > 0 else one.at_least
    return ChangeWarning(one, limit, _forecast(one, limit))


def _forecast(one: ChangeScore, limit: float | None) -> Forecast | None:
    """Return when the limit comes at the present rate; None where there is no limit, or it goes away from it."""
    if limit is None or one.rate == 0 or (limit - one.recent) / one.rate < 0:
        return None
    return Forecast((limit - one.recent) / one.rate)


def _learn_threshold(scores: ChangeScores, weeks: int, nodes: int) -> tuple[float, bool]:
    """Return the score above which healthy parts of past weeks cost the budget, and whether history told it.

    A series that is above it in two weeks in a row counts twice: that errs to the side of fewer alarms.
    """
    if weeks < LEAST_WEEKS:
        return USUAL_THRESHOLD, False
    allowed = int(BUDGET * min(nodes, SAMPLED_NODES) / 1000 * DAYS_SEEN * weeks)
    worst = scores.list_past(allowed + 1, LEAST_THRESHOLD)
    learned = worst[allowed] if allowed < len(worst) else 0.0
    return min(max(learned, LEAST_THRESHOLD), MOST_THRESHOLD), True


def _format(number: float | None) -> str:
    return "none" if number is None else f"{number:.4g}"
