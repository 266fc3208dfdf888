"""Turns metric series into the readings of the channel `probe`, as a Monitoring document maps them. Pure.

A reading without a metric is unsupported, and one whose metric has no series is absent. A sample that is too old is
failed. Where Prometheus warned that parts of it did not answer, a missing series is failed too. XIDs are in a gauge
that holds the last code for ever: only a change to a code is one.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from assay.model.facts import frozen
from assay.model.reading import PROBE_AREAS, ReadingTree, absent, failed, unsupported, value
from assay.model.specs.monitoring import LabelSpelling, MetricGroup, MetricReading, Monitoring
from assay.model.text.lists import normalize_pci_address

NOT_MAPPED = unsupported("the Monitoring document maps no metric to it")
NO_KERNEL_LOG = unsupported("no metric holds the kernel's log")
REPEATS_INVISIBLE = unsupported("the gauge holds the last code: the same XID again cannot be seen in it")
BEFORE_WINDOW = absent("it changed before the window that was looked at")
NO_XID_YET = absent("it is 0: no XID since the exporter started")
GRID_S = 15.0
"""Samples are read on a fixed grid, so that a change has the same time in every query."""
MAX_POINTS = 10_000
BASELINE_DAYS = 7
"""The value before the window is queried too, so that a gap in the scraping is no change."""


@frozen
class MetricSeries:
    """One series: its labels (`__name__` among them) and its samples (seconds since 1970, number), oldest first."""

    labels: Mapping[str, str]
    samples: Sequence[tuple[float, float]]


class ScrapeContext(NamedTuple):
    """The time of the query (seconds since 1970), the maximum age of a sample, and Prometheus's warnings ("": none)."""

    at: float
    stale_s: float
    warnings: str = ""


def list_metrics(monitoring: Monitoring) -> list[str]:
    """Return the name of every metric that the document maps, sorted."""
    names = {reading.metric for group in monitoring.groups.values() for reading in group.readings.values()}
    return sorted(names | ({monitoring.xid.metric} if monitoring.xid else set()))


def list_labels(monitoring: Monitoring) -> set[str]:
    """Return every label that the document uses, and `__name__`."""
    groups = monitoring.groups.values()
    readings = [reading for group in groups for reading in group.readings.values()]
    labels = {group.by for group in groups} | {reading.label for reading in readings}
    labels |= {label for reading in readings for label in reading.where}
    return {"__name__"} | {label for label in labels if label} | ({monitoring.xid.by} if monitoring.xid else set())


def build_probe_readings(monitoring: Monitoring, series: Iterable[MetricSeries], scrape: ScrapeContext) -> ReadingTree:
    """Return the channel `probe` of one node from its series."""
    by_metric: dict[str, list[MetricSeries]] = defaultdict(list)
    for one_series in series:
        by_metric[one_series.labels.get("__name__", "")].append(one_series)
    tree: ReadingTree = {}
    for group in monitoring.groups.values():
        _put(tree, group.under, _group_branch(group, by_metric, scrape))
    return {**dict.fromkeys(PROBE_AREAS, NOT_MAPPED), "kernel_log": NO_KERNEL_LOG, **tree}


def _group_branch(
    group: MetricGroup, by_metric: Mapping[str, Sequence[MetricSeries]], scrape: ScrapeContext
) -> ReadingTree:
    """Return the readings of a group, by part where the group has a label that names parts."""
    if group.by is None:
        return _part_branch(group, by_metric, scrape)
    parts: dict[str, dict[str, list[MetricSeries]]] = {}
    for metric in {reading.metric for reading in group.readings.values()}:
        for series in by_metric.get(metric, ()):
            name = normalize_part_name(series.labels.get(group.by, ""), group.spelled)
            if name and (group.parts is None or re.fullmatch(group.parts, name)):
                parts.setdefault(name, {}).setdefault(metric, []).append(series)
    tree = {name: _part_branch(group, parts[name], scrape) for name in sorted(parts)}
    return tree or _missing_leaf(f"any {group.by}", scrape)


def _part_branch(
    group: MetricGroup, by_metric: Mapping[str, Sequence[MetricSeries]], scrape: ScrapeContext
) -> ReadingTree:
    tree: ReadingTree = {}
    for path, wanted in group.readings.items():
        _put(tree, path, _read_metric(wanted, by_metric.get(wanted.metric, ()), scrape))
    return tree


def _read_metric(wanted: MetricReading, series: Sequence[MetricSeries], scrape: ScrapeContext) -> ReadingTree:
    """Return the leaf for the newest sample of the series that have the wanted labels."""
    matching = [candidate for candidate in series if wanted.where.items() <= candidate.labels.items()]
    matching = [candidate for candidate in matching if candidate.samples]
    if not matching:
        return _missing_leaf(wanted.metric, scrape)
    newest = max(matching, key=lambda candidate: candidate.samples[-1][0])
    at, number = newest.samples[-1]
    if scrape.at - at > scrape.stale_s:
        return failed(f"the last sample of {wanted.metric} is older than {scrape.stale_s:g} s")
    if wanted.label is not None:
        text = newest.labels.get(wanted.label, "")
        return value(text) if text else absent(f"{wanted.metric} has no label {wanted.label}")
    if not math.isfinite(number) or number * wanted.factor == wanted.unknown:
        return unsupported(f"{wanted.metric} is {number:g}")
    return _convert_sample(wanted, number, scrape)


def _convert_sample(wanted: MetricReading, number: float, scrape: ScrapeContext) -> ReadingTree:
    if wanted.words:
        word = wanted.words.get(f"{number:g}")
        return value(word) if word else failed(f"{wanted.metric} is {number:g}, which has no meaning here")
    if wanted.reads == "truth":
        return value(number != 0)
    converted = scrape.at - number if wanted.reads == "since" else float(f"{number * wanted.factor:.12g}")
    return value(int(converted) if converted.is_integer() and abs(converted) < 2**63 else converted)


def _missing_leaf(metric: str, scrape: ScrapeContext) -> ReadingTree:
    if scrape.warnings:
        return failed(f"{metric}: {scrape.warnings}")
    return absent(f"Prometheus has no sample of {metric} here")


def normalize_part_name(text: str, spelling: LabelSpelling) -> str:
    """Return a part's name in the probe's form (`0000:1b:00.0`, `gpu3`), "" where the text is no such name."""
    if spelling == "plain":
        return text
    if spelling == "index":
        return f"gpu{text}" if text.isdecimal() else text
    return normalize_pci_address(text)


def _put(tree: ReadingTree, path: str, branch: ReadingTree) -> None:
    *steps, last = path.split(".")
    for step in steps:
        tree = tree.setdefault(step, {})
    tree[last] = branch


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
