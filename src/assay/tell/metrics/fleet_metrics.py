"""The metrics of a fleet as Prometheus' client wants them.

What it keeps in memory is a cache: a process that starts anew reads the ledger, and gives the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from threading import Lock

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from assay.act.ingest.silent_nodes import open_last_seen
from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.decide.faults.telemetry_silence import list_unread
from assay.decide.rollouts.rollout_history import ROLLOUTS
from assay.ledger.errors import LedgerError
from assay.ledger.ledger_reader import read_projection
from assay.tell.metrics.collectors import (
    MetricSource,
    ScheduleTimes,
    TelemetrySources,
    list_build_series,
    list_capacity_series,
    list_effect_series,
    list_fault_series,
    list_idle_coverage_series,
    list_ledger_series,
    list_node_series,
    list_pass_series,
    list_rollout_series,
    list_ticket_series,
    list_workflow_series,
    list_zeros,
)
from assay.tell.metrics.families import FAMILIES_BY_NAME, Distribution, Family, Series
from assay.tell.metrics.ledger_counts import LEDGER_COUNTS, CheckCounts


class FleetMetrics(Collector):
    """Collects every family of one fleet; `current` returns the controller's context, with the newest fleet.

    `report` shows a line to people when the ledger cannot be read. One thread collects at a time.
    """

    def __init__(
        self, current: Callable[[], ControllerContext], report: Callable[[str], None] = lambda _: None
    ) -> None:
        self._current, self._report, self._lock = current, report, Lock()
        self._checks, self._schedules, self._telemetry = CheckCounts(), ScheduleTimes(), TelemetrySources()

    def describe(self) -> Iterable[Metric]:
        """Return the families without series, so that registering them reads nothing."""
        return _make_metrics(())

    def collect(self) -> Iterable[Metric]:
        """Return every family with its series now; in the lab, each has the label `context`.

        Without a ledger, `assay_ledger_up` is 0, and most are empty. Raises AssayError if something else cannot be
        read, such as the policy.
        """
        with self._lock:
            metrics = _make_metrics(self._list_series())
        if self._current().fleet.is_lab:
            for metric in metrics:
                metric.samples = [
                    sample._replace(labels={**sample.labels, "context": "lab"}) for sample in metric.samples
                ]
        return metrics

    def _list_series(self) -> list[Series]:
        begun_s, series = time.thread_time(), list(list_build_series())
        try:
            series += self._list_fleet_series()
            series.append(Series("assay_ledger_up", (), 1))
        except LedgerError as error:
            self._report(str(error))
            series = [*list_build_series(), Series("assay_ledger_up", (), 0)]
        return [*series, Series("assay_metrics_collect_cpu_seconds", (), time.thread_time() - begun_s)]

    def _list_fleet_series(self) -> list[Series]:
        context = self._current()
        self._checks.refresh(context.ledger, context.fleet)
        counts = read_projection(context.ledger, LEDGER_COUNTS)
        nodes, states = context.fleet.nodes, read_node_states(context.ledger)
        known = {name: state for name, state in states.items() if name in nodes}
        now, rollout = context.clock.now(), read_projection(context.ledger, ROLLOUTS).find_active()
        pools, service = {name: node.pool for name, node in nodes.items()}, context.policy.states_in_service
        answered = open_last_seen(context).last_answers()
        unread = list_unread(known.values(), context.fleet.policies.values(), answered, now)
        source = MetricSource(context, now, known, pools, service, answered, unread, counts, self._checks, rollout)
        series = chain(
            list_node_series(source),
            list_capacity_series(source),
            counts.series(),
            list_effect_series(source),
            self._checks.series(context.policy, known.values(), pools, source.now_s),
            list_fault_series(source),
            list_ticket_series(source),
            list_rollout_series(source),
            self._schedules.series(source),
            list_idle_coverage_series(source),
            self._telemetry.series(source),
            list_ledger_series(source),
            list_pass_series(source),
            list_workflow_series(source),
        )
        return [*(counted := list(series)), *list_zeros(source, counted)]


def format_metrics(metrics: FleetMetrics) -> bytes:
    """Return the metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(metrics)
    return generate_latest(registry)


def _make_metrics(series: Iterable[Series]) -> list[Metric]:
    """Return every family in the order of `FAMILIES`, each with its series."""
    by_family = {name: list[Series]() for name in FAMILIES_BY_NAME}
    for item in series:
        by_family[item.family].append(item)
    return [_make_metric(family, by_family[name]) for name, family in FAMILIES_BY_NAME.items()]


def _make_metric(family: Family, series: Iterable[Series]) -> Metric:
    if family.type == "histogram":
        return _make_histogram(family, series)
    kind = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
    metric = kind(family.name, family.help, labels=list(family.labels))
    for item in series:
        assert not isinstance(item.number, Distribution), family.name
        metric.add_metric(item.values, item.number)
    return metric


def _make_histogram(family: Family, series: Iterable[Series]) -> Metric:
    metric = HistogramMetricFamily(family.name, family.help, labels=list(family.labels))
    for item in series:
        assert isinstance(item.number, Distribution), family.name
        metric.add_metric(item.values, list(_list_buckets(family, item.number)), item.number.total)
    return metric


def _list_buckets(family: Family, content: Distribution) -> Iterator[tuple[str, float]]:
    """Yield the buckets by their upper bound, each with all values up to it."""
    so_far = 0
    for edge, count in zip([*map(str, family.edges), "+Inf"], content.counts, strict=True):
        so_far += count
        yield edge, so_far
