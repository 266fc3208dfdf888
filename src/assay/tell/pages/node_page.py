"""The page of a node: why it is where it is, what happened to it, what was measured on it, and its parts."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from assay.act.orders.orders import list_node_orders
from assay.act.tickets.repair_history import REPAIRS, select_repairs
from assay.ledger.ledger_reader import read_projection
from assay.model.page import draw_polyline
from assay.model.timestamps import parse_epoch_seconds
from assay.tell.pages.fabric_pages import list_drawn_faults, list_node_ports
from assay.tell.pages.page_frame import PageRequest, link, render_frame
from assay.tell.views.next_step import list_open_tickets
from assay.tell.views.node_measurements import LimitedSeries
from assay.tell.views.node_sync import STATE_WORDS
from assay.tell.views.node_view import build_node_view
from assay.tell.views.records import LiveRecords
from assay.tell.views.sources import parse_place

SPARK = (150.0, 34.0)
REPAIRS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Sparkline:
    """The geometry of a series in a field of the size SPARK: its line, its last point, its limit, its peers' band."""

    points: str
    last: tuple[str, str]
    limits: tuple[str, ...]
    band: tuple[str, str] | None


def render_node_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page, None if the ledger has no node of this name."""
    view = build_node_view(records, request.path_params["name"])
    if view is None:
        return None
    commit, fabric = records.fleet.commit, (view.node.settings.fabric or "") if view.node else ""
    return render_frame(
        "node.html.j2",
        request,
        view=view,
        orders=list(filter(request.visitor.may_order, list_node_orders(records.fleet, view.state))),
        lines=[(series, draw_sparkline(series)) for series in view.series],
        source_link=link_source,
        commit=commit,
        tickets=[*list_open_tickets(records.read_tickets()).get(view.state.node, {}).values()],
        rollouts=[each for each in records.read_rollouts().rollouts.values() if view.state.node in each.members][::-1],
        adapters=list_node_ports(records, view.state.node, fabric) if fabric else [],
        faults=list_drawn_faults(records, fabric=fabric, node=view.state.node) if fabric else [],
        drawn=Markup,
        sync_words=STATE_WORDS,
        repairs=select_repairs(read_projection(records.ledger_for_reading, REPAIRS), view.state.node)[:REPAIRS_SHOWN],
    )


def link_source(text: str, commit: str) -> str:
    """Return the address of the line with which a rule or a source begins, "" if it names none."""
    place = parse_place(text)
    return f"{link(f'/source/{commit}/{place.path}')}#L{place.line}" if place and commit else ""


def draw_sparkline(series: LimitedSeries) -> Sparkline:
    """Return the geometry of a series: the field holds its points, its limits and what its peers measured."""
    limits = [limit for limit in (series.at_least, series.at_most) if limit is not None]
    peers = [series.peers.low, series.peers.high] if series.peers else []
    values = [value for _, value in series.points]
    low, high = min((*values, *limits, *peers)), max((*values, *limits, *peers))
    spare = (high - low) * 0.08 or 1.0
    y = (low - spare, high + spare)
    times = [parse_epoch_seconds(at) for at, _ in series.points]
    x = (times[0], times[-1])
    line = draw_polyline(zip(times, values, strict=True), SPARK, x, y)
    left, _, top = line.rpartition(" ")[2].partition(",")

    def height(value: float) -> str:
        return f"{SPARK[1] - (value - y[0]) * SPARK[1] / (y[1] - y[0]):.1f}"

    band = None
    if series.peers:
        thick = (series.peers.high - series.peers.low) * SPARK[1] / (y[1] - y[0])
        band = (height(series.peers.high), f"{max(thick, 1.5):.1f}")
    return Sparkline(line, (left, top), tuple(map(height, limits)), band)
