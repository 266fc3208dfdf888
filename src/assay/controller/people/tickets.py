"""Keeps the tickets in the ledger at what there is work for, and closes only what was proved fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from assay.controller.desk import Desk
from assay.controller.known.memory import Memory
from assay.controller.people.ticket_diff import changes, standings
from assay.controller.people.ticket_list import KINDS
from assay.controller.people.wanted import Hands, wanted
from assay.fabric.compare import Comparison
from assay.lifecycle.returned import returned_in, told
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.when import moment
from assay.lifecycle.whereabouts import KINDS as WHERE
from assay.model.outcome import Recorded
from assay.model.ticket import Ticket

WHERE_IT_IS = ("stay", "opened")
"""Kinds of tickets that end when the node leaves its state."""


@dataclass(frozen=True)
class Proofs:
    """What can prove a ticket fixed: newest outcomes, the nodes' stays, complete discoveries and their times."""

    views: Mapping[str, NodeView]
    cablings: Mapping[str, Comparison]
    scanned_at: Mapping[str, str]

    def proof(self, ticket: Ticket, since: str) -> str:
        """Return what proved the ticket fixed after `since`, "" where nothing did."""
        if ticket.verify.startswith("fabric scan "):
            return self._scan(ticket.verify.removeprefix("fabric scan "), since)
        view = self.views.get(ticket.node)
        if view is None:
            return ""
        if ticket.verify.startswith("suites/"):
            return _passes(view, ticket.verify.splitlines(), since)
        return self._left(view, ticket)

    def _scan(self, design: str, since: str) -> str:
        cabling, at = self.cablings.get(design), self.scanned_at.get(design, "")
        complete = cabling is not None and cabling.verdict != "partial"
        return f"fabric scan {design} at {at}" if complete and moment(at) > moment(since) else ""

    def _left(self, view: NodeView, ticket: Ticket) -> str:
        kind, _, rest = ticket.key.partition("/")
        if kind in WHERE_IT_IS and rest.partition("/")[2] == view.story.stay:
            return _shut(view) if kind == "opened" else ""
        if kind not in WHERE_IT_IS and moment(view.story.repaired_at) <= moment(view.story.since):
            return ""
        last = view.story.repairs[-1] if view.story.repairs else None
        if kind not in WHERE_IT_IS and last and last.what == "replaced":
            return f"another node stands in this place since {last.at[:16]}"
        return f"{view.name} went to {view.story.state}: {view.story.because}"


def update_tickets(desk: Desk, memory: Memory | None = None) -> None:
    """Append what opens, updates, closes and reopens tickets, so that they are what is wanted."""
    memory = memory or Memory(desk)
    found = memory.cablings.now(desk)
    cablings = {name: one.comparison for name, one in found.items()}
    known = standings(desk.ledger.entries(kinds=KINDS))
    situation = memory.situation({one.ticket.node for one in known.values() if not one.by})
    asked = wanted(situation, desk.ledger.entries(kinds=["decision"]), cablings, _hands(desk))
    proofs = Proofs(_views(situation), cablings, {name: one.scanned_at for name, one in found.items()})
    window = timedelta(days=desk.policy.reopen_days)
    desk.ledger.append(*changes(known, asked, proofs.proof, desk.now, window))


def _hands(desk: Desk) -> Hands:
    """Return what technicians do in which state, and the parts that came back, by the node that they are in."""
    inspections = {state: one for listed in desk.fleet.checklists.values() for state, one in listed.states.items()}
    nodes = {entry.node for entry in desk.ledger.entries(kinds=["part.returned"])}
    back = {name: [told(one) for one in returned_in(desk.ledger.entries(name, WHERE))] for name in nodes}
    return Hands(inspections, back)


def _views(situation: Situation) -> dict[str, NodeView]:
    return {view.name: view for view in situation.nodes}


def _passes(view: NodeView, checks: list[str], since: str) -> str:
    newest = {f"{one.outcome.check}[{one.outcome.subject}]": one for one in view.latest}
    found = [newest.get(check) for check in checks]
    if any(one is None or not _proves(one, since) for one in found):
        return ""
    return "; ".join(one.id for one in found if one)


def _shut(view: NodeView) -> str:
    """Return why nobody opens a node any more that was opened again and again, "" while somebody may."""
    if view.story.withdrawn and not view.story.pending:
        return "it need not be closed"
    return f"closed in its scheduler: {view.cordon}" if view.cordon else ""


def _proves(one: Recorded, since: str) -> bool:
    return one.outcome.verdict == "pass" and not one.dated_ahead and moment(one.measured_at) > moment(since)
