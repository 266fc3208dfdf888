"""Turns alerts into faults in the ledger, once each, and notes those that are over or of no node of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from assay.controller.context import ControllerContext
from assay.controller.controller_locks import hold_fault_lock
from assay.controller.ingest.fault_recording import AgentFaultRecorder
from assay.lifecycle import ledger_entries
from assay.lifecycle.faults.detection import find_alert_clearances
from assay.lifecycle.faults.sightings import map_parts_by_pci
from assay.lifecycle.node_state_projection import NodeStateProjection
from assay.model.evidence import EvidenceDocument
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.reading import value
from assay.model.timestamps import format_time
from assay.observe.prometheus.alert_mapping import MappedAlert


class AlertCounts(NamedTuple):
    """How many alerts are taken, how many of them no rule says the fault of, how many name no node of ours."""

    total: int
    unmapped: int
    unplaced: int


class AlertRecorder:
    """Keeps up with the ledger. For one thread at a time; `tell` is told in one line what no rule knows."""

    def __init__(self, desk: ControllerContext, tell: Callable[[str], None] = lambda _: None) -> None:
        self._desk, self._tell = desk, tell
        self._stream, self._chronicle = AgentFaultRecorder(desk), NodeStateProjection()

    def record(self, alerts: Sequence[MappedAlert]) -> AlertCounts:
        """Write down what these alerts say; the same again adds nothing. Raises Trouble: then send all again."""
        ours = sorted((one for one in alerts if one.node), key=lambda one: (one.node, one.alert.started_at))
        elsewhere = [one for one in alerts if not one.node]
        firing = [one for one in ours if one.alert.status == "firing"]
        self._stream.record([self._evidence(node, some) for node, some in groupby(firing, lambda one: one.node)])
        resolved = [one for one in ours if one.alert.status == "resolved"]
        with hold_fault_lock(self._desk.home):
            self._chronicle.apply(self._desk.ledger.entries(after=self._chronicle.seq))
            entries = [entry for one in resolved for entry in self._make_end_entries(one)]
            self._desk.ledger.append(*entries, *(self._make_note_entry("alert.elsewhere", one) for one in elsewhere))
        unmapped = [one for one in alerts if not one.matched_rule]
        for one in {(one.fault, one.node): one for one in (*unmapped, *elsewhere)}.values():
            self._tell(_format_unknown_alert(one))
        return AlertCounts(len(alerts), len(unmapped), len(elsewhere))

    def _evidence(self, node: str, alerts: Iterable[MappedAlert]) -> EvidenceDocument:
        firing = [
            {
                "fault": one.fault,
                "part": one.part,
                "at": one.alert.started_at.isoformat(),
                "detail": _format_detail(one),
                "fingerprint": one.alert.fingerprint,
            }
            for one in alerts
        ]
        return EvidenceDocument(node, self._desk.clock.now(), {"alerts": {"firing": value(firing)}})

    def _make_end_entries(self, one: MappedAlert) -> list[LedgerEntry]:
        """Return the note that an alert is over, and where its rule says so the end of its fault."""
        noted = self._make_note_entry("alert.resolved", one)
        story = self._chronicle.node_state(one.node)
        if story is None or not one.over:
            return [noted]
        node, parts = self._desk.fleet.nodes[one.node], map_parts_by_pci(self._desk.fleet.spec_of(one.node))
        subject = f"{node.subject}/{parts.get(one.part.lower(), one.part)}".rstrip("/")
        because = f"the alert {one.alert.name} is resolved"
        over = find_alert_clearances(story, one.fault, subject, because)
        return [noted, *(ledger_entries.make_cleared_entry(one.node, end, self._desk.clock.now()) for end in over)]

    def _make_note_entry(self, kind: str, one: MappedAlert) -> LedgerEntry:
        began = format_time(one.alert.started_at)
        said = (one.alert.fingerprint, began)
        body: dict[str, Any] = {"alert": one.alert.name, "fault": one.fault, "part": one.part, "began": began}
        body |= {"detail": _format_detail(one), "fingerprint": one.alert.fingerprint}
        return LedgerEntry(derive_id(kind, *said), self._desk.now, kind, one.node, body)


def _format_detail(one: MappedAlert) -> str:
    said = one.alert.annotations.get("summary") or one.alert.annotations.get("description") or ""
    return f"alert {one.alert.name}{': ' if said else ''}{' '.join(said.split())}"[:300]


def _format_unknown_alert(one: MappedAlert) -> str:
    where = f"on {one.node}" if one.node else f"of no node of ours ({_format_labels(one.alert.labels)})"
    why = "" if one.matched_rule else "no rule says what it is; "
    return f"alert {one.alert.name} {where}: {why}noted as {one.fault}"


def _format_labels(labels: Any) -> str:
    return ", ".join(f"{name}={text[:40]}" for name, text in sorted(labels.items())[:4])
