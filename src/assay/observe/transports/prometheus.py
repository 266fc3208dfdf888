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

from pydantic import ValidationError
from requests.auth import HTTPBasicAuth

from assay.fleet.metrics import Metrics
from assay.model.errors import Trouble
from assay.model.fleet import Node
from assay.model.monitoring import Monitoring
from assay.model.reading import failed, value
from assay.observe.credentials import split
from assay.observe.once import Once
from assay.observe.prometheus_api import Answer, Bearer, Prometheus, Series, Sign
from assay.observe.prometheus_codes import Change, Window, changes_in, codes, lines
from assay.observe.prometheus_readings import Look, labels_of, metrics_of, readings
from assay.observe.references import called, secret
from assay.observe.trust import Trust

PASS_S = 600.0
LOOK_BACK = 2
"""How many times `stale_s` are looked at: a sample that is older than it may be is told as that."""


Shelf = Mapping[tuple[str, str], Sequence[Series]]
"""Series by each label that may name a node, and its text."""


@dataclass(frozen=True)
class Round:
    """What one round of queries found: the metrics, the XID gauge over its window and before; what was warned of."""

    at: float
    found: Shelf
    within: Shelf
    before: Shelf
    warned: str


class Scraped:
    """Asks each Prometheus once a pass."""

    def __init__(self, monitorings: Mapping[str, Monitoring], root: Path) -> None:
        self._monitorings, self._root = monitorings, root
        self._rounds: Once[Round] = Once(PASS_S)

    def ask(self, node: Node, arguments: Sequence[str], deadline_s: float) -> dict[str, Any]:
        """Return the channel `probe` of what the metrics tell. Raises Trouble; nothing can be started on the node."""
        if "--active" in arguments:
            return failed(f"{node.name} is read through Prometheus: nothing can be started there")
        metrics = _declared(node)
        monitoring = self._monitorings.get(metrics.monitoring)
        if monitoring is None:
            raise Trouble(f"there is no Monitoring {metrics.monitoring}", where=node.name)
        key = metrics.model_dump_json(exclude={"match"}) + json.dumps([_constant(metrics), sorted(_naming(metrics))])
        try:
            found = self._rounds(key, lambda: self._round(metrics, monitoring, deadline_s))
        except Trouble as trouble:
            return failed(f"Prometheus at {metrics.url}: {trouble.what}")
        return {"probe": _of_node(node, metrics, monitoring, found)}

    def _round(self, metrics: Metrics, monitoring: Monitoring, deadline_s: float) -> Round:
        now, ends_at = time.time(), time.monotonic() + deadline_s
        answers = [Answer(())] * 4
        for number, (query, span) in enumerate(_queries(metrics, monitoring, now)):
            with self._service(metrics, max(0.1, ends_at - time.monotonic())) as service:
                asked = service.instant(query, span) if isinstance(span, float) else service.range(query, *span)
                answers[number] = asked
        answers[1] = _aged(answers[1], metrics.stale_s)
        found, stale, within, before = (_shelved(answer, _naming(metrics)) for answer in answers)
        for key, series in stale.items():
            found[key] += series
        warned = "; ".join(dict.fromkeys(warning for answer in answers for warning in answer.warnings))
        return Round(now, found, within, before, warned)

    def _service(self, metrics: Metrics, timeout_s: float) -> Prometheus:
        pin = metrics.fingerprint.removeprefix("sha256:").replace(":", "").lower()
        trust = Trust(self._root / metrics.ca if metrics.ca else None, pin)
        return Prometheus(metrics.url, trust, self._signed(metrics), timeout_s)

    def _signed(self, metrics: Metrics) -> Sign:
        if metrics.credentials:
            known = split(secret(metrics.credentials, self._root), called(metrics.credentials))
            return HTTPBasicAuth(known.user.encode(), known.password.encode())
        return Bearer(secret(metrics.token, self._root) if metrics.token else "")


def _declared(node: Node) -> Metrics:
    try:
        return Metrics.model_validate(node.variables.get("metrics"))
    except ValidationError:
        raise Trouble(f"{node.name} has no metrics that can be understood", fix="`assay check` says why") from None


def _naming(metrics: Metrics) -> dict[str, str]:
    return {label: text for label, text in metrics.match.items() if "{name}" in text}


def _constant(metrics: Metrics) -> str:
    """Return the matchers that narrow every query, each after a comma."""
    fixed = sorted((label, text) for label, text in metrics.match.items() if "{name}" not in text)
    return "".join(f",{label}={json.dumps(text, ensure_ascii=False)}" for label, text in fixed)


def _queries(metrics: Metrics, monitoring: Monitoring, now: float) -> Iterator[tuple[str, float | Window]]:
    """Yield each query with its time or window."""
    narrow, names = _constant(metrics), json.dumps("|".join(metrics_of(monitoring)))
    samples, by = f"{{__name__=~{names}{narrow}}}", ", ".join(sorted({*labels_of(monitoring), *_naming(metrics)}))
    fresh = f"max by ({by}) (last_over_time({samples}[{metrics.stale_s:.0f}s]))"
    yield fresh, now
    yield f"max by ({by}) (last_over_time({samples}[{LOOK_BACK * metrics.stale_s:.0f}s])) unless on ({by}) {fresh}", now
    if monitoring.xid:
        gauge, window = f"{monitoring.xid.metric}{{{narrow[1:]}}}", Window.before(now, metrics.xid_hours)
        yield window.query(gauge), window
        yield window.before_it(gauge), window.start - window.step_s


def _aged(answer: Answer, stale_s: float) -> Answer:
    """Return an answer with the samples where they are at least: a query dates them to when it was asked."""
    older = [Series(one.labels, [(at - stale_s - 1, number) for at, number in one.samples]) for one in answer.series]
    return Answer(older, answer.warnings)


def _shelved(answer: Answer, naming: Mapping[str, str]) -> dict[tuple[str, str], list[Series]]:
    shelf: dict[tuple[str, str], list[Series]] = defaultdict(list)
    for series in answer.series:
        for label in naming:
            if text := series.labels.get(label):
                shelf[label, text].append(series)
    return shelf


def _of_node(node: Node, metrics: Metrics, monitoring: Monitoring, found: Round) -> dict[str, Any]:
    keys = [(label, text.replace("{name}", node.name)) for label, text in _naming(metrics).items()]
    mine = _mine(found.found, keys)
    if not mine:
        said = " or ".join(f'{label}="{text}"' for label, text in keys)
        return failed(f"{metrics.url} has no series with {said}{f': {found.warned}' if found.warned else ''}")
    tree = readings(monitoring, mine, Look(found.at, metrics.stale_s, found.warned))
    if monitoring.xid:
        gauge, by = monitoring.xid.metric, monitoring.xid.by
        changes = changes_in(_mine(found.within, keys), _mine(found.before, keys), by)
        now = [one for one in mine if one.labels.get("__name__") == gauge]
        _add_codes(tree, codes(now, changes, by), changes, found.at)
    return {**tree, "source": value(f"Prometheus at {metrics.url}")}


def _mine(shelf: Shelf, keys: Sequence[tuple[str, str]]) -> list[Series]:
    return [one for key in keys for one in shelf.get(key, ())]


def _add_codes(tree: dict[str, Any], told: Mapping[str, Any], changes: Sequence[Change], at: float) -> None:
    devices = tree["gpu"].get("devices", {}) if isinstance(tree["gpu"], dict) else {}
    for place, code in told.items():
        if place in devices:
            devices[place]["xid"] = code
    uptime = tree["host"].get("uptime_s", {}) if isinstance(tree["host"], dict) else {}
    booted = at - uptime["value"] if "value" in uptime else None
    tree["metric_events"] = {"lines": value(lines(changes, booted))}
