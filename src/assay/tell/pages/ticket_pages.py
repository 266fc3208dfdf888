"""The pages of tickets, for a technician's phone: where to go, what to do, and what closes the ticket."""

from __future__ import annotations

from markupsafe import Markup

from assay.act.orders.ticket_orders import describe_wait
from assay.act.tickets.ticket_closing_proofs import FABRIC_SCAN
from assay.tell.pages.fabric_pages import draw_ticket_part, list_drawn_faults
from assay.tell.pages.page_frame import PageRequest, render_frame
from assay.tell.views.fleet_view import list_cells
from assay.tell.views.live_records import LiveRecords
from assay.tell.views.rack_view import draw_ticket_racks
from assay.tell.views.ticket_proof import find_ticket_proof

CLOSED_SHOWN = 30


def render_tickets_page(records: LiveRecords, request: PageRequest) -> str:
    """Return the page with the open tickets, the oldest first, and the last closed ones."""
    seen = records.read_tickets()
    closed = sorted((one for one in seen if one.closed_at), key=lambda one: one.closed_at, reverse=True)
    opened = [one for one in seen if not one.closed_at]
    return render_frame("tickets.html.j2", request, opened=opened, closed=closed[:CLOSED_SHOWN])


def render_ticket_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page of a ticket, None without one."""
    ident = request.path_params["id"]
    record = next((one for one in records.read_tickets() if one.ticket.id == ident), None)
    if record is None:
        return None
    cells = list_cells(records.fleet, records.read_node_states())
    racks = draw_ticket_racks(records.fleet, cells, record.ticket.places)
    is_cabling = record.ticket.verify.startswith(FABRIC_SCAN)
    return render_frame(
        "ticket.html.j2",
        request,
        record=record,
        ticket=record.ticket,
        racks=racks,
        faults=list_drawn_faults(records, ticket=ident) if is_cabling else [],
        around=draw_ticket_part(records, ident) if is_cabling else "",
        drawn=Markup,
        proof=find_ticket_proof(records, record),
        closing=describe_wait(record),
        may_report=not record.closed_at and request.visitor.may_order("done"),
    )
