"""Turns alerts and signals into faults in the ledger, and records those that are resolved or of no known node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from typing import NamedTuple

from assay.act.ingest.fault_recording import record_agent_faults
from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.adapters.prometheus.alerts import MappedAlert
from assay.decide.faults.recovery import find_alert_clearances
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.node_state import NodeState
from assay.model.entries.faults import AlertElsewhereEntry, AlertResolvedEntry
from assay.model.evidence import EvidenceDocument
from assay.model.faults.sightings import map_parts_by_pci
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.reading import value
from assay.model.timestamps import format_time, parse_time

JOB_WINDOW = timedelta(minutes=10)
"""So long before and after a job's end a fault of its nodes may be the cause: NCCL's watchdog waits up to 10 min."""
MACHINE_BLAMES = ("hardware", "driver", "environment")


class AlertCounts(NamedTuple):
    """How many alerts were recorded; how many of them have no rule for their fault; how many speak of no node.

    `unnoted`: how many of the last came since the last entry that counts them. `entries`: how many the ledger got.
    """

    total: int
    unmapped: int
    unplaced: int
    unnoted: int
    entries: int


def record_alerts(
    context: ControllerContext,
    alerts: Sequence[MappedAlert],
    report: Callable[[str], None] = lambda _: None,
    unnoted: int = 0,
) -> AlertCounts:
    """Append what these alerts say; the same alerts again append nothing.

    Alerts of no node, and the `unnoted` ones before, are one entry an hour. `report` gets a line with each such entry.
    Raises AssayError when the ledger cannot be written: then
    Alertmanager must send all of them again.
    """
    node_states = read_node_states(context.ledger)
    alerts = [placed for alert in alerts for placed in place_job_end(node_states, alert)]
    placed = sorted((alert for alert in alerts if alert.node), key=lambda alert: (alert.node, alert.alert.started_at))
    unplaced = [alert for alert in alerts if not alert.node]
    firing = [alert for alert in placed if alert.alert.status == "firing"]
    faults = record_agent_faults(
        context, [_make_evidence(context, *group) for group in groupby(firing, lambda alert: alert.node)]
    )
    with context.hold_fault_lock():
        states = read_node_states(context.ledger)
        resolved = [alert for alert in placed if alert.alert.status == "resolved"]
        entries = [entry for alert in resolved for entry in _make_resolved_entries(context, states, alert)]
        unnoted += len(unplaced)
        if unplaced:
            content = AlertElsewhereEntry(**_describe_alert(unplaced[0]), alerts=unnoted)
            hour = f"{context.clock.now():%Y-%m-%dT%H}"
            entries.append(content.make_entry(derive_id(content.kind, hour), context.now))
        is_new = context.ledger.append(*entries)
    is_noted = bool(unplaced) and is_new[-1]
    for alert in unplaced[:is_noted]:
        labels = ", ".join(f"{name}={text[:40]}" for name, text in sorted(alert.alert.labels.items())[:4])
        nowhere = "no machine of its nodes had a fault then" if alert.nodes else "of no node of which it may speak"
        reason = nowhere if alert.fault else "no rule says what it is"
        report(f"alert {alert.alert.name} ({labels}): {reason}; it touches no node")
    count = sum(not alert.fault for alert in alerts)
    return AlertCounts(len(alerts), count, len(unplaced), 0 if is_noted else unnoted, len(faults) + sum(is_new))


def place_job_end(node_states: Mapping[str, NodeState], mapped: MappedAlert) -> Iterator[MappedAlert]:
    """Yield the end of a job for each of its nodes that had a fault of the machine then; anything else as it is.

    Without such a fault it is about the node that the scheduler itself says has failed, else about none: it died by
    its user.
    """
    at = mapped.alert.started_at
    guilty = [
        name
        for name in mapped.nodes
        for fault in (node_states[name].faults if name in node_states else ())
        if fault.blame in MACHINE_BLAMES
        and fault.severity != "informational"
        and parse_time(fault.first_seen) - JOB_WINDOW <= at <= parse_time(fault.last_seen) + JOB_WINDOW
    ]
    yield from (replace(mapped, node=name) for name in dict.fromkeys(guilty)) if guilty else [mapped]


def _make_evidence(context: ControllerContext, node: str, alerts: Iterable[MappedAlert]) -> EvidenceDocument:
    firing = [
        {
            "fault": alert.fault,
            "part": alert.part,
            "at": alert.alert.started_at.isoformat(),
            "detail": alert.detail,
            "fingerprint": alert.alert.fingerprint,
            "source": alert.source,
            "weight": alert.weight,
            "until": alert.until,
        }
        for alert in alerts
    ]
    return EvidenceDocument(node, context.clock.now(), {"alerts": {"firing": value(firing)}})


def _make_resolved_entries(
    context: ControllerContext, node_states: Mapping[str, NodeState], mapped: MappedAlert
) -> list[LedgerEntry]:
    """Return the entry for a resolved alert, and where its rule says so the end of its fault."""
    content = AlertResolvedEntry(**_describe_alert(mapped))
    of_alert = derive_id(content.kind, content.fingerprint, content.began)
    resolved = content.make_entry(of_alert, context.now, mapped.node)
    node_state = node_states.get(mapped.node)
    if node_state is None or not mapped.over:
        return [resolved]
    node, parts = context.fleet.nodes[mapped.node], map_parts_by_pci(context.fleet.spec_of(mapped.node))
    subject = f"{node.subject}/{parts.get(mapped.part.lower(), mapped.part)}".rstrip("/")
    ended = find_alert_clearances(
        node_state, mapped.fault, subject, f"the alert {mapped.alert.name} is resolved", mapped.source
    )
    now = context.clock.now()
    return [resolved, *(decision_and_fault_entries.make_cleared_entry(mapped.node, end, now) for end in ended)]


def _describe_alert(mapped: MappedAlert) -> dict[str, str]:
    """Return what the entries of an alert say of it."""
    return {
        "alert": mapped.alert.name,
        "fault": mapped.fault,
        "part": mapped.part,
        "began": format_time(mapped.alert.started_at),
        "detail": mapped.detail,
        "fingerprint": mapped.alert.fingerprint,
    }
