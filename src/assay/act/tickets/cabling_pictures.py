"""Draws the part of a fabric that a ticket is about, beside the reports, when the ticket opens or changes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

from assay.act.loop.context import ControllerContext
from assay.fabric.compare.cabling_tickets import locate_ticket_picture, make_cabling_tickets
from assay.fabric.compare.common_causes import group_by_common_cause
from assay.fabric.compare.compare import FabricComparison
from assay.fabric.design.design_compiler import compile_topology
from assay.fabric.fabric_drawing import draw_fabric
from assay.fabric.fabric_picture import FabricPicture
from assay.model.errors import AssayError
from assay.model.ticket import Ticket
from assay.observe.evidence_store import write_atomically


def draw_cabling_tickets(
    context: ControllerContext, tickets: Iterable[Ticket], comparisons: Mapping[str, FabricComparison]
) -> None:
    """Write the picture of each ticket that is about cables. A folder that cannot be written costs the picture only."""
    keys = {ticket.key for ticket in tickets}
    for name, comparison in comparisons.items():
        wanted = make_cabling_tickets(comparison)
        if keys.isdisjoint(ticket.key for ticket in wanted):
            continue
        topology = compile_topology(context.fleet.designs[name], context.fleet)
        repairs = group_by_common_cause(comparison.discrepancies)
        for repair, ticket in zip(repairs, wanted, strict=True):
            if ticket.key in keys:
                path = context.reports / locate_ticket_picture(name, ticket.key)
                with contextlib.suppress(AssayError):
                    write_atomically(path, draw_fabric(FabricPicture(topology, repair.members)).encode())
