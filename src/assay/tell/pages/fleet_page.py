"""The page of the fleet: racks as they stand, what changed since yesterday, what waits for whom."""

from __future__ import annotations

from datetime import timedelta

from assay.model.timestamps import format_time
from assay.tell.pages.page_frame import PageRequest, render_frame
from assay.tell.views.fleet_news import build_fleet_news
from assay.tell.views.fleet_view import FleetFilter, FleetView, build_fleet_view, list_cells
from assay.tell.views.live_records import LiveRecords
from assay.tell.views.trust_view import build_fleet_trust, format_fleet_trust

MAX_NAMED_NODES, MAX_LETTERS = 200, 1500
"""Up to the first number a cell has the node's name, up to the second its letter; beyond that, a rack is one tile."""
NEWS_WINDOW = timedelta(days=1)


def render_fleet_page(records: LiveRecords, request: PageRequest) -> str:
    """Return the page with the nodes that match the query."""
    fleet, states = records.fleet, records.read_node_states()
    wanted = FleetFilter(**{name: request.query.get(name, "") for name in FleetFilter.__dataclass_fields__})
    cells = list_cells(fleet, states)
    view = build_fleet_view(fleet, cells, wanted)
    since = format_time(request.now - NEWS_WINDOW)
    shown = list(wanted.select(cells)) if wanted != FleetFilter() else cells
    news = build_fleet_news(fleet, states, shown, records.read_tickets(), records.read_rollouts(), since)
    trust = build_fleet_trust(records, states)
    lines = list(format_fleet_trust(trust)) if trust else []
    return render_frame(
        "fleet.html.j2", request, view=view, news=news, wanted=wanted, zoom=find_zoom(view), trust=lines
    )


def find_zoom(view: FleetView) -> str:
    """Return how closely the map is drawn: `names`, `letters` or `racks`."""
    if view.shown <= MAX_NAMED_NODES:
        return "names"
    return "letters" if view.shown <= MAX_LETTERS else "racks"
