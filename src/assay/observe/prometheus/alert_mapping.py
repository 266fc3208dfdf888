"""Alerts as Alertmanager sends them, and which fault of which node each is. Pure.

Payload: https://prometheus.io/docs/alerting/latest/configuration/#webhook_config, version 4.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.model.errors import AssayError
from assay.model.specs.monitoring import AlertMapping, AlertRule
from assay.observe.prometheus.metric_readings import normalize_part_name

LabelText = Annotated[str, Field(max_length=4096)]
MAX_ALERTS = 10_000
LABEL_SLOT = re.compile(r"\{(\w+)\}")
NOT_A_NAME = re.compile(r"[^a-z0-9]+")


class AlertmanagerAlert(BaseModel):
    """One alert. It is the same as another with its `fingerprint` and `startsAt`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    status: Literal["firing", "resolved"]
    labels: dict[LabelText, LabelText] = Field(max_length=256)
    annotations: dict[LabelText, LabelText] = Field(default={}, max_length=256)
    startsAt: datetime  # noqa: N815 — Alertmanager's own name
    fingerprint: str = Field(min_length=1, max_length=64)

    @property
    def name(self) -> str:
        """What its rule is called."""
        return self.labels.get("alertname", "unnamed")

    @property
    def started_at(self) -> datetime:
        """When it began to fire, in UTC."""
        return self.startsAt.replace(tzinfo=self.startsAt.tzinfo or UTC).astimezone(UTC)


class AlertmanagerPayload(BaseModel):
    """What one call of the webhook brings. `truncatedAlerts`: how many were left out there."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    version: Literal["4"]
    alerts: list[AlertmanagerAlert] = Field(max_length=MAX_ALERTS)
    truncatedAlerts: int = Field(default=0, ge=0)  # noqa: N815 — Alertmanager's own name


@dataclass(frozen=True, slots=True)
class MappedAlert:
    """An alert, and the fault of a part ("" all) of a node ("" none of ours) that it is. `known`: a rule said so."""

    alert: AlertmanagerAlert
    node: str
    part: str
    fault: str
    over: bool
    matched_rule: bool


def parse_alertmanager_payload(body: bytes) -> AlertmanagerPayload:
    """Return what a webhook's call holds. Raises Trouble, which repeats nothing of it but the place."""
    try:
        return AlertmanagerPayload.model_validate_json(body)
    except (ValidationError, RecursionError) as error:
        first = error.errors(include_input=False, include_url=False)[0] if isinstance(error, ValidationError) else None
        where = ".".join(map(str, first["loc"])) if first else ""
        raise AssayError(f"no alerts of Alertmanager's version 4: {where or 'the whole'} does not fit"[:300]) from None


def map_alert(alert: AlertmanagerAlert, alerts: AlertMapping, nodes: Collection[str]) -> MappedAlert:
    """Return what an alert is here; one that no rule knows is `alert.NAME`, which no catalogue has."""
    rule = next((rule for rule in alerts.rules if _fits(rule, alert.labels)), None)
    fault = _fill_labels(rule.fault, alert.labels) if rule else ""
    node, part = _node(alerts, alert.labels, nodes), _part(alerts, alert.labels)
    return MappedAlert(alert, node, part, fault or f"alert.{_kebab(alert.name)}", bool(rule and rule.over), bool(fault))


def _fits(rule: AlertRule, labels: Mapping[str, str]) -> bool:
    return all(labels.get(name) and text in ("*", labels[name]) for name, text in rule.match.items())


def _fill_labels(fault: str, labels: Mapping[str, str]) -> str:
    """Return the fault with its labels filled in, "" where one of them makes no name."""
    name = LABEL_SLOT.sub(lambda found: labels.get(found[1], "").lower(), fault)
    return name if re.fullmatch(r"[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]{0,63})+", name) else ""


def _node(alerts: AlertMapping, labels: Mapping[str, str], nodes: Collection[str]) -> str:
    """Return the first label that names a node of ours, with or without a port or a domain."""
    for label in alerts.node:
        host = labels.get(label, "").partition(":")[0]
        for name in (host, host.partition(".")[0]):
            if name in nodes:
                return name
    return ""


def _part(alerts: AlertMapping, labels: Mapping[str, str]) -> str:
    named = (normalize_part_name(labels[label], how) for label, how in alerts.part.items() if label in labels)
    return next((part[:128] for part in named if part and "/" not in part), "")


def _kebab(name: str) -> str:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name[:64])
    return NOT_A_NAME.sub("-", spaced.lower()).strip("-") or "unnamed"
