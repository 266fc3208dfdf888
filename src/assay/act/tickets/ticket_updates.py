"""Keeps the tickets in the ledger up to date with the work that there is, and closes only what is proved fixed."""

from __future__ import annotations

from datetime import timedelta

from assay.act.loop.context import ControllerContext
from assay.act.loop.fleet_snapshot_cache import FleetSnapshotCache
from assay.act.loop.pass_log import records_pass
from assay.act.schedules.due_slots import list_schedule_lines
from assay.act.schedules.slot_runner import read_schedule_history
from assay.act.tickets.cabling_pictures import draw_cabling_tickets
from assay.act.tickets.collective_link_tickets import find_links, make_link_tickets
from assay.act.tickets.desired_tickets import TechnicianNotes, list_desired_tickets
from assay.act.tickets.paused_rollout_ticket import make_paused_ticket
from assay.act.tickets.ticket_closing_proofs import FABRIC_SCAN, ClosingProofs
from assay.act.tickets.ticket_diff import (
    TICKET_KINDS,
    TICKET_RECORD_KINDS,
    diff_tickets,
    list_tickets,
    parse_ticket,
    read_ticket_statuses,
)
from assay.act.tickets.trust_tickets import make_trust_tickets
from assay.decide.state.asset_history import ASSET_ENTRY_KINDS, describe_returned_part, find_returned_parts
from assay.fabric.scan import format_fabric_subject
from assay.model.entries.ticket_entries import TicketClosedEntry, TicketDoneEntry
from assay.model.timestamps import parse_time


@records_pass("tickets")
def update_tickets(context: ControllerContext, fleet_state: FleetSnapshotCache | None = None) -> None:
    """Append the entries that open, update, close and reopen tickets, so that they match the work that there is."""
    fleet_state = fleet_state or FleetSnapshotCache(context)
    scanned = fleet_state.fabric_comparisons.get_all(context)
    comparisons = {name: one.comparison for name, one in scanned.items()}
    known = read_ticket_statuses(context.ledger.entries(kinds=TICKET_KINDS))
    told = {one.ticket.node for one in known.values() if not one.closed_by}
    rollout = fleet_state.rollouts.find_active()
    paused = rollout.pause.nodes if rollout and rollout.pause else ()
    snapshot = fleet_state.build_snapshot({*told, *paused})
    decisions = context.ledger.entries(kinds=["decision"])
    desired = list_desired_tickets(snapshot, decisions, comparisons, _read_technician_notes(context))
    desired += make_paused_ticket(snapshot, rollout)
    desired += make_trust_tickets(context.fleet, snapshot)
    searches = (line for line in list_schedule_lines(context.fleet) if line.schedule.does == "collectives-search")
    links = find_links(searches, read_schedule_history(context.ledger))
    desired += make_link_tickets(links.named)
    views = {view.name: view for view in snapshot.nodes}
    scans = {name: one.scanned_at for name, one in scanned.items()}
    proofs = ClosingProofs(views, comparisons, scans, links.proofs)
    window = timedelta(days=context.policy.reopen_days)
    entries = diff_tickets(known, desired, proofs.find_proof, context.now, window)
    fresh = [parse_ticket(entry) for entry in entries if entry.kind != TicketClosedEntry.kind]
    draw_cabling_tickets(context, fresh, comparisons)
    context.ledger.append(*entries)


def list_fabrics_to_prove(context: ControllerContext) -> set[str]:
    """Return the fabrics of which nobody has scanned what a technician says is done."""
    if not context.ledger.entries(kinds=[TicketDoneEntry.kind], most=1):
        return set()
    found = set()
    for record in list_tickets(context.ledger.entries(kinds=TICKET_RECORD_KINDS)):
        fabric = record.ticket.verify.removeprefix(FABRIC_SCAN)
        if record.done and not record.closed_at and fabric in context.fleet.designs:
            scan = context.evidence.latest(format_fabric_subject(context.fleet.designs[fabric]))
            if scan is None or scan.at < parse_time(record.done.at):
                found.add(fabric)
    return found


def _read_technician_notes(context: ControllerContext) -> TechnicianNotes:
    inspections = {state: one for listed in context.fleet.checklists.values() for state, one in listed.states.items()}
    nodes = {entry.node for entry in context.ledger.entries(kinds=["part.returned"])}
    returned = {name: find_returned_parts(context.ledger.entries(name, ASSET_ENTRY_KINDS)) for name in nodes}
    return TechnicianNotes(
        inspections, {name: [describe_returned_part(part) for part in parts] for name, parts in returned.items()}
    )
