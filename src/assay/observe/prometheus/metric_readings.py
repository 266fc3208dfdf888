"""From series to readings: the branches of `probe`, as a Monitoring document maps metric names to paths. Pure.

What no metric tells reads unsupported; what a metric should tell and none of its series does, absent; a sample that is
older than it may be, failed; and where Prometheus itself warned that parts of it were silent, what is missing failed.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from assay.model.reading import ReadingTree, absent, failed, unsupported, value
from assay.model.specs.monitoring import LabelSpelling, MetricGroup, MetricReading, Monitoring
from assay.observe.prometheus.prometheus_client import MetricSeries

AREAS = ("host", "gpu", "hca", "nic", "nvme", "aer", "pci", "memory", "file_systems", "kernel", "time", "services")
NOT_MAPPED = unsupported("no metric of the monitoring map tells it")
BUS = re.compile(r"(?P<domain>[0-9a-fA-F]{4,8}):(?P<place>[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])")


class ScrapeContext(NamedTuple):
    """When it was (seconds since 1970), how old a sample may be, and what Prometheus warned of ("" nothing)."""

    at: float
    stale_s: float
    warnings: str = ""


def list_metrics(monitoring: Monitoring) -> list[str]:
    """Return every metric that is asked for, each once."""
    found = {one.metric for group in monitoring.groups.values() for one in group.readings.values()}
    return sorted(found | ({monitoring.xid.metric} if monitoring.xid else set()))


def list_labels(monitoring: Monitoring) -> set[str]:
    """Return every label that readings are told by."""
    groups = monitoring.groups.values()
    found = {group.by for group in groups} | {one.label for group in groups for one in group.readings.values()}
    found |= {label for group in groups for one in group.readings.values() for label in one.where}
    return {"__name__"} | {label for label in found if label} | ({monitoring.xid.by} if monitoring.xid else set())


def build_probe_readings(monitoring: Monitoring, series: Iterable[MetricSeries], look: ScrapeContext) -> ReadingTree:
    """Return the `probe` channel of one node, of its series."""
    by_metric: dict[str, list[MetricSeries]] = defaultdict(list)
    for one in series:
        by_metric[one.labels.get("__name__", "")].append(one)
    tree: ReadingTree = {}
    for group in monitoring.groups.values():
        _put(tree, group.under, _group(group, by_metric, look))
    areas = {area: tree.get(area, NOT_MAPPED) for area in AREAS}
    return {**areas, "kernel_log": unsupported("no metric holds the kernel's log"), **tree}


def _group(group: MetricGroup, by_metric: Mapping[str, Sequence[MetricSeries]], look: ScrapeContext) -> ReadingTree:
    if group.by is None:
        return _part(group, by_metric, look)
    parts: dict[str, dict[str, list[MetricSeries]]] = {}
    for metric in {one.metric for one in group.readings.values()}:
        for series in by_metric.get(metric, ()):
            name = normalize_part_name(series.labels.get(group.by, ""), group.spelled)
            if name and (group.parts is None or re.fullmatch(group.parts, name)):
                parts.setdefault(name, {}).setdefault(metric, []).append(series)
    return {name: _part(group, parts[name], look) for name in sorted(parts)} or _missing_leaf(f"any {group.by}", look)


def _part(group: MetricGroup, by_metric: Mapping[str, Sequence[MetricSeries]], look: ScrapeContext) -> ReadingTree:
    tree: ReadingTree = {}
    for path, wanted in group.readings.items():
        _put(tree, path, _reading(wanted, by_metric.get(wanted.metric, ()), look))
    return tree


def _reading(wanted: MetricReading, series: Sequence[MetricSeries], look: ScrapeContext) -> ReadingTree:
    fitting = [one for one in series if wanted.where.items() <= one.labels.items() and one.samples]
    if not fitting:
        return _missing_leaf(wanted.metric, look)
    newest = max(fitting, key=lambda one: one.samples[-1][0])
    at, number = newest.samples[-1]
    if look.at - at > look.stale_s:
        return failed(f"the last sample of {wanted.metric} is older than {look.stale_s:g} s")
    if wanted.label is not None:
        text = newest.labels.get(wanted.label, "")
        return value(text) if text else absent(f"{wanted.metric} has no label {wanted.label}")
    if not math.isfinite(number) or number * wanted.factor == wanted.unknown:
        return unsupported(f"{wanted.metric} is {number:g}")
    return _convert_sample(wanted, number, look)


def _convert_sample(wanted: MetricReading, number: float, look: ScrapeContext) -> ReadingTree:
    if wanted.words:
        word = wanted.words.get(f"{number:g}")
        return value(word) if word else failed(f"{wanted.metric} is {number:g}, which has no meaning here")
    if wanted.reads == "truth":
        return value(number != 0)
    plain = look.at - number if wanted.reads == "since" else float(f"{number * wanted.factor:.12g}")
    return value(int(plain) if plain.is_integer() and abs(plain) < 2**63 else plain)


def _missing_leaf(what: str, look: ScrapeContext) -> ReadingTree:
    return failed(f"{what}: {look.warnings}") if look.warnings else absent(f"Prometheus has no sample of {what} here")


def normalize_part_name(text: str, how: LabelSpelling) -> str:
    """Return a part's name as the probe spells it, "" for none."""
    if how == "plain":
        return text
    if how == "index":
        return f"gpu{text}" if text.isdecimal() else text
    found = BUS.fullmatch(text)
    return f"{int(found['domain'], 16):04x}:{found['place'].lower()}" if found else ""


def _put(tree: ReadingTree, path: str, branch: ReadingTree) -> None:
    *way, last = path.split(".")
    for step in way:
        tree = tree.setdefault(step, {})
    tree[last] = branch
