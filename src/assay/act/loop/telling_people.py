"""The last part of a pass: keeps the tickets up to date, and lets the context's tellers tell people what is new."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from assay.act.loop.context import ControllerContext
from assay.act.loop.fleet_snapshot_cache import FleetSnapshotCache
from assay.act.tickets.ticket_updates import update_tickets
from assay.ledger.leases_and_locks import current_process
from assay.ledger.store import Ledger

DELIVERY_LEASE = "tickets"
"""The lease of the controller that delivers tickets, where several controllers share a ledger."""
DELIVERY_LEASE_S = 120.0


def tell_people(context: ControllerContext, fleet_state: FleetSnapshotCache, *, keep: bool = False) -> None:
    """Update the tickets, and call the context's tellers; of several controllers, one does so.

    With `keep`, the same one does so the next time.
    """
    with hold_delivery_lease(context.ledger, keep=keep) as is_ours:
        if is_ours:
            update_tickets(context, fleet_state)
            for tell in context.tellers:
                tell(context)


@contextmanager
def hold_delivery_lease(ledger: Ledger, *, keep: bool = False) -> Iterator[bool]:
    """Be the one controller that delivers tickets while the block lasts. Yields False if another controller is.

    With `keep`, the lease stays until it ends by itself, so that the same controller delivers the next time too.
    """
    if not ledger.is_shared:  # a ledger file has one controller
        yield True
        return
    ours = ledger.claim_lease(DELIVERY_LEASE, current_process(), DELIVERY_LEASE_S)
    try:
        yield ours
    finally:
        if not keep:
            ledger.release(DELIVERY_LEASE, current_process())
