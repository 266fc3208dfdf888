"""The pages of a rack, as a person who stands before it sees it, and of a pool."""

from __future__ import annotations

from assay.tell.pages.fleet_page import find_zoom
from assay.tell.pages.page_frame import PageRequest, render_frame
from assay.tell.views.fleet_news import list_pool_breakers
from assay.tell.views.fleet_view import FleetFilter, build_fleet_view, list_cells
from assay.tell.views.live_records import LiveRecords
from assay.tell.views.rack_view import draw_rack, find_racks, select_rack_tickets


def render_rack_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page of the racks of a name (of one site, if the query says which), None without one."""
    cells = list_cells(records.fleet, records.read_node_states())
    racks = find_racks(cells, request.path_params["name"], request.query.get("site", ""))
    if not racks:
        return None
    tickets = records.read_tickets()
    shown = [(rack, draw_rack(records.fleet, rack), select_rack_tickets(tickets, rack)) for rack in racks]
    return render_frame("rack.html.j2", request, racks=shown)


def render_pool_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page of a pool, None without nodes of it."""
    fleet, states, name = records.fleet, records.read_node_states(), request.path_params["name"]
    cells = list_cells(fleet, states)
    view = build_fleet_view(fleet, cells, FleetFilter(pool=name))
    if not view.shown:
        return None
    members = [fleet.nodes[cell.name] for cell in cells if cell.pool == name]
    return render_frame(
        "pool.html.j2",
        request,
        name=name,
        view=view,
        zoom=find_zoom(view),
        specs=sorted({node.spec for node in members}),
        profiles=sorted({node.profile for node in members}),
        breakers=list_pool_breakers(states, name),
        waiting=[cell for cell in cells if cell.pool == name and cell.standing not in ("serving", "gone")],
    )
