"""Monitoring: how the metrics and alerts of a site map to assay's readings and faults."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from assay.model.specs.credential_reference import CredentialReference, TokenReference, TokenReferences
from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel
from assay.model.specs.watched_lines import RegexText

MetricName = Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")]
MetricLabel = Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")]
ReadingPath = Annotated[str, Field(pattern=r"^\w+(\.\w+)*$")]
FaultName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*(\.([a-z0-9][a-z0-9-]*|\{[a-zA-Z_]\w*\}))+$")]

LabelSpelling = Literal["plain", "pci", "index"]


class MetricReading(StrictModel):
    """The metric of a reading, and how its value is read.

    - `reads`: the number itself, a `truth` (0 is false), or the seconds `since` a Unix time. With `label`, the reading
      is that label's text.
    - `factor`: multiplies the number into the reading's unit. `words`: number → text. `unknown`: the number that means
      "no value". `where`: labels that the series must have.

    `metric`: the name of the metric. `label`: the label whose text is the reading.
    """

    metric: MetricName
    reads: Literal["number", "truth", "since"] = "number"
    label: MetricLabel | None = None
    factor: float = Field(default=1, gt=0)
    words: dict[str, str] = Field(default={})
    unknown: float | None = None
    where: dict[MetricLabel, str] = Field(default={})


class MetricGroup(StrictModel):
    """Readings below the probe's branch `under`: of the node, or of each part that the label `by` names.

    `spelled: pci` turns DCGM's `00000000:1B:00.0` into Linux's `0000:1b:00.0`. `parts`: a regular expression for the
    parts that belong to the group.

    `readings`: the metric of each reading, by the reading's path.
    """

    under: ReadingPath
    by: MetricLabel | None = None
    spelled: LabelSpelling = "plain"
    parts: RegexText | None = None
    readings: dict[ReadingPath, MetricReading] = Field(default={})


class XidGauge(StrictModel):
    """A gauge that keeps the last XID of a GPU, 0 before the first. The label `by` says which GPU.

    `metric`: its name.
    """

    metric: MetricName
    by: MetricLabel


class AlertRule(StrictModel):
    """The fault that an alert or a signal means. It must have all labels of `match`; "*" matches any text.

    - `text`: a regular expression that its text must hold; what the expression's groups match are further labels.
    - `{LABEL}` in `fault` is replaced by that label's text. `over`: the fault ends when the alert is resolved;
      otherwise it stays open, or ends after `hours`.
    - `weight`: as so many sightings of assay's own it counts. With 0 the fault is only recorded. Without it, an alert
      counts once, and a signal not at all.
    """

    match: dict[MetricLabel, str] = Field(min_length=1)
    text: RegexText | None = None
    fault: FaultName
    over: bool = False
    hours: float | None = Field(default=None, gt=0)
    weight: int | None = Field(default=None, ge=0, le=100)
    source: str = Field(min_length=1)


class AlertMapping(StrictModel):
    """The labels that name a node, and a part of it (`index`: 3 is gpu3). The first label that an alert has counts.

    `token`: what the sender must present. Without it, all alerts are refused.

    `node`: labels with the name of a node. `pools`: those of whose nodes these alerts may speak; empty: all.
    `part`: labels with that of a part, and how they write it. `rules`: the fault of each alert.
    """

    node: list[MetricLabel] = Field(min_length=1)
    pools: list[str] = Field(default=[])
    part: dict[MetricLabel, LabelSpelling] = Field(default={})
    token: TokenReference | None = None
    rules: list[AlertRule] = Field(default=[])


class Monitoring(SpecDocument):
    """Maps metrics to readings and alerts to faults. A site with other names writes a document that `extends` this.

    `groups`: metrics by part of the node. `xid`: the gauge of the last XID. `alerts`: how alerts become faults.
    `signals`: how the signals of other tools become faults. Their labels are `source`, `node` or `job` and `nodes`,
    `part`, `class`, `severity`; of Kubernetes `condition`, `event`, `reason`; of a job `end`.
    `metrics_token`: what a Prometheus must present at assay's own `/metrics`; one token or two. The token in
    `.assay/reader-token` is good there too.
    """

    kind: Literal["Monitoring"]
    sources: list[str] = Field(min_length=1)
    groups: dict[SpecName, MetricGroup] = Field(default={})
    xid: XidGauge | None = None
    alerts: AlertMapping | None = None
    signals: AlertMapping | None = None
    metrics_token: TokenReferences = Field(default=[])

    @model_validator(mode="after")
    def _each_reading_once(self) -> Monitoring:
        seen: dict[tuple[str, bool], str] = {}
        for name, group in self.groups.items():
            for path in group.readings:
                place = (f"{group.under}.{path}", group.by is None)
                if seen.setdefault(place, name) != name:
                    raise ValueError(f"{place[0]} is read in both {seen[place]} and {name}")
        return self


PrometheusUrl = Annotated[str, Field(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")]
LabelTemplate = Annotated[str, Field(pattern=r"^[^{}]*(\{name\}[^{}]*)?$")]
TLS_FINGERPRINT = r"^(sha256:[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31})?$"


class PrometheusSettings(StrictModel):
    """The Prometheus that scrapes the node, and the labels of the node's series.

    - `match`: labels by name. A series belongs to the node if a label with `{name}`, filled with the node's name,
      matches. Labels without `{name}` narrow every query (`cluster: hall1`).
    - `credentials`: `user:password`. `token`: a bearer token. `ca`, `fingerprint`: whom to trust for HTTPS.
    - `stale_s`: the greatest age of a sample. `xid_hours`: how far back XIDs are searched; it must be longer than the
      time between two observations. `monitoring`: the Monitoring document that maps metrics to readings.

    `url`: the address of the server.
    """

    url: PrometheusUrl
    match: dict[MetricLabel, LabelTemplate] = Field(min_length=1)
    credentials: CredentialReference | None = None
    token: CredentialReference | None = None
    ca: str = ""
    fingerprint: str = Field(default="", pattern=TLS_FINGERPRINT)
    stale_s: float = Field(default=180, gt=0, le=3600)
    xid_hours: float = Field(default=24, gt=0, le=168)
    monitoring: SpecName = "exporters"

    @model_validator(mode="after")
    def _is_consistent(self) -> PrometheusSettings:
        if not any("{name}" in text for text in self.match.values()):
            raise ValueError("no label of `match` names the node: write {name} where its name stands")
        if self.credentials and self.token:
            raise ValueError("give credentials or token, not both")
        if (self.credentials or self.token) and self.url.startswith("http://") and not _is_loopback(self.url):
            raise ValueError("secrets do not travel in the clear: use https, or a Prometheus on this machine")
        return self


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
