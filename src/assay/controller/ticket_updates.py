"""Keeps the tickets in the ledger at what there is work for, and closes only what was proved fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from assay.controller.cache.fleet_state import FleetStateCache
from assay.controller.context import ControllerContext
from assay.controller.desired_tickets import TechnicianNotes, list_desired_tickets
from assay.fabric.comparison.compare import FabricComparison
from assay.lifecycle.asset_history import ASSET_ENTRY_KINDS as WHERE
from assay.lifecycle.asset_history import describe_returned_part, find_returned_parts
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.outcome import RecordedOutcome
from assay.model.ticket import Ticket
from assay.model.timestamps import parse_time
from assay.tickets.ticket_lifecycle import TICKET_KINDS, diff_tickets, read_ticket_statuses

STATE_TICKET_KINDS = ("stay", "opened")
"""Kinds of tickets that end when the node leaves its state."""


@dataclass(frozen=True)
class ClosingProofs:
    """What can prove a ticket fixed: newest outcomes, the nodes' stays, complete discoveries and their times."""

    views: Mapping[str, NodeSnapshot]
    comparisons: Mapping[str, FabricComparison]
    scanned_at: Mapping[str, str]

    def find_proof(self, ticket: Ticket, since: str) -> str:
        """Return what proved the ticket fixed after `since`, "" where nothing did."""
        if ticket.verify.startswith("fabric scan "):
            return self._scan(ticket.verify.removeprefix("fabric scan "), since)
        view = self.views.get(ticket.node)
        if view is None:
            return ""
        if ticket.verify.startswith("suites/"):
            return _find_passes(view, ticket.verify.splitlines(), since)
        return self._left(view, ticket)

    def _scan(self, design: str, since: str) -> str:
        cabling, at = self.comparisons.get(design), self.scanned_at.get(design, "")
        complete = cabling is not None and cabling.verdict != "partial"
        return f"fabric scan {design} at {at}" if complete and parse_time(at) > parse_time(since) else ""

    def _left(self, view: NodeSnapshot, ticket: Ticket) -> str:
        kind, _, rest = ticket.key.partition("/")
        if kind in STATE_TICKET_KINDS and rest.partition("/")[2] == view.node_state.stay_id:
            return _find_closed_reason(view) if kind == "opened" else ""
        if kind not in STATE_TICKET_KINDS and parse_time(view.node_state.repaired_at) <= parse_time(
            view.node_state.since
        ):
            return ""
        last = view.node_state.repairs[-1] if view.node_state.repairs else None
        if kind not in STATE_TICKET_KINDS and last and last.kind == "replaced":
            return f"another node stands in this place since {last.at[:16]}"
        return f"{view.name} went to {view.node_state.state}: {view.node_state.reason}"


def update_tickets(desk: ControllerContext, memory: FleetStateCache | None = None) -> None:
    """Append what opens, updates, closes and reopens tickets, so that they are what is wanted."""
    memory = memory or FleetStateCache(desk)
    found = memory.fabric_comparisons.get_all(desk)
    cablings = {name: one.comparison for name, one in found.items()}
    known = read_ticket_statuses(desk.ledger.entries(kinds=TICKET_KINDS))
    situation = memory.build_snapshot({one.ticket.node for one in known.values() if not one.closed_by})
    asked = list_desired_tickets(
        situation, desk.ledger.entries(kinds=["decision"]), cablings, _read_technician_notes(desk)
    )
    proofs = ClosingProofs(_views_by_name(situation), cablings, {name: one.scanned_at for name, one in found.items()})
    window = timedelta(days=desk.policy.reopen_days)
    desk.ledger.append(*diff_tickets(known, asked, proofs.find_proof, desk.now, window))


def _read_technician_notes(desk: ControllerContext) -> TechnicianNotes:
    """Return what technicians do in which state, and the parts that came back, by the node that they are in."""
    inspections = {state: one for listed in desk.fleet.checklists.values() for state, one in listed.states.items()}
    nodes = {entry.node for entry in desk.ledger.entries(kinds=["part.returned"])}
    back = {
        name: [describe_returned_part(one) for one in find_returned_parts(desk.ledger.entries(name, WHERE))]
        for name in nodes
    }
    return TechnicianNotes(inspections, back)


def _views_by_name(situation: FleetSnapshot) -> dict[str, NodeSnapshot]:
    return {view.name: view for view in situation.nodes}


def _find_passes(view: NodeSnapshot, checks: list[str], since: str) -> str:
    newest = {f"{one.outcome.check}[{one.outcome.subject}]": one for one in view.latest}
    found = [newest.get(check) for check in checks]
    if any(one is None or not _proves(one, since) for one in found):
        return ""
    return "; ".join(one.id for one in found if one)


def _find_closed_reason(view: NodeSnapshot) -> str:
    """Return why nobody opens a node any more that was opened again and again, "" while somebody may."""
    if view.node_state.withdrawn and not view.node_state.pending:
        return "it need not be closed"
    return f"closed in its scheduler: {view.cordon}" if view.cordon else ""


def _proves(one: RecordedOutcome, since: str) -> bool:
    return one.outcome.verdict == "pass" and not one.is_dated_ahead and parse_time(one.measured_at) > parse_time(since)
