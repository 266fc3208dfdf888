"""The transport `prometheus`: one round of queries to a Prometheus that scrapes the nodes already, for all its nodes.

A pass makes four queries for any number of nodes and metrics: the last sample of all metrics, the samples that are too
old, and the XID gauge over its window and before it.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel

from assay.adapters.prometheus.readings import (
    MetricSeries,
    QueryWindow,
    ScrapeContext,
    XidGaugeChange,
    build_probe_readings,
    build_xid_lines,
    build_xid_readings,
    find_xid_changes,
    list_labels,
    list_metrics,
)
from assay.declare.secret_lookup import SharedAnswerCache, describe_reference, read_secret
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.reading import ReadingTree, failed, value
from assay.model.specs.monitoring import Monitoring, PrometheusSettings
from assay.observe.transports.transport_protocol import TransportContext

if TYPE_CHECKING:  # load requests, which nothing but a query needs
    from assay.adapters.prometheus.client import PrometheusClient, RequestSigner

ROUND_CACHE_S = 600.0
STALE_FACTOR = 2
"""Samples are read up to this many times `stale_s` back, to tell one that is too old from a missing one."""

SeriesIndex = Mapping[tuple[str, str], Sequence[MetricSeries]]
"""Series by (label, text) of each label that may name a node."""


@dataclass(frozen=True)
class QueryRound:
    """The series of one round of queries: all metrics, and the XID gauge over its window and before it."""

    at: float
    latest: SeriesIndex
    xid_window: SeriesIndex
    xid_baseline: SeriesIndex
    warnings: str


class PrometheusTransport:
    """Queries each Prometheus once a pass."""

    settings_name: ClassVar[str] = "metrics"
    settings_model: ClassVar[type[BaseModel] | None] = PrometheusSettings

    def __init__(self, context: TransportContext) -> None:
        self._monitorings = context.monitorings
        self._root = context.root
        self._rounds: SharedAnswerCache[QueryRound] = SharedAnswerCache(ROUND_CACHE_S)

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        """Return the channel `probe` from the node's metrics; `--active` fails, since nothing runs on the node.

        Raises AssayError where the node has no `metrics`, or names a Monitoring document that does not exist.
        """
        if "--active" in arguments:
            return failed(f"{node.name} is read through Prometheus: nothing can be started there")
        metrics = node.settings.metrics
        if metrics is None:
            message = f"{node.name} has no metrics that can be understood"
            raise AssayError(message, fix="`assay check` says why")
        monitoring = self._monitorings.get(metrics.monitoring)
        if monitoring is None:
            raise AssayError(f"there is no Monitoring {metrics.monitoring}", where=node.name)
        identity = [_constant_matchers(metrics), sorted(_node_labels(metrics))]
        key = metrics.model_dump_json(exclude={"match"}) + json.dumps(identity)
        try:
            answers = self._rounds(key, lambda: self._query(metrics, monitoring, deadline_s))
        except AssayError as error:
            return failed(f"Prometheus at {metrics.url}: {error.what}")
        return {"probe": _read_node(node, metrics, monitoring, answers)}

    def _query(self, metrics: PrometheusSettings, monitoring: Monitoring, deadline_s: float) -> QueryRound:
        """Make one round of queries. Raises AssayError."""
        from assay.adapters.prometheus.client import QueryResult

        now = time.time()
        ends_at = time.monotonic() + deadline_s
        results = [QueryResult(())] * 4
        for number, (query, span) in enumerate(_build_queries(metrics, monitoring, now)):
            with self._open_client(metrics, max(0.1, ends_at - time.monotonic())) as client:
                results[number] = (
                    client.query_instant(query, span) if isinstance(span, float) else client.query_range(query, *span)
                )
        labels = _node_labels(metrics)
        latest, stale, window, baseline = (_index_series(result.series, labels) for result in results)
        for key, every in stale.items():
            for series in every:  # a query dates samples to its own time; these are older than `stale_s`
                samples = [(at - metrics.stale_s - 1, number) for at, number in series.samples]
                latest[key].append(MetricSeries(series.labels, samples))
        warnings = "; ".join(dict.fromkeys(warning for result in results for warning in result.warnings))
        return QueryRound(now, latest, window, baseline, warnings)

    def _open_client(self, metrics: PrometheusSettings, timeout_s: float) -> PrometheusClient:
        from assay.adapters.bmc.tls import CertificateTrust, normalize_fingerprint
        from assay.adapters.prometheus.client import PrometheusClient

        ca = self._root / metrics.ca if metrics.ca else None
        trust = CertificateTrust(ca, normalize_fingerprint(metrics.fingerprint))
        return PrometheusClient(metrics.url, trust, self._make_signer(metrics), timeout_s)

    def _make_signer(self, metrics: PrometheusSettings) -> RequestSigner:
        from requests.auth import HTTPBasicAuth

        from assay.adapters.bmc.session import parse_user_password
        from assay.adapters.prometheus.client import BearerAuth

        if metrics.credentials:
            secret = read_secret(metrics.credentials, self._root)
            login = parse_user_password(secret, describe_reference(metrics.credentials))
            return HTTPBasicAuth(login.user.encode(), login.password.encode())
        return BearerAuth(read_secret(metrics.token, self._root) if metrics.token else "")


def _node_labels(metrics: PrometheusSettings) -> dict[str, str]:
    """Return the labels that name a node: label → text with `{name}`."""
    return {label: text for label, text in metrics.match.items() if "{name}" in text}


def _constant_matchers(metrics: PrometheusSettings) -> str:
    """Return the matchers that narrow every query, each after a comma."""
    constant = sorted((label, text) for label, text in metrics.match.items() if "{name}" not in text)
    return "".join(f",{label}={json.dumps(text, ensure_ascii=False)}" for label, text in constant)


def _build_queries(
    metrics: PrometheusSettings, monitoring: Monitoring, now: float
) -> Iterator[tuple[str, float | QueryWindow]]:
    """Yield each query with its time or its window."""
    matchers = _constant_matchers(metrics)
    names = json.dumps("|".join(list_metrics(monitoring)))
    samples = f"{{__name__=~{names}{matchers}}}"
    by = ", ".join(sorted({*list_labels(monitoring), *_node_labels(metrics)}))
    fresh = f"max by ({by}) (last_over_time({samples}[{metrics.stale_s:.0f}s]))"
    older = f"max by ({by}) (last_over_time({samples}[{STALE_FACTOR * metrics.stale_s:.0f}s]))"
    yield fresh, now
    yield f"{older} unless on ({by}) {fresh}", now
    if monitoring.xid:
        gauge = f"{monitoring.xid.metric}{{{matchers[1:]}}}"
        window = QueryWindow.ending_at(now, metrics.xid_hours)
        yield window.query(gauge), window
        yield window.baseline_query(gauge), window.start - window.step_s


def _index_series(
    all_series: Sequence[MetricSeries], labels: Mapping[str, str]
) -> dict[tuple[str, str], list[MetricSeries]]:
    index: dict[tuple[str, str], list[MetricSeries]] = defaultdict(list)
    for series in all_series:
        for label in labels:
            if text := series.labels.get(label):
                index[label, text].append(series)
    return index


def _read_node(node: Node, metrics: PrometheusSettings, monitoring: Monitoring, answers: QueryRound) -> dict[str, Any]:
    """Return the channel `probe` of one node from a round of queries."""
    keys = [(label, text.replace("{name}", node.name)) for label, text in _node_labels(metrics).items()]
    latest = _series_of_node(answers.latest, keys)
    if not latest:
        wanted = " or ".join(f'{label}="{text}"' for label, text in keys)
        return failed(f"{metrics.url} has no series with {wanted}{f': {answers.warnings}' if answers.warnings else ''}")
    tree = build_probe_readings(monitoring, latest, ScrapeContext(answers.at, metrics.stale_s, answers.warnings))
    if monitoring.xid:
        gauge, by = monitoring.xid.metric, monitoring.xid.by
        window = _series_of_node(answers.xid_window, keys)
        baseline = _series_of_node(answers.xid_baseline, keys)
        changes = find_xid_changes(window, baseline, by)
        now = [series for series in latest if series.labels.get("__name__") == gauge]
        _add_xid_readings(tree, build_xid_readings(now, changes, by), changes, answers.at)
    return {**tree, "source": value(f"Prometheus at {metrics.url}")}


def _series_of_node(index: SeriesIndex, keys: Sequence[tuple[str, str]]) -> list[MetricSeries]:
    return [series for key in keys for series in index.get(key, ())]


def _add_xid_readings(
    tree: ReadingTree, xids: Mapping[str, ReadingTree], changes: Sequence[XidGaugeChange], at: float
) -> None:
    """Add the branch `xid` to each GPU, and the changes as `metric_events`."""
    devices = tree["gpu"].get("devices", {}) if isinstance(tree["gpu"], dict) else {}
    for address, xid in xids.items():
        if address in devices:
            devices[address]["xid"] = xid
    uptime = tree["host"].get("uptime_s", {}) if isinstance(tree["host"], dict) else {}
    booted = at - uptime["value"] if "value" in uptime else None
    tree["metric_events"] = {"lines": value(build_xid_lines(changes, booted))}
