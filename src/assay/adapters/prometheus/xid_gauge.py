"""Finds XIDs in a gauge that holds the last code for ever: only a change to a code is an XID. Pure.

Samples are read on a fixed grid, so that a change has the same time in every query. The value before the window is
queried too, so that a gap in the scraping is no change. A repeated XID does not change the gauge and is not seen.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from assay.adapters.prometheus.metric_readings import MetricSeries, normalize_part_name
from assay.model.reading import ReadingTree, absent, unsupported, value

REPEATS_INVISIBLE = unsupported("the gauge holds the last code: the same XID again cannot be seen in it")
BEFORE_WINDOW = absent("it changed before the window that was looked at")
NO_XID_YET = absent("it is 0: no XID since the exporter started")
GRID_S, MAX_POINTS = 15.0, 10_000
BASELINE_DAYS = 7


class XidGaugeChange(NamedTuple):
    """The gauge of the GPU at a PCI `address` changed to `code` at `at`, seconds since 1970."""

    address: str
    code: int
    at: float


class QueryWindow(NamedTuple):
    """From `start` to `end`, seconds since 1970. Both are on a grid of `step_s` that is the same for every query."""

    start: float
    end: float
    step_s: float

    @classmethod
    def ending_at(cls, now: float, hours: float) -> QueryWindow:
        """Return the window of `hours` that ends now. Its grid is as fine as Prometheus's limit on points allows."""
        step_s = GRID_S * math.ceil(hours * 3600 / GRID_S / MAX_POINTS)
        end = now // step_s * step_s
        return cls(end - hours * 3600 // step_s * step_s, end, step_s)

    def query(self, gauge: str) -> str:
        """Return the query over the window: gauges that changed in it, and gauges that are new in it.

        Most gauges do not change, and their million samples would be of no use.
        """
        within = f"{gauge}[{self.end - self.start:.0f}s] @ {self.end:.0f}"
        moved = f"{gauge} and max_over_time({within}) != min_over_time({within})"
        return f"({moved}) or ({gauge} > 0 unless last_over_time({gauge}[{BASELINE_DAYS}d] @ {self.start:.0f}))"

    def baseline_query(self, gauge: str) -> str:
        """Return the query at the window's start: the value of each gauge then, across gaps of up to a week."""
        return f"last_over_time({gauge}[{BASELINE_DAYS}d])"


def find_xid_changes(within: Iterable[MetricSeries], before: Iterable[MetricSeries], by: str) -> list[XidGaugeChange]:
    """Return the changes of each GPU's gauge, oldest first. `by` is the label with the PCI address.

    All series of a GPU count as one: exporters may put the code into a label as well, and then a change begins a new
    series.
    """
    baseline: dict[str, set[float]] = {}
    for address, series in _series_by_gpu(before, by):
        baseline.setdefault(address, set()).add(series.samples[-1][1])
    samples: dict[str, list[tuple[float, float]]] = {}
    for address, series in _series_by_gpu(within, by):
        samples.setdefault(address, []).extend(series.samples)
    changes = [
        change
        for address, points in samples.items()
        for change in _find_changes(address, sorted(points), baseline.get(address, {0.0}))
    ]
    return sorted(changes, key=lambda change: (change.at, change.address))


def build_xid_readings(
    now: Iterable[MetricSeries], changes: Sequence[XidGaugeChange], by: str
) -> dict[str, ReadingTree]:
    """Return the branch `xid` of each GPU by PCI address: the last `code`, `since` when, and unsupported `repeats`."""
    newest: dict[str, tuple[float, float]] = {}
    for address, series in _series_by_gpu(now, by):
        newest[address] = max(newest.get(address, series.samples[-1]), series.samples[-1])
    return {address: _xid_branch(address, code, changes) for address, (_, code) in newest.items()}


def build_xid_lines(changes: Iterable[XidGaugeChange], booted: float | None) -> list[ReadingTree]:
    """Return changes in the form and with the text of kernel lines, numbered by their time; `source` is `metrics`.

    `booted` is the time of the boot in seconds since 1970. `t_s` counts from it, or from 1970 where it is unknown.
    """
    return [
        {
            "seq": int(change.at),
            "t_s": change.at - (booted or 0.0),
            "at": datetime.fromtimestamp(change.at, UTC).isoformat(),
            "source": "metrics",
            "text": f"NVRM: Xid (PCI:{change.address.rpartition('.')[0]}): {change.code}, from a gauge of the last XID",
        }
        for change in changes
    ]


def _series_by_gpu(all_series: Iterable[MetricSeries], by: str) -> Iterator[tuple[str, MetricSeries]]:
    """Yield each series with its GPU's PCI address; series without one, and infinite samples, are left out."""
    for series in all_series:
        address = normalize_part_name(series.labels.get(by, ""), "pci")
        samples = [(at, code) for at, code in series.samples if math.isfinite(code)]
        if address and samples:
            yield address, MetricSeries(series.labels, samples)


def _find_changes(
    address: str, samples: Sequence[tuple[float, float]], baseline: Collection[float]
) -> Iterator[XidGaugeChange]:
    last = baseline
    for at, code in samples:
        if code not in last and code > 0 and code.is_integer():
            yield XidGaugeChange(address, int(code), at)
        last = (code,)


def _xid_branch(address: str, code: float, changes: Sequence[XidGaugeChange]) -> ReadingTree:
    times = [change.at for change in changes if change.address == address and change.code == code]
    if times:
        since: ReadingTree = value(datetime.fromtimestamp(times[-1], UTC).isoformat())
    else:
        since = BEFORE_WINDOW if code else NO_XID_YET
    return {"code": value(int(code)), "since": since, "repeats": REPEATS_INVISIBLE}
