"""The ticket of a node on which something waits for a person's yes. Messages carry it, with the address of its page."""

from __future__ import annotations

from collections.abc import Iterator

from assay.act.orders.trust_orders import list_fleet_waits
from assay.decide.state.fleet_snapshot import FleetSnapshot
from assay.model.fleet import Fleet
from assay.model.ledger_entry import derive_id
from assay.model.ticket import Ticket, TicketPlace

TRUST_TICKET_KIND = "trust"


def make_trust_tickets(fleet: Fleet, snapshot: FleetSnapshot) -> Iterator[Ticket]:
    """Yield a ticket for each thing that waits and that nobody has answered."""
    views = {view.name: view for view in snapshot.nodes if "ticket" in view.profile.actions}
    for wait in list_fleet_waits(fleet, [view.node_state for view in views.values()]):
        if wait.kind == "would" or (wait.said and wait.kind != "order"):
            continue
        node, key = views[wait.node].node, f"{TRUST_TICKET_KIND}/{wait.node}/{wait.id}"
        provisioning = fleet.provisioning_of(node.name)
        page = f"\nits page: {provisioning.url}/nodes/{node.name}" if provisioning else ""
        words = f"--reason '…'; undo: {wait.undo}"
        yield Ticket(
            id=derive_id("ticket", key),
            key=key,
            title=f"{node.name} waits for a person's yes",
            node=node.name,
            places=(TicketPlace(node.name, node.site, node.rack, node.u),),
            expected="a person says yes or no",
            seen=wait.text,
            verify=f"assay explain {node.name}",
            severity="degraded",
            steps=f"assay approve {wait.id[:12]} {words}\nor: assay decline {wait.id[:12]} --reason '…'{page}",
        )
