"""The page of all measurements over like nodes, as SVG: histograms and the medians of the runs, each with the limit.

What the report takes from the history stands here too: distributions, parts unlike their peers, rates of pools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from assay.ledger.history.parquet_files import history_folder
from assay.ledger.history.queries import OutcomeHistory, PoolDayRate, query_pool_rates
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.page import draw_polyline, render_page
from assay.model.reading import format_value
from assay.tell.report.allure import NO_ALLURE, AllureLinks
from assay.tell.report.failure_cards import shorten_check
from assay.validate.results.distribution import (
    PeerDistribution,
    PeerOutlier,
    count_values,
    format_change,
    list_node_kinds,
    query_distributions,
)

HISTOGRAM_SIZE, COURSE_SIZE = (440.0, 52.0), (220.0, 40.0)
MIN_BAR = 2.0


@dataclass(frozen=True, slots=True)
class HistogramBar:
    """One bar: its place and size, and its tooltip."""

    x: float
    y: float
    width: float
    height: float
    description: str


@dataclass(frozen=True, slots=True)
class DrawnDistribution:
    """A distribution with its pictures. `limit_x`, `limit_y`: where the limit is drawn, "" for none.

    `low` and `high` are the ends of the axis of the histogram. `change` is what a change of spec did, "" for none.
    """

    distribution: PeerDistribution
    bars: tuple[HistogramBar, ...]
    limit_x: str
    low: str
    high: str
    course: str
    limit_y: str
    change: str


def render_distributions(
    distributions: Iterable[PeerDistribution], links: AllureLinks = NO_ALLURE, *, in_lab: bool = False
) -> str:
    """Return the HTML, by check. The section of a check has its id as its anchor."""
    by_check = groupby(sorted(distributions, key=attrgetter("check")), attrgetter("check"))
    return render_page(
        __package__,
        "distributions.html.j2",
        in_lab=in_lab,
        checks=[(check, [draw_distribution(each) for each in of_check]) for check, of_check in by_check],
        sizes=(HISTOGRAM_SIZE, COURSE_SIZE),
        shorten=shorten_check,
        link=links,
    )


def draw_distribution(distribution: PeerDistribution) -> DrawnDistribution:
    """Return the pictures. Both axes reach to the limit, so that they show how far it is."""
    points = [point.value for point in distribution.course]
    bounds = [bound for bound in (distribution.limit.at_least, distribution.limit.at_most) if bound is not None]
    across = _span([distribution.levels[0], distribution.levels[-1], *bounds])
    up = _span([*points, *bounds])
    runs = (0.0, max(len(points) - 1.0, 1.0))
    bound = bounds[0] if bounds else None
    return DrawnDistribution(
        distribution=distribution,
        bars=tuple(_draw_bars(distribution, across)),
        limit_x="" if bound is None else f"{(bound - across[0]) / (across[1] - across[0]) * HISTOGRAM_SIZE[0]:.1f}",
        low=_format(across[0]),
        high=_format(across[1]),
        course=draw_polyline(enumerate(points), COURSE_SIZE, runs, up) if len(points) > 1 else "",
        limit_y="" if bound is None else f"{COURSE_SIZE[1] * (1 - (bound - up[0]) / (up[1] - up[0])):.1f}",
        change=format_change(distribution.change, distribution.unit) if distribution.change else "",
    )


def _draw_bars(distribution: PeerDistribution, across: tuple[float, float]) -> list[HistogramBar]:
    first, last = distribution.levels[0], distribution.levels[-1]
    scale, step = HISTOGRAM_SIZE[0] / (across[1] - across[0]), (last - first) / len(distribution.bars)
    most, bars = max(distribution.bars), []
    for number, count in enumerate(distribution.bars):
        if count:
            low = first + step * number
            height = max(count / most * HISTOGRAM_SIZE[1], MIN_BAR)
            ends = f"{_format(low)} to {_format(low + step)}" if step else _format(first)
            text = f"{count:,} of {distribution.parts:,} from {ends}"
            x, width = (low - across[0]) * scale, max(step * scale - 0.5, MIN_BAR)
            bars.append(HistogramBar(x, HISTOGRAM_SIZE[1] - height, width, height, text))
    return bars


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Return the lowest and the highest value, never the same."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _format(value: float) -> str:
    return format_value(round(value, 3))


DISTRIBUTION_DAYS, TREND_DAYS = (30, 7, 2), 30
MAX_VALUES = 4_000_000
"""Of the days, the most are read that have no more values: so many take five CPU seconds and half a gigabyte."""


class CheckOutlier(NamedTuple):
    """A part that is unlike its peers in a measurement of a check."""

    check: str
    kind: str
    outlier: PeerOutlier


class PastOfFleet(NamedTuple):
    """What the history says: the distributions of all measurements, and how the pools fared on each day."""

    distributions: Sequence[PeerDistribution] = ()
    rates: Sequence[PoolDayRate] = ()


def read_past(fleet: Fleet, reports: Path, now: float, unread: list[str]) -> PastOfFleet:
    """Return what the history says at the time `now` (Unix seconds).

    What cannot be read is appended to `unread`: the report is useful without.
    """
    moment = datetime.fromtimestamp(now, UTC)
    try:
        with OutcomeHistory(history_folder(reports), moment, lambda error: unread.append(str(error))) as history:
            rates = query_pool_rates(history, days=TREND_DAYS)
            days = next((days for days in DISTRIBUTION_DAYS if count_values(history, days=days) <= MAX_VALUES), 0)
            if days:
                return PastOfFleet(query_distributions(history, list_node_kinds(fleet), days=days), rates)
            unread.append("distributions: too many values for one page: see `assay results --distribution NAME`")
            return PastOfFleet(rates=rates)
    except AssayError as error:
        unread.append(f"history: {error}")
    return PastOfFleet()


def list_outliers(distributions: Iterable[PeerDistribution]) -> list[CheckOutlier]:
    """Return the parts that are unlike their peers, the farthest first."""
    outliers = []
    for each in distributions:
        outliers += [CheckOutlier(each.check, str(each.kind), outlier) for outlier in each.outliers]
    return sorted(outliers, key=lambda of_check: (-abs(of_check.outlier.score), of_check.outlier.part.subject))
