"""XIDs of a gauge that holds the last code for ever: a sighting is when it changed to a code, and nothing else. Pure.

A gauge that stands at 79 says once that there was an XID 79, whoever looks how often. Samples are looked at on a grid
that stays where it is, so that a change has the same time at each look; what stood there before the window is asked for
apart, so that a gap in the scraping is no change. The same XID again leaves no trace in such a gauge, and is not seen.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from assay.model.reading import ReadingTree, absent, unsupported, value
from assay.observe.prometheus.metric_readings import normalize_part_name
from assay.observe.prometheus.prometheus_client import MetricSeries

REPEATS_INVISIBLE = unsupported("the gauge holds the last code: the same XID again cannot be seen in it")
BEFORE_WINDOW = absent("it changed before the window that was looked at")
NO_XID_YET = absent("it is 0: no XID since the exporter started")
GRID_S, MOST_POINTS = 15.0, 10_000
BASELINE_DAYS = 7


class XidGaugeChange(NamedTuple):
    """A gauge came to hold `code` at `at`, seconds since 1970."""

    place: str
    code: int
    at: float


class QueryWindow(NamedTuple):
    """From `start` to `end`, seconds since 1970, both on a grid of `step_s` that does not move from look to look."""

    start: float
    end: float
    step_s: float

    @classmethod
    def ending_at(cls, now: float, hours: float) -> QueryWindow:
        """Return the window of so many hours that ends now; the grid is as fine as Prometheus lets a query be."""
        step_s = GRID_S * math.ceil(hours * 3600 / GRID_S / MOST_POINTS)
        end = now // step_s * step_s
        return cls(end - hours * 3600 // step_s * step_s, end, step_s)

    def query(self, gauge: str) -> str:
        """Return what to ask over the window: the gauges that moved within it, and those that were not there before.

        Most stand still, and a million samples of them would say nothing.
        """
        within = f"{gauge}[{self.end - self.start:.0f}s] @ {self.end:.0f}"
        moved = f"{gauge} and max_over_time({within}) != min_over_time({within})"
        return f"({moved}) or ({gauge} > 0 unless last_over_time({gauge}[{BASELINE_DAYS}d] @ {self.start:.0f}))"

    def baseline_query(self, gauge: str) -> str:
        """Return what to ask at its start: what each gauge stood at then, gaps of some days left aside."""
        return f"last_over_time({gauge}[{BASELINE_DAYS}d])"


def find_xid_changes(within: Iterable[MetricSeries], before: Iterable[MetricSeries], by: str) -> list[XidGaugeChange]:
    """Return the changes of each GPU's gauge, oldest first.

    A code may stand in a label as well, so that a change begins a new series: a GPU's series are one.
    """
    stood: dict[str, set[float]] = {}
    for place, one in _series_by_gpu(before, by):
        stood.setdefault(place, set()).add(one.samples[-1][1])
    samples: dict[str, list[tuple[float, float]]] = {}
    for place, one in _series_by_gpu(within, by):
        samples.setdefault(place, []).extend(one.samples)
    found = [one for place, some in samples.items() for one in _changes(place, sorted(some), stood.get(place, {0.0}))]
    return sorted(found, key=lambda change: (change.at, change.place))


def build_xid_readings(
    now: Iterable[MetricSeries], changes: Sequence[XidGaugeChange], by: str
) -> dict[str, ReadingTree]:
    """Return the reading `xid` of each GPU by its place: the last `code`, `since` when, and that repeats are unseen."""
    newest: dict[str, tuple[float, float]] = {}
    for place, one in _series_by_gpu(now, by):
        newest[place] = max(newest.get(place, one.samples[-1]), one.samples[-1])
    return {place: _tree(place, code, changes) for place, (_, code) in newest.items()}


def build_xid_lines(changes: Iterable[XidGaugeChange], booted: float | None) -> list[ReadingTree]:
    """Return changes in the shape and the words of kernel lines, numbered by their time; `source` is `metrics`.

    `t_s` counts from the boot (seconds since 1970), or from 1970 where nobody knows that.
    """
    return [
        {
            "seq": int(one.at),
            "t_s": one.at - (booted or 0.0),
            "at": datetime.fromtimestamp(one.at, UTC).isoformat(),
            "source": "metrics",
            "text": f"NVRM: Xid (PCI:{one.place.rpartition('.')[0]}): {one.code}, told by a gauge of the last XID",
        }
        for one in changes
    ]


def _series_by_gpu(series: Iterable[MetricSeries], by: str) -> Iterator[tuple[str, MetricSeries]]:
    for one in series:
        place = normalize_part_name(one.labels.get(by, ""), "pci")
        samples = [(at, code) for at, code in one.samples if math.isfinite(code)]
        if place and samples:
            yield place, MetricSeries(one.labels, samples)


def _changes(place: str, samples: Sequence[tuple[float, float]], stood: Collection[float]) -> Iterator[XidGaugeChange]:
    last: Collection[float] = stood
    for at, code in samples:
        if code not in last and code > 0 and code.is_integer():
            yield XidGaugeChange(place, int(code), at)
        last = (code,)


def _tree(place: str, code: float, changes: Sequence[XidGaugeChange]) -> ReadingTree:
    mine = [change for change in changes if change.place == place and change.code == code]
    since = (
        value(datetime.fromtimestamp(mine[-1].at, UTC).isoformat()) if mine else BEFORE_WINDOW if code else NO_XID_YET
    )
    return {"code": value(int(code)), "since": since, "repeats": REPEATS_INVISIBLE}
