"""The pages of rollouts: all of them, and how far one is with each node."""

from __future__ import annotations

from assay.act.orders.possible_orders import list_rollout_orders
from assay.tell.pages.page_frame import PageRequest, render_frame
from assay.tell.views.live_records import LiveRecords
from assay.tell.views.rollout_view import build_rollout_view, find_rollout


def render_rollouts_page(records: LiveRecords, request: PageRequest) -> str:
    """Return the page with every rollout, the newest first."""
    rollouts = list(records.read_rollouts().rollouts.values())
    return render_frame("rollouts.html.j2", request, rollouts=rollouts[::-1])


def render_rollout_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page of a rollout by its id, or by the begin of it that names no other; None without one."""
    rollout = find_rollout(records, request.path_params["id"])
    if rollout is None:
        return None
    orders = list(filter(request.visitor.may_order, list_rollout_orders(rollout)))
    return render_frame("rollout.html.j2", request, view=build_rollout_view(records, rollout), orders=orders)
