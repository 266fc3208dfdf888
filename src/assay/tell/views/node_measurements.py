"""What checks measured, against the limit: on a node, beside its peers; in the fleet, what is nearest to its limit.

A direction is which way a value went in the last days. It is no forecast.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from threading import Lock
from typing import Literal

from assay.ledger.history.parquet_files import history_folder
from assay.ledger.history.queries import OutcomeHistory
from assay.ledger.history.strain_queries import StrainedMeasurement, StrainedPart, query_course, query_strain
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import Measurement, RecordedOutcome

MAX_PEERS = 24
SeriesKey = tuple[str, str]
"""A check and the name of what it measures."""


@dataclass(frozen=True, slots=True)
class PeerValues:
    """What the peers of a node measured last: lowest, median, highest, and how many values there are."""

    low: float
    middle: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class LimitedSeries:
    """A measurement of the part that is nearest to its limit, of so many `parts`: points of time and value.

    Times are ISO 8601 UTC, oldest first. `source` is the file and line of the limit, "" if it has none.
    """

    check: str
    name: str
    subject: str
    parts: int
    points: tuple[tuple[str, float], ...]
    unit: str
    at_least: float | None
    at_most: float | None
    source: str
    peers: PeerValues | None

    @property
    def is_beyond_limit(self) -> bool:
        """Whether the newest value breaks the limit."""
        value = self.points[-1][1]
        low, high = self.at_least, self.at_most
        return (low is not None and value < low) or (high is not None and value > high)


def list_peers(fleet: Fleet, node: Node) -> list[str]:
    """Return the nodes of the same spec that stand next to this one in the inventory, without it."""
    alike = [other.name for other in fleet.nodes.values() if other.spec == node.spec]
    at = alike.index(node.name)
    first = max(0, min(at - MAX_PEERS // 2, len(alike) - MAX_PEERS - 1))
    return [name for name in alike[first : first + MAX_PEERS + 1] if name != node.name]


def list_series(outcomes: Iterable[RecordedOutcome], of_peers: Iterable[RecordedOutcome]) -> list[LimitedSeries]:
    """Return the series of a node, the ones nearest to their limits first. `outcomes` are in the order of writing."""
    parts_by_key: dict[SeriesKey, dict[str, list[tuple[str, Measurement]]]] = defaultdict(lambda: defaultdict(list))
    for recorded in outcomes:
        for measurement in recorded.outcome.measurements:
            series = parts_by_key[recorded.outcome.check, measurement.name][recorded.outcome.subject]
            series.append((recorded.measured_at, measurement))
    peers = _collect_peers(of_peers)
    made = [_make_series(key, parts, peers.get(key)) for key, parts in parts_by_key.items()]

    def rank(series: LimitedSeries) -> tuple[float, str]:
        return -_find_strain(series.points[-1][1], series.at_least, series.at_most), series.name

    return sorted(made, key=rank)


def _make_series(
    key: SeriesKey, parts: dict[str, list[tuple[str, Measurement]]], peers: Sequence[float] | None
) -> LimitedSeries:
    def strain(subject: str) -> float:
        newest = parts[subject][-1][1]
        return _find_strain(newest.value, newest.at_least, newest.at_most)

    worst = max(parts, key=strain)
    newest = parts[worst][-1][1]
    return LimitedSeries(
        *key,
        subject=worst,
        parts=len(parts),
        points=tuple((at, measurement.value) for at, measurement in parts[worst]),
        unit=newest.unit,
        at_least=newest.at_least,
        at_most=newest.at_most,
        source=newest.source,
        peers=PeerValues(min(peers), median(peers), max(peers), len(peers)) if peers else None,
    )


def _find_strain(value: float, at_least: float | None, at_most: float | None) -> float:
    """Return how near a value is to its limit: 1 at the limit, more beyond it; 0 without a limit."""
    shares = [value / at_most] if at_most else []
    shares += [at_least / value if value else float("inf")] if at_least else []
    return max(shares, default=0.0)


def _collect_peers(outcomes: Iterable[RecordedOutcome]) -> dict[SeriesKey, list[float]]:
    values: dict[SeriesKey, list[float]] = defaultdict(list)
    for recorded in outcomes:
        for measurement in recorded.outcome.measurements:
            values[recorded.outcome.check, measurement.name].append(measurement.value)
    return values


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
