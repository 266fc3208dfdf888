"""What was measured nearest to its limits in the whole fleet, and which way it went in the last days. No forecast."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Literal

from assay.ledger.history.parquet_files import history_folder
from assay.ledger.history.queries import OutcomeHistory
from assay.ledger.history.strain_queries import StrainedMeasurement, StrainedPart, query_course, query_strain
from assay.tell.views.node_measurements import LimitedSeries, PeerValues

DAYS = 3
SHOWN = 60
KEPT_FOR, KEPT = timedelta(minutes=5), 32
STEADY_SHARE = 0.02
"""A change by less than this share of the value counts as none: readings vary by so much."""
Direction = Literal["nearer", "away", "steady", "unknown"]


@dataclass(frozen=True, slots=True)
class FleetTrend:
    """A measurement of a pool: its most strained part with its course, the other near ones, and where it goes."""

    pool: str
    series: LimitedSeries
    node: str
    strain: float
    others: tuple[StrainedPart, ...]
    direction: Direction
    change: float


@dataclass(frozen=True, slots=True)
class TrendTable:
    """The most strained measurements, of so many in all, as of a time. `unread` names the damaged files left out."""

    at: datetime
    trends: tuple[FleetTrend, ...]
    total: int
    unread: tuple[str, ...] = ()


class FleetTrends:
    """Answers from the history of outcomes. An answer is kept for some minutes. Safe for threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, str], TrendTable] = OrderedDict()

    def read(self, reports: Path, now: datetime, pool: str = "", check: str = "") -> TrendTable:
        """Return the table of a pool and of checks (a glob); "" is all. Raises AssayError for an unreadable history."""
        with self._lock:
            kept = self._kept.get((pool, check))
            if kept is None or not timedelta(0) <= now - kept.at < KEPT_FOR:
                kept = build_trend_table(reports, now, pool, check)
                self._kept[pool, check] = kept
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            return kept


def build_trend_table(reports: Path, now: datetime, pool: str, check: str) -> TrendTable:
    """Return the table, read from the history in `reports`."""
    unread: list[str] = []
    with OutcomeHistory(history_folder(reports), now, lambda error: unread.append(str(error))) as history:
        shown, total = query_strain(history, pool, check, most=SHOWN)
        course = query_course(history, [_name(measurement) for measurement in shown], days=DAYS)
    trends = tuple(_make_trend(measurement, tuple(course[_name(measurement)])) for measurement in shown)
    return TrendTable(now, trends, total, tuple(unread))


def _name(measurement: StrainedMeasurement) -> tuple[str, str, str]:
    return measurement.check, measurement.name, measurement.nearest[0].subject


def _make_trend(measurement: StrainedMeasurement, points: tuple[tuple[str, float], ...]) -> FleetTrend:
    worst, *others = measurement.nearest
    series = LimitedSeries(
        measurement.check,
        measurement.name,
        worst.subject,
        measurement.parts,
        points or ((worst.at, worst.value),),
        measurement.unit,
        worst.at_least,
        worst.at_most,
        worst.source,
        PeerValues(measurement.low, measurement.middle, measurement.high, measurement.parts)
        if measurement.parts > 1
        else None,
    )
    direction, change = find_direction(series)
    return FleetTrend(measurement.pool, series, worst.node, worst.strain, tuple(others), direction, change)


def find_direction(series: LimitedSeries) -> tuple[Direction, float]:
    """Return which way a series went since its first point, against its limit, and by how much."""
    first, last = series.points[0][1], series.points[-1][1]
    change = last - first
    if len(series.points) < 2:
        return "unknown", 0.0
    if abs(change) <= STEADY_SHARE * max(abs(first), abs(last)):
        return "steady", change
    return ("nearer" if _find_room(series, last) < _find_room(series, first) else "away"), change


def _find_room(series: LimitedSeries, value: float) -> float:
    """Return how far a value is from its nearer limit; below 0 it is beyond."""
    rooms = [series.at_most - value] if series.at_most is not None else []
    rooms += [value - series.at_least] if series.at_least is not None else []
    return min(rooms)
