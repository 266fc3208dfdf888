"""The page of measurements: what gets worse among its peers, and what is nearest to its limit."""

from __future__ import annotations

from assay.model.errors import AssayError
from assay.model.trend_course import SIZE
from assay.model.worsening import group_rows
from assay.tell.pages.node_page import draw_sparkline, link_source
from assay.tell.pages.page_frame import PageRequest, place, render_frame
from assay.tell.views.fleet_trends import DAYS
from assay.tell.views.live_records import LiveRecords

DIRECTION_WORDS = {
    "nearer": "towards its limit",
    "away": "away from its limit",
    "steady": "steady",
    "unknown": "one value only",
}


def render_trends_page(records: LiveRecords, request: PageRequest) -> str:
    """Return the page, of one pool and of the checks that the query names."""
    pool, check = request.query.get("pool", ""), request.query.get("check", "")
    table, problem = None, ""
    try:
        table = records.read_trends(pool, f"*{check}*" if check else "")
    except AssayError as error:
        problem = error.what
    answer = records.read_worsening()
    return render_frame(
        "trends.html.j2",
        request,
        answer=answer,
        groups=group_rows(answer) if answer else [],
        size=SIZE,
        node_link=lambda name: place("nodes", name) if name in records.fleet.nodes else "",
        table=table,
        problem=problem,
        days=DAYS,
        pool=pool,
        check=check,
        pools=sorted({node.pool for node in records.fleet.nodes.values()}),
        rows=[(trend, draw_sparkline(trend.series)) for trend in table.trends] if table else [],
        words=DIRECTION_WORDS,
        source_link=link_source,
        commit=records.fleet.commit,
    )
