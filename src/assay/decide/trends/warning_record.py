"""How a rule has fared, and how wrong its forecasts were, by its warnings that have ended. Pure.

The warnings that the ledger keeps, each with what came of it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import median, quantiles
from typing import Literal, NamedTuple

from assay.decide.trends.backtest import find_share_interval
from assay.decide.trends.warning_answers import PastRecord
from assay.model.entries.faults import TrendClosedEntry, TrendDemotedEntry, TrendWarnedEntry, WarningOutcome
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import parse_time

Outcome = Literal["right", "wrong", "cannot_tell"]
LEAST_CLOSED = 30
"""So many warnings with a forecast must have ended before a range of days is told."""
TEST_NODE_HOURS = 0.33
"""What acting on a warning costs: one test of an idle node."""


class ClosedWarning(NamedTuple):
    """A warning that has ended.

    `forecast_days`: to the limit, in a straight line; None without one. `actual_days`: to the crossing of the limit,
    or the failure; None where none came.
    """

    rule: str
    forecast_days: float | None
    actual_days: float | None
    outcome: Outcome


class FailuresSeen(NamedTuple):
    """Failures and crossings: how many had a sign in what is measured, how many of these were warned of, and of all."""

    with_sign: int = 0
    foreseen_with_sign: int = 0
    every: int = 0
    foreseen: int = 0


class ForecastFactors(NamedTuple):
    """Actual days by forecast days: one in ten is below `low`, one in ten above `high`."""

    low: float
    middle: float
    high: float

    def apply(self, days: float) -> tuple[float, float, float]:
        """Return the range of days that a straight line's days stand for."""
        return days * self.low, days * self.middle, days * self.high


def judge_record(closed: Iterable[ClosedWarning], failures: FailuresSeen | None = None) -> PastRecord:
    """Return how a rule has fared by its closed warnings. Each costs a test of an idle node."""
    some = list(closed)
    outcomes = [ended.outcome for ended in some]
    leads = tuple(ended.actual_days for ended in some if ended.outcome == "right" and ended.actual_days is not None)
    right, wrong = outcomes.count("right"), outcomes.count("wrong")
    seen, interval = failures or FailuresSeen(), find_share_interval(right, right + wrong)
    lead = find_usual_lead(leads)
    return PastRecord(
        right=right,
        wrong=wrong,
        cannot_tell=outcomes.count("cannot_tell"),
        precision=_divide(right, right + wrong),
        precision_interval=(round(interval[0], 3), round(interval[1], 3)) if interval else None,
        recall=_divide(seen.foreseen_with_sign, seen.with_sign),
        recall_of_all=_divide(seen.foreseen, seen.every),
        lead_days=(round(lead[0], 3), round(lead[1], 3)) if lead else None,
        cost_node_hours=round(len(some) * TEST_NODE_HOURS, 3),
    )


def find_usual_lead(leads: Sequence[float]) -> tuple[float, float] | None:
    """Return the median, and what nine in ten exceed; None of nothing."""
    if not leads:
        return None
    return median(leads), quantiles(leads, n=10, method="inclusive")[0] if leads[1:] else leads[0]


def learn_factors(closed: Iterable[ClosedWarning], warnings: int | None = None) -> ForecastFactors | None:
    """Return how wrong straight lines were, None below 30 closed warnings that had a forecast and came true.

    `warnings`: how many they are, where `closed` has several forecasts of one.
    """
    factors = [
        warning.actual_days / warning.forecast_days
        for warning in closed
        if warning.actual_days and warning.forecast_days
    ]
    if (len(factors) if warnings is None else warnings) < LEAST_CLOSED:
        return None
    tenths = quantiles(factors, n=10)
    low, middle, high = sorted((tenths[0], tenths[4], tenths[8]))  # of equal factors, rounding may change the order
    return ForecastFactors(low, middle, high)


def _divide(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


TREND_ENTRY_KINDS = (TrendWarnedEntry.kind, TrendClosedEntry.kind, TrendDemotedEntry.kind)
_OUTCOMES: dict[WarningOutcome, Outcome] = {
    "right": "right",
    "wrong": "wrong",
    "overtaken": "cannot_tell",
    "cannot tell": "cannot_tell",
}


@dataclass(frozen=True, slots=True)
class TrendWarning:
    """A warning of a node, when it came, and how it ended; `closed` is None while it is open."""

    node: str
    at: datetime
    content: TrendWarnedEntry
    closed: TrendClosedEntry | None = None
    closed_at: datetime | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What has one open warning at most: a part (by serial number, else by place), and a rule."""
        content = self.content
        return ("" if content.serial else f"{self.node}/{content.place}", content.serial, content.rule)


@dataclass(frozen=True, slots=True)
class WarningHistory:
    """All warnings, oldest first, and by rule and revision why a rule lost its stage."""

    warnings: tuple[TrendWarning, ...]
    demotions: dict[tuple[str, str], str]

    @property
    def open(self) -> list[TrendWarning]:
        """Return the warnings of which nobody knows yet what comes of them."""
        return [warning for warning in self.warnings if warning.closed is None]

    @property
    def ended(self) -> list[ClosedWarning]:
        """Return the forecasts of the warnings that have ended, and what came of them."""
        return [
            ClosedWarning(
                warning.content.rule,
                warning.content.rate_days,
                warning.closed.lead_days,
                _OUTCOMES[warning.closed.outcome],
            )
            for warning in self.warnings
            if warning.closed
        ]


def read_warning_history(entries: Iterable[LedgerEntry]) -> WarningHistory:
    """Return the warnings of the ledger's entries of `TREND_ENTRY_KINDS`; others say nothing."""
    warnings: dict[str, TrendWarning] = {}
    demotions: dict[tuple[str, str], str] = {}
    for entry in entries:
        match entry.kind:
            case TrendWarnedEntry.kind:
                warned = TrendWarnedEntry.read(entry)
                warnings.setdefault(warned.warning, TrendWarning(entry.node, parse_time(entry.at), warned))
            case TrendClosedEntry.kind:
                closed = TrendClosedEntry.read(entry)
                if (known := warnings.get(closed.warning)) and known.closed is None:
                    warnings[closed.warning] = replace(known, closed=closed, closed_at=parse_time(entry.at))
            case TrendDemotedEntry.kind:
                demoted = TrendDemotedEntry.read(entry)
                demotions[demoted.rule, demoted.revision] = demoted.reason
    return WarningHistory(tuple(warnings.values()), demotions)
