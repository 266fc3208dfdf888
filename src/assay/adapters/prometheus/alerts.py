"""Parses Alertmanager's payloads and maps each alert to a fault of a node. Pure.

Payload: https://prometheus.io/docs/alerting/latest/configuration/#webhook_config, version 4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.adapters.prometheus.readings import normalize_part_name
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.outside_documents import describe_mistakes
from assay.model.specs.monitoring import AlertMapping

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
    def started_at(self) -> datetime:
        """The time when it began to fire, in UTC."""
        return self.startsAt.replace(tzinfo=self.startsAt.tzinfo or UTC).astimezone(UTC)


class AlertmanagerPayload(BaseModel):
    """The body of one webhook call. `truncatedAlerts` is the number of alerts that Alertmanager left out."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    version: Literal["4"]
    alerts: list[AlertmanagerAlert] = Field(max_length=MAX_ALERTS)
    truncatedAlerts: int = Field(default=0, ge=0)  # noqa: N815 — Alertmanager's own name


@dataclass(frozen=True, slots=True)
class MappedAlert:
    """An alert and its fault: `node` is "" for none that it may speak of, `part` "" for the whole node.

    Without a rule in the fleet's git, an alert speaks of no node: its labels are words of whoever wrote them. `over`
    says that the alert means recovery. `fault` is "" where no rule of the Monitoring document matched.
    """

    alert: AlertmanagerAlert
    node: str
    part: str
    fault: str
    over: bool


def parse_alertmanager_payload(body: bytes) -> AlertmanagerPayload:
    """Parse the body of a webhook call. Raises AssayError, whose message shows nothing of the body but a path."""
    try:
        return AlertmanagerPayload.model_validate_json(body)
    except (ValidationError, RecursionError) as error:
        deep = "the body: it is nested too deeply"
        mistakes = describe_mistakes(error, "the body") if isinstance(error, ValidationError) else deep
        raise AssayError(f"no alerts of Alertmanager's version 4: {mistakes}"[:600]) from None


def map_alert(alert: AlertmanagerAlert, alerts: AlertMapping, nodes: Mapping[str, Node]) -> MappedAlert:
    """Map an alert by the first rule that matches it. Without one, or with labels that make no name, it is no fault."""
    labels = alert.labels
    matching = (
        rule
        for rule in alerts.rules
        if all(labels.get(name) and text in ("*", labels[name]) for name, text in rule.match.items())
    )
    rule = next(matching, None)
    fault = LABEL_PLACEHOLDER.sub(lambda match: labels.get(match[1], "").lower(), rule.fault) if rule else ""
    fault = fault if FAULT_NAME.fullmatch(fault) else ""
    parts = (normalize_part_name(labels[label], how) for label, how in alerts.part.items() if label in labels)
    part = next((part[:128] for part in parts if part and "/" not in part), "")
    node = _find_node(alerts, labels, nodes) if fault else ""
    return MappedAlert(alert, node, part, fault, over=bool(rule and rule.over))


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
