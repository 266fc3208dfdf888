"""The last part of a pass: keeps the tickets up to date, delivers them, and tells whoever else wants to know."""

from __future__ import annotations

from assay.controller.cache.fleet_snapshot_cache import FleetSnapshotCache
from assay.controller.context import ControllerContext
from assay.controller.ticket_updates import update_tickets
from assay.tickets.ticket_delivery import deliver_tickets, hold_delivery_lease


def tell_people(context: ControllerContext, fleet_state: FleetSnapshotCache, *, keep: bool = False) -> None:
    """Update the tickets and their sinks, and call the context's tellers; of several controllers, one does so.

    With `keep`, the same one does so the next time.
    """
    with hold_delivery_lease(context.ledger, keep=keep) as is_ours:
        if is_ours:
            update_tickets(context, fleet_state)
            deliver_tickets(context)
            for tell in context.tellers:
                tell(context)
