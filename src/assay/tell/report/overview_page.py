"""Renders the overview of the fleet as a page: the map by pool and rack, and the template's words."""

from __future__ import annotations

from assay.model.page import render_page
from assay.tell.report import overview_phrases
from assay.tell.report.allure import NO_ALLURE, AllureLinks
from assay.tell.report.overview_model import FleetOverview, group_by_pool_and_rack

MAX_ROOMY_NODES, MIN_DENSE_NODES = 120, 2500
"""Up to the first number, each cell of the map shows the node's name. From the second number on, cells are small."""


def render_overview(overview: FleetOverview, links: AllureLinks = NO_ALLURE, *, in_lab: bool = False) -> str:
    """Return the HTML, in one file. All text is escaped."""
    newly, lost = (0, 0) if overview.first else (len(overview.broke), len(overview.lost))
    nodes = [holder for holder in overview.holders if holder.node]
    size = len(overview.holders)
    return render_page(
        __package__,
        "overview.html.j2",
        in_lab=in_lab,
        overview=overview,
        words=overview_phrases,
        link=links,
        pools=group_by_pool_and_rack(overview.holders),
        density="roomy" if size <= MAX_ROOMY_NODES else "dense" if size >= MIN_DENSE_NODES else "",
        nodes=len(nodes),
        lost_on=len({change.holder for change in overview.lost}),
        ill=sum(holder.is_ill for holder in nodes),
        still=sum(holder.failing for holder in overview.holders) - newly,
        still_unknown=sum(holder.unknown for holder in overview.holders) - lost,
    )
