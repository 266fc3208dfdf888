"""A Prometheus that scrapes the nodes already: one round of queries answers for all of its nodes.

Four queries a pass, however many nodes and metrics: the last sample of all metrics, those that are too old, and the XID
gauge over its window and before it.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from requests.auth import HTTPBasicAuth

from assay.fleet.secret_lookup import describe_reference, read_secret
from assay.fleet.shared_cache import SharedAnswerCache
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.reading import failed, value
from assay.model.specs.monitoring import Monitoring
from assay.model.specs.node_settings import PrometheusSettings
from assay.observe.prometheus.metric_readings import ScrapeContext, build_probe_readings, list_labels, list_metrics
from assay.observe.prometheus.prometheus_client import (
    BearerAuth,
    MetricSeries,
    PrometheusClient,
    QueryResult,
    RequestSigner,
)
from assay.observe.prometheus.xid_gauge import (
    QueryWindow,
    XidGaugeChange,
    build_xid_lines,
    build_xid_readings,
    find_xid_changes,
)
from assay.redfish.credentials import parse_user_password
from assay.redfish.tls_connection import CertificateTrust, normalize_fingerprint

ROUND_CACHE_S = 600.0
LOOK_BACK = 2
"""How many times `stale_s` are looked at: a sample that is older than it may be is told as that."""


SeriesIndex = Mapping[tuple[str, str], Sequence[MetricSeries]]
"""Series by each label that may name a node, and its text."""


@dataclass(frozen=True)
class QueryRound:
    """What one round of queries found: the metrics, the XID gauge over its window and before; what was warned of."""

    at: float
    latest: SeriesIndex
    xid_window: SeriesIndex
    xid_baseline: SeriesIndex
    warnings: str


class PrometheusTransport:
    """Asks each Prometheus once a pass."""

    def __init__(self, monitorings: Mapping[str, Monitoring], root: Path) -> None:
        self._monitorings, self._root = monitorings, root
        self._rounds: SharedAnswerCache[QueryRound] = SharedAnswerCache(ROUND_CACHE_S)

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        """Return the channel `probe` of what the metrics tell. Raises Trouble; nothing can be started on the node."""
        if "--active" in arguments:
            return failed(f"{node.name} is read through Prometheus: nothing can be started there")
        metrics = _declared(node)
        monitoring = self._monitorings.get(metrics.monitoring)
        if monitoring is None:
            raise AssayError(f"there is no Monitoring {metrics.monitoring}", where=node.name)
        key = metrics.model_dump_json(exclude={"match"}) + json.dumps([_constant(metrics), sorted(_naming(metrics))])
        try:
            found = self._rounds(key, lambda: self._round(metrics, monitoring, deadline_s))
        except AssayError as trouble:
            return failed(f"Prometheus at {metrics.url}: {trouble.what}")
        return {"probe": _of_node(node, metrics, monitoring, found)}

    def _round(self, metrics: PrometheusSettings, monitoring: Monitoring, deadline_s: float) -> QueryRound:
        now, ends_at = time.time(), time.monotonic() + deadline_s
        answers = [QueryResult(())] * 4
        for number, (query, span) in enumerate(_queries(metrics, monitoring, now)):
            with self._service(metrics, max(0.1, ends_at - time.monotonic())) as service:
                asked = (
                    service.query_instant(query, span) if isinstance(span, float) else service.query_range(query, *span)
                )
                answers[number] = asked
        answers[1] = _date_back_samples(answers[1], metrics.stale_s)
        found, stale, within, before = (_index_series(answer, _naming(metrics)) for answer in answers)
        for key, series in stale.items():
            found[key] += series
        warned = "; ".join(dict.fromkeys(warning for answer in answers for warning in answer.warnings))
        return QueryRound(now, found, within, before, warned)

    def _service(self, metrics: PrometheusSettings, timeout_s: float) -> PrometheusClient:
        ca = self._root / metrics.ca if metrics.ca else None
        trust = CertificateTrust(ca, normalize_fingerprint(metrics.fingerprint))
        return PrometheusClient(metrics.url, trust, self._signed(metrics), timeout_s)

    def _signed(self, metrics: PrometheusSettings) -> RequestSigner:
        if metrics.credentials:
            known = parse_user_password(
                read_secret(metrics.credentials, self._root), describe_reference(metrics.credentials)
            )
            return HTTPBasicAuth(known.user.encode(), known.password.encode())
        return BearerAuth(read_secret(metrics.token, self._root) if metrics.token else "")


def _declared(node: Node) -> PrometheusSettings:
    if node.settings.metrics is None:
        raise AssayError(f"{node.name} declares no `metrics`", fix="`assay check` says why")
    return node.settings.metrics


def _naming(metrics: PrometheusSettings) -> dict[str, str]:
    return {label: text for label, text in metrics.match.items() if "{name}" in text}


def _constant(metrics: PrometheusSettings) -> str:
    """Return the matchers that narrow every query, each after a comma."""
    fixed = sorted((label, text) for label, text in metrics.match.items() if "{name}" not in text)
    return "".join(f",{label}={json.dumps(text, ensure_ascii=False)}" for label, text in fixed)


def _queries(
    metrics: PrometheusSettings, monitoring: Monitoring, now: float
) -> Iterator[tuple[str, float | QueryWindow]]:
    """Yield each query with its time or window."""
    narrow, names = _constant(metrics), json.dumps("|".join(list_metrics(monitoring)))
    samples, by = f"{{__name__=~{names}{narrow}}}", ", ".join(sorted({*list_labels(monitoring), *_naming(metrics)}))
    fresh = f"max by ({by}) (last_over_time({samples}[{metrics.stale_s:.0f}s]))"
    yield fresh, now
    yield f"max by ({by}) (last_over_time({samples}[{LOOK_BACK * metrics.stale_s:.0f}s])) unless on ({by}) {fresh}", now
    if monitoring.xid:
        gauge, window = f"{monitoring.xid.metric}{{{narrow[1:]}}}", QueryWindow.ending_at(now, metrics.xid_hours)
        yield window.query(gauge), window
        yield window.baseline_query(gauge), window.start - window.step_s


def _date_back_samples(answer: QueryResult, stale_s: float) -> QueryResult:
    """Return an answer with the samples where they are at least: a query dates them to when it was asked."""
    older = [
        MetricSeries(one.labels, [(at - stale_s - 1, number) for at, number in one.samples]) for one in answer.series
    ]
    return QueryResult(older, answer.warnings)


def _index_series(answer: QueryResult, naming: Mapping[str, str]) -> dict[tuple[str, str], list[MetricSeries]]:
    shelf: dict[tuple[str, str], list[MetricSeries]] = defaultdict(list)
    for series in answer.series:
        for label in naming:
            if text := series.labels.get(label):
                shelf[label, text].append(series)
    return shelf


def _of_node(node: Node, metrics: PrometheusSettings, monitoring: Monitoring, found: QueryRound) -> dict[str, Any]:
    keys = [(label, text.replace("{name}", node.name)) for label, text in _naming(metrics).items()]
    mine = _series_of_node(found.latest, keys)
    if not mine:
        said = " or ".join(f'{label}="{text}"' for label, text in keys)
        return failed(f"{metrics.url} has no series with {said}{f': {found.warnings}' if found.warnings else ''}")
    tree = build_probe_readings(monitoring, mine, ScrapeContext(found.at, metrics.stale_s, found.warnings))
    if monitoring.xid:
        gauge, by = monitoring.xid.metric, monitoring.xid.by
        changes = find_xid_changes(
            _series_of_node(found.xid_window, keys), _series_of_node(found.xid_baseline, keys), by
        )
        now = [one for one in mine if one.labels.get("__name__") == gauge]
        _add_xid_readings(tree, build_xid_readings(now, changes, by), changes, found.at)
    return {**tree, "source": value(f"Prometheus at {metrics.url}")}


def _series_of_node(shelf: SeriesIndex, keys: Sequence[tuple[str, str]]) -> list[MetricSeries]:
    return [one for key in keys for one in shelf.get(key, ())]


def _add_xid_readings(
    tree: dict[str, Any], told: Mapping[str, Any], changes: Sequence[XidGaugeChange], at: float
) -> None:
    devices = tree["gpu"].get("devices", {}) if isinstance(tree["gpu"], dict) else {}
    for place, code in told.items():
        if place in devices:
            devices[place]["xid"] = code
    uptime = tree["host"].get("uptime_s", {}) if isinstance(tree["host"], dict) else {}
    booted = at - uptime["value"] if "value" in uptime else None
    tree["metric_events"] = {"lines": value(build_xid_lines(changes, booted))}
