"""Parses Alertmanager's payloads and maps each alert to a fault of a node. Pure.

Payload: https://prometheus.io/docs/alerting/latest/configuration/#webhook_config, version 4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.adapters.prometheus.readings import normalize_part_name
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.node import Node
from assay.model.outside_documents import describe_mistakes
from assay.model.specs.monitoring import AlertMapping, AlertRule

LabelText = Annotated[str, Field(max_length=4096)]
MAX_ALERTS = 10_000
LABEL_PLACEHOLDER = re.compile(r"\{(\w+)\}")
FAULT_NAME = re.compile(r"[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]{0,63})+")


class AlertmanagerAlert(BaseModel):
    """One alert. `fingerprint` and `startsAt` together identify it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    status: Literal["firing", "resolved"]
    labels: dict[LabelText, LabelText] = Field(max_length=256)
    annotations: dict[LabelText, LabelText] = Field(default={}, max_length=256)
    startsAt: datetime  # noqa: N815 — Alertmanager's own name
    fingerprint: str = Field(min_length=1, max_length=64)

    @property
    def name(self) -> str:
        """The name of its rule, `alertname`."""
        return self.labels.get("alertname", "unnamed")

    @property
    def text(self) -> str:
        """What it says to people, in a line."""
        return " ".join((self.annotations.get("summary") or self.annotations.get("description") or "").split())

    @property
    def started_at(self) -> datetime:
        """The time when it began to fire, in UTC."""
        return self.startsAt.replace(tzinfo=self.startsAt.tzinfo or UTC).astimezone(UTC)


class ToolSignal(AlertmanagerAlert):
    """What another tool says, as an alert: `source` is that tool, `until` how long it holds if nobody says it again."""

    source: str
    until: datetime | None = None


class AlertmanagerPayload(BaseModel):
    """The body of one webhook call. `truncatedAlerts` is the number of alerts that Alertmanager left out."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    version: Literal["4"]
    alerts: list[AlertmanagerAlert] = Field(max_length=MAX_ALERTS)
    truncatedAlerts: int = Field(default=0, ge=0)  # noqa: N815 — Alertmanager's own name


@frozen
class MappedAlert:
    """An alert and its fault: `node` is "" for none that it may speak of, `part` "" for the whole node.

    Without a rule in the fleet's git, an alert speaks of no node: its labels are words of whoever wrote them. `over`
    says that the alert means recovery. `fault` is "" where no rule of the Monitoring document matched. `nodes` are
    those of a job that ended: which of them it is about, their faults say. `until`: when it ends.
    """

    alert: AlertmanagerAlert
    node: str
    part: str
    fault: str
    over: bool
    weight: int = 1
    until: str = ""
    nodes: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """Who says it: the source of the fault's sighting."""
        return f"signal {self.alert.source}" if isinstance(self.alert, ToolSignal) else "alert"

    @property
    def detail(self) -> str:
        """What it says, in a line."""
        return f"{self.source.partition(' ')[0]} {self.alert.name}{': ' if self.alert.text else ''}{self.alert.text}"[
            :300
        ]


def parse_alertmanager_payload(body: bytes) -> AlertmanagerPayload:
    """Parse the body of a webhook call. Raises AssayError, whose message shows nothing of the body but a path."""
    try:
        return AlertmanagerPayload.model_validate_json(body)
    except (ValidationError, RecursionError) as error:
        deep = "the body: it is nested too deeply"
        mistakes = describe_mistakes(error, "the body") if isinstance(error, ValidationError) else deep
        raise AssayError(f"no alerts of Alertmanager's version 4: {mistakes}"[:600]) from None


def map_alert(
    alert: AlertmanagerAlert, alerts: AlertMapping, nodes: Mapping[str, Node], weight: int = 1
) -> MappedAlert:
    """Map an alert by the first rule that matches it. Without one, or with labels that make no name, it is no fault.

    `weight` is that of rules that say none.
    """
    matching = ((rule, labels) for rule in alerts.rules for labels in [_match_rule(rule, alert)] if labels is not None)
    rule, labels = next(matching, (None, alert.labels))
    fault = LABEL_PLACEHOLDER.sub(lambda match: labels.get(match[1], "").lower(), rule.fault) if rule else ""
    if rule is None or not FAULT_NAME.fullmatch(fault):
        return MappedAlert(alert, "", "", "", over=bool(rule and rule.over))
    parts = (normalize_part_name(labels[label], how) for label, how in alerts.part.items() if label in labels)
    part = next((part[:128] for part in parts if part and "/" not in part), "")
    until = alert.until if isinstance(alert, ToolSignal) else None
    until = alert.started_at + timedelta(hours=rule.hours) if rule.hours else until
    return MappedAlert(
        alert,
        _find_node(alerts, labels, nodes),
        part,
        fault,
        over=rule.over,
        weight=weight if rule.weight is None else rule.weight,
        until=until.isoformat() if until else "",
        nodes=tuple(
            name for name in labels.get("nodes", "").split(",") if _find_node(alerts, {alerts.node[0]: name}, nodes)
        ),
    )


def _match_rule(rule: AlertRule, alert: AlertmanagerAlert) -> dict[str, str] | None:
    """Return the labels of an alert that a rule matches, with what its expression finds in the text; else None."""
    labels = alert.labels
    if not all(labels.get(name) and text in ("*", labels[name]) for name, text in rule.match.items()):
        return None
    match = re.search(rule.text, alert.text) if rule.text else None
    if rule.text and not match:
        return None
    return labels | {name: text for name, text in (match.groupdict() if match else {}).items() if text}


def _find_node(alerts: AlertMapping, labels: Mapping[str, str], nodes: Mapping[str, Node]) -> str:
    """Return the node that the first fitting label names, with or without a port or a domain, "" for none.

    It is of the pools of which the alerts may speak.
    """
    for label in alerts.node:
        host = labels.get(label, "").partition(":")[0]
        for name in (host, host.partition(".")[0]):
            if name in nodes and (not alerts.pools or nodes[name].pool in alerts.pools):
                return name
    return ""
