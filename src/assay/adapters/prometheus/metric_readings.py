"""Turns metric series into the readings of the channel `probe`, as a Monitoring document maps them. Pure.

A reading without a metric is unsupported, and one whose metric has no series is absent. A sample that is too old is
failed. Where Prometheus warned that parts of it did not answer, a missing series is failed too.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from assay.model.reading import PROBE_AREAS, ReadingTree, absent, failed, unsupported, value
from assay.model.specs.monitoring import LabelSpelling, MetricGroup, MetricReading, Monitoring
from assay.model.text.pci_address import normalize_pci_address

NOT_MAPPED = unsupported("the Monitoring document maps no metric to it")
NO_KERNEL_LOG = unsupported("no metric holds the kernel's log")


@dataclass(frozen=True, slots=True)
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


def _missing_leaf(what: str, scrape: ScrapeContext) -> ReadingTree:
    if scrape.warnings:
        return failed(f"{what}: {scrape.warnings}")
    return absent(f"Prometheus has no sample of {what} here")


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
