"""Finds what proves a ticket fixed: a scan of the fabric, passed checks, or the next state of the node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.act.tickets.desired_tickets import BREAKER_TICKET_KIND, FOREIGN_TICKET_KIND
from assay.act.tickets.paused_rollout_ticket import ROLLOUT_TICKET_KIND
from assay.act.tickets.trust_tickets import TRUST_TICKET_KIND
from assay.decide.state.fleet_snapshot import NodeSnapshot
from assay.fabric.compare.compare import FabricComparison
from assay.model.outcome import RecordedOutcome
from assay.model.ticket import Ticket
from assay.model.timestamps import parse_time

FABRIC_SCAN = "fabric scan "
"""What the proof of a link's ticket begins with; the fabric follows."""
STATE_TICKET_KINDS = ("stay", "opened", FOREIGN_TICKET_KIND)
"""Kinds of tickets that end when the node leaves its state."""


@dataclass(frozen=True)
class ClosingProofs:
    """What can prove a ticket fixed: node snapshots by name, and by fabric its comparison and when it was scanned.

    `good_links` are the proofs of searches with collectives, by the key of a link's ticket.
    """

    views: Mapping[str, NodeSnapshot]
    comparisons: Mapping[str, FabricComparison]
    scanned_at: Mapping[str, str]
    good_links: Mapping[str, str] = field(default_factory=dict)

    def find_proof(self, ticket: Ticket, since: str) -> str:
        """Return what proved the ticket fixed after `since` (ISO 8601), "" for nothing."""
        if ticket.verify.startswith(FABRIC_SCAN):
            return self._find_scan(ticket.verify.removeprefix(FABRIC_SCAN), since)
        if ticket.key in self.good_links:
            return self.good_links[ticket.key]
        view = self.views.get(ticket.node)
        if view is None:
            return ""
        if ticket.verify.startswith("suites/"):
            return _find_passes(view, ticket.verify.splitlines(), since)
        return _find_transition(view, ticket)

    def _find_scan(self, fabric: str, since: str) -> str:
        """Return the complete scan after `since`."""
        comparison, at = self.comparisons.get(fabric), self.scanned_at.get(fabric, "")
        is_complete = comparison is not None and comparison.verdict != "partial"
        return f"fabric scan {fabric} at {at}" if is_complete and parse_time(at) > parse_time(since) else ""


def _find_passes(view: NodeSnapshot, checks: list[str], since: str) -> str:
    """Return the outcomes by which all of these checks passed after `since`."""

    def is_proof(one: RecordedOutcome) -> bool:
        is_young = parse_time(one.measured_at) > parse_time(since)
        return one.outcome.verdict == "pass" and not one.is_dated_ahead and is_young

    newest = {f"{one.outcome.check}[{one.outcome.subject}]": one for one in view.latest}
    found = [newest.get(check) for check in checks]
    return "" if any(one is None or not is_proof(one) for one in found) else "; ".join(one.id for one in found if one)


def _find_transition(view: NodeSnapshot, ticket: Ticket) -> str:
    """Return the transition, replacement or cordon after which the ticket has no work any more."""
    kind, _, rest = ticket.key.partition("/")
    state = view.node_state
    if kind == ROLLOUT_TICKET_KIND:
        return "the rollout goes on, or has ended"
    if kind == TRUST_TICKET_KIND:
        return "nothing waits for a person there any more"
    if kind == BREAKER_TICKET_KIND:
        return "the breaker holds nothing back any more"
    if kind == FOREIGN_TICKET_KIND and view.cordon is not None and not view.foreign_cordon:
        return "nobody else keeps the node closed any more"
    if kind in STATE_TICKET_KINDS:
        if rest.partition("/")[2] == state.stay_id:  # the node is still in the state of the ticket
            return _find_reclosing(view) if kind == "opened" else ""
    else:
        if parse_time(state.repaired_at) <= parse_time(state.since):
            return ""
        if state.repairs and state.repairs[-1].kind == "replaced":
            return f"another node stands in this place since {state.repairs[-1].at[:16]}"
    return f"{view.name} went to {state.state}: {state.reason}"


def _find_reclosing(view: NodeSnapshot) -> str:
    """Return why nobody lifts the cordon of a node any more, "" while somebody may."""
    if view.node_state.withdrawn and not view.node_state.pending:
        return "it need not be closed"
    return f"closed in its scheduler: {view.cordon}" if view.cordon else ""
