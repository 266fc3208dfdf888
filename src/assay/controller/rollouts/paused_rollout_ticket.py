"""The ticket of a rollout that only a person can resume: failures paused it."""

from __future__ import annotations

from assay.lifecycle.fleet_snapshot import FleetSnapshot
from assay.lifecycle.rollouts.next_entries import shorten_id
from assay.lifecycle.rollouts.rollout_history import Rollout
from assay.model.ledger_entry import derive_id
from assay.model.ticket import Ticket, TicketPlace

ROLLOUT_TICKET_KIND = "rollout"
"""How the keys of these tickets begin."""


def make_paused_ticket(snapshot: FleetSnapshot, rollout: Rollout | None) -> list[Ticket]:
    """Return the ticket of a rollout that failures paused, none for another. Each pause has its own."""
    pause = rollout.pause if rollout else None
    if rollout is None or pause is None or pause.rule != "failures":
        return []
    views = {view.name: view for view in snapshot.nodes if "ticket" in view.profile.actions}
    told = [views[name] for name in pause.nodes if name in views]
    if not told:
        return []
    key, ident = f"{ROLLOUT_TICKET_KIND}/{rollout.id}/{rollout.pauses}", shorten_id(rollout.id)
    ticket = Ticket(
        id=derive_id("ticket", key),
        key=key,
        title=f"rollout {ident} is paused: nodes failed",
        node=told[0].name,
        places=tuple(TicketPlace(view.name, view.node.site, view.node.rack, view.node.u) for view in told),
        expected=f"the change {rollout.base[:12]} → {rollout.commit[:12]} works on its nodes, or is taken back",
        seen=pause.reason,
        verify=f"assay rollout show {ident}",
        severity="degraded",
        steps=f"find why: assay explain {told[0].name}\n"
        f"if the change is good: assay rollout resume {ident} --reason '…'\n"
        f"if it is not: assay rollout abort {ident} --reason '…', and merge a `git revert`",
    )
    return [ticket]
