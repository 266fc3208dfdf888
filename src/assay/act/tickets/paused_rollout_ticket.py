"""The ticket of a rollout that only a person can resume: failures paused it, or its plan is not the reviewed one."""

from __future__ import annotations

from assay.decide.rollouts.rollout_history import Rollout
from assay.decide.rollouts.step_entries import shorten_id
from assay.decide.state.fleet_snapshot import FleetSnapshot
from assay.model.ledger_entry import derive_id
from assay.model.ticket import Ticket, TicketPlace

ROLLOUT_TICKET_KIND = "rollout"
"""How the keys of these tickets begin."""
TICKET_RULES = {
    "failures": "is paused: nodes failed",
    "plan": "waits: a person must accept its plan",
    "age": "is paused: no controller looked after it for too long",
}
"""The rules after which only a person resumes, with what the title of the ticket says."""


def make_paused_ticket(snapshot: FleetSnapshot, rollout: Rollout | None) -> list[Ticket]:
    """Return the ticket of a rollout that waits for a person, none for another. Each pause has its own.

    Without a node because of which it was paused, it names the first node that waits.
    """
    pause = rollout.pause if rollout else None
    if rollout is None or pause is None or pause.rule not in TICKET_RULES:
        return []
    views = {view.name: view for view in snapshot.nodes if "ticket" in view.profile.actions}
    told = [views[name] for name in pause.nodes or rollout.members if name in views]
    told = told if pause.nodes else told[:1]
    if not told:
        return []
    key, ident = f"{ROLLOUT_TICKET_KIND}/{rollout.id}/{rollout.pauses}", shorten_id(rollout.id)
    ticket = Ticket(
        id=derive_id("ticket", key),
        key=key,
        title=f"rollout {ident} {TICKET_RULES[pause.rule]}",
        node=told[0].name,
        places=tuple(TicketPlace(view.name, view.node.site, view.node.rack, view.node.u) for view in told),
        expected=f"the change {rollout.base[:12]} → {rollout.commit[:12]} works on its nodes, or is taken back",
        seen=pause.reason,
        verify=f"assay rollout show {ident}",
        severity="degraded",
        steps=f"{_describe_look(rollout, told[0].name)}\n"
        f"if the change is good: assay rollout resume {ident} --reason '…'\n"
        f"if it is not: assay rollout abort {ident} --reason '…', and merge a `git revert`",
    )
    return [ticket]


def _describe_look(rollout: Rollout, node: str) -> str:
    if rollout.pause and rollout.pause.rule == "plan":
        return f"read the plan: assay plan --base {rollout.base[:12]} --head {rollout.commit[:12]}"
    return f"find why: assay explain {node}"
