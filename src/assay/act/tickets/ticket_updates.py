"""Keeps the tickets in the ledger up to date with the work that there is, and closes only what is proved fixed.

The proof is a scan of the fabric, passed checks, or the next state of the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from assay.act.loop.context import ControllerContext
from assay.act.loop.pass_log import records_pass
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.schedules.due_slots import list_schedule_lines
from assay.act.schedules.slot_runner import read_schedule_history
from assay.act.tickets.collective_link_tickets import find_links, make_link_tickets
from assay.act.tickets.desired_tickets import (
    BURN_IN_TICKET_KIND,
    FOREIGN_TICKET_KIND,
    TICKET_CAUSES,
    TechnicianNotes,
    list_desired_tickets,
)
from assay.act.tickets.fleet_tickets import (
    BREAKER_TICKET_KIND,
    CAPACITY_TICKET_KIND,
    ROLLOUT_TICKET_KIND,
    TRUST_TICKET_KIND,
    make_paused_ticket,
    make_trust_tickets,
)
from assay.act.tickets.part_names import PartNames
from assay.act.tickets.ticket_diff import TICKET_STATUSES, TICKETS, diff_tickets
from assay.act.tickets.ticket_moves import INCIDENT_TICKET_KIND, SHARED_TICKET_KIND, TicketMoveFinder, find_incident_end
from assay.decide.state.asset_history import (
    ASSET_ENTRY_KINDS,
    NODES_WITH_RETURNED_PARTS,
    describe_returned_part,
    find_returned_parts,
)
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.fabric.compare.compare import FabricComparison
from assay.fabric.scan import format_fabric_subject
from assay.ledger.ledger_reader import read_projection
from assay.model.outcome import RecordedOutcome
from assay.model.ticket import Ticket
from assay.model.timestamps import parse_time

FABRIC_SCAN = "fabric scan "
"""What the proof of a link's ticket begins with; the fabric follows."""
ENDED_BY_THEMSELVES = {
    ROLLOUT_TICKET_KIND: "the rollout goes on, or has ended",
    TRUST_TICKET_KIND: "nothing waits for a person there any more",
    BREAKER_TICKET_KIND: "the breaker holds nothing back any more",
    BURN_IN_TICKET_KIND: "no node waits for it any more",
    CAPACITY_TICKET_KIND: "the pool has its nodes, or spares for them",
    SHARED_TICKET_KIND: "not so many nodes show it any more",
}
"""What is proved by kinds of tickets for which there is no work any more."""
STATE_TICKET_KINDS = ("stay", "late", "opened", FOREIGN_TICKET_KIND)
"""Kinds of tickets that end when the node leaves its state."""


@dataclass(frozen=True)
class ClosingProofs:
    """What can prove a ticket fixed: node snapshots by name, and by fabric its comparison and when it was scanned.

    `good_links` are the proofs of searches with collectives, by the key of a link's ticket. `snapshot` says which
    incidents there are.
    """

    views: Mapping[str, NodeSnapshot]
    comparisons: Mapping[str, FabricComparison]
    scanned_at: Mapping[str, str]
    good_links: Mapping[str, str] = field(default_factory=dict)
    snapshot: FleetSnapshot | None = None

    def find_proof(self, ticket: Ticket, since: str) -> str:
        """Return what proved the ticket fixed after `since` (ISO 8601), "" for nothing."""
        if ticket.verify.startswith(FABRIC_SCAN):
            fabric = ticket.verify.removeprefix(FABRIC_SCAN)
            comparison, at = self.comparisons.get(fabric), self.scanned_at.get(fabric, "")
            is_complete = comparison is not None and comparison.verdict != "partial"
            return f"fabric scan {fabric} at {at}" if is_complete and parse_time(at) > parse_time(since) else ""
        if ticket.key in self.good_links:
            return self.good_links[ticket.key]
        view = self.views.get(ticket.node)
        if view is None:
            return ""
        if parse_time(enrolled := view.node_state.enrolled_at) > parse_time(since):
            return f"another machine is the node since {enrolled[:16]}"
        checks = ticket.verify.splitlines() if ticket.verify.startswith("suites/") else []
        proof = _find_passes(view, checks, since) if checks else _find_transition(view, ticket)
        kind, _, rest = ticket.key.partition("/")
        if self.snapshot and kind == INCIDENT_TICKET_KIND:
            return proof or find_incident_end(self.snapshot, view, rest.partition("/")[2])
        return proof


def _find_passes(view: NodeSnapshot, checks: list[str], since: str) -> str:
    """Return the outcomes by which all of these checks passed after `since`."""

    def is_proof(recorded: RecordedOutcome) -> bool:
        is_young = parse_time(recorded.measured_at) > parse_time(since)
        return recorded.outcome.verdict == "pass" and not recorded.is_dated_ahead and is_young

    newest = {f"{recorded.outcome.check}[{recorded.outcome.subject}]": recorded for recorded in view.latest}
    passes = [newest[check] for check in checks if check in newest and is_proof(newest[check])]
    return "; ".join(recorded.id for recorded in passes) if len(passes) == len(checks) else ""


def _find_transition(view: NodeSnapshot, ticket: Ticket) -> str:
    """Return the transition, replacement or cordon after which the ticket has no work any more."""
    kind, _, rest = ticket.key.partition("/")
    state = view.node_state
    if kind in ENDED_BY_THEMSELVES:
        return ENDED_BY_THEMSELVES[kind]
    if kind == FOREIGN_TICKET_KIND and view.cordon is not None and not view.foreign_cordon:
        return "nobody else keeps the node closed any more"
    if kind in STATE_TICKET_KINDS:
        if rest.partition("/")[2] == state.stay_id:  # the node is still in the state of the ticket
            if kind == "opened" and state.withdrawn and not state.pending:
                return "it need not be closed"
            return f"closed in its scheduler: {view.cordon}" if kind == "opened" and view.cordon else ""
    else:
        if parse_time(state.repaired_at) <= parse_time(state.since):
            return ""
        if state.repairs and state.repairs[-1].kind == "replaced":
            return f"another node stands in this place since {state.repairs[-1].at[:16]}"
    return f"{view.name} went to {state.state}: {state.reason}"


@records_pass("tickets")
def update_tickets(context: ControllerContext, fleet_state: FleetSnapshotCache | None = None) -> None:
    """Append the entries that open, update, close and reopen tickets, so that they match the work that there is."""
    fleet_state = fleet_state or FleetSnapshotCache(context)
    scanned = fleet_state.fabric_comparisons.get_all(context)
    comparisons = {name: scan.comparison for name, scan in scanned.items()}
    known = read_projection(context.ledger, TICKET_STATUSES).by_key
    ticketed = {status.ticket.node for status in known.values() if not status.closed_by}
    rollout = fleet_state.rollouts.find_active()
    paused = rollout.pause.nodes if rollout and rollout.pause else ()
    snapshot = fleet_state.build_snapshot({*ticketed, *paused})
    causes = read_projection(context.ledger, TICKET_CAUSES)
    desired = list_desired_tickets(snapshot, causes, comparisons, _read_technician_notes(context))
    desired += make_paused_ticket(snapshot, rollout)
    desired += make_trust_tickets(context.fleet, snapshot)
    searches = (line for line in list_schedule_lines(context.fleet) if line.schedule.does == "collectives-search")
    links = find_links(searches, read_schedule_history(context.ledger))
    desired += make_link_tickets(links.named)
    views = {view.name: view for view in snapshot.nodes}
    scans = {name: scan.scanned_at for name, scan in scanned.items()}
    proofs = ClosingProofs(views, comparisons, scans, links.proofs, snapshot)
    window = timedelta(days=context.policy.reopen_days)
    moves = TicketMoveFinder(snapshot).find
    entries = diff_tickets(known, desired, proofs.find_proof, context.now, window, moves)
    context.ledger.append(*entries)


def list_fabrics_to_prove(context: ControllerContext) -> set[str]:
    """Return the fabrics of which nobody has scanned what a technician says is done."""
    fabrics = set()
    for record in read_projection(context.ledger, TICKETS).values():
        fabric = record.ticket.verify.removeprefix(FABRIC_SCAN)
        if record.done and not record.closed_at and fabric in context.fleet.designs:
            scan = context.evidence.latest(format_fabric_subject(context.fleet.designs[fabric]))
            if scan is None or scan.at < parse_time(record.done.at):
                fabrics.add(fabric)
    return fabrics


def _read_technician_notes(context: ControllerContext) -> TechnicianNotes:
    inspections = {
        state: inspection for listed in context.fleet.checklists.values() for state, inspection in listed.states.items()
    }
    nodes = read_projection(context.ledger, NODES_WITH_RETURNED_PARTS)
    returned = {name: find_returned_parts(context.ledger.entries(name, ASSET_ENTRY_KINDS)) for name in nodes}
    notes = {name: [describe_returned_part(part) for part in parts] for name, parts in returned.items()}
    names = PartNames(context.fleet, context.evidence)
    return TechnicianNotes(inspections, notes, context.fleet.fault_catalog, names)
