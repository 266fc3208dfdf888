"""The page for customers: their nodes, in words without jargon, and nothing of anybody else's."""

from __future__ import annotations

from dataclasses import asdict

from assay.tell.customer.customer_explanation import HEADINGS
from assay.tell.customer.customer_view import build_customer_view
from assay.tell.pages.page_frame import PageRequest, render_frame
from assay.tell.views.live_records import LiveRecords


def render_customer_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page of the nodes that the visitor may see; with `node` in the query, of that node alone.

    Returns None for a node that the visitor may not see, as for one that does not exist.
    """
    name = request.query.get("node", "")
    view = build_customer_view(records, request.visitor.may_see, name)
    if name and not view.nodes:
        return None
    told = [(node, asdict(explained)) for node, explained in view.explained]
    return render_frame("customer.html.j2", request, view=view, told=told, headings=HEADINGS, name=name)
