"""Where the work of an incident's ticket goes that nothing asks for any more: it merges, splits, or is over. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from assay.act.tickets.part_names import make_place
from assay.act.tickets.ticket_diff import TicketMoves
from assay.decide.faults.incidents import Incident, list_incidents, list_open_incidents, name_incident
from assay.decide.faults.shared_incidents import SharedIncident, list_shared_incidents, map_open_incidents
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.decision import PAPERWORK
from assay.model.faults.fault_record import FaultSeverity
from assay.model.ledger_entry import derive_id
from assay.model.outcome import RecordedOutcome
from assay.model.specs.fault_relations import matches
from assay.model.ticket import Ticket

INCIDENT_TICKET_KIND, SHARED_TICKET_KIND, TRIAL_TICKET_KIND = "incident", "shared", "trial"
FABRIC_TICKET_KIND = "fabric"
"""How the keys of tickets begin: about incidents, about what a state requires, and about cables."""


def make_identity(key: str) -> dict[str, Any]:
    """Return id and key of a ticket: the fields that tell it from others."""
    return {"id": derive_id("ticket", key), "key": key}


def make_ticket(key: str, views: Sequence[NodeSnapshot], severity: FaultSeverity = "degraded", **words: str) -> Ticket:
    """Return a ticket about these nodes, and of the first of them. `words` are the texts of `Ticket`."""
    places = tuple(map(make_place, views))
    return Ticket(**make_identity(key), **words, node=views[0].name, places=places, severity=severity)


def key_incident(incident: Incident) -> str:
    """Return the key of an incident's ticket."""
    return f"{INCIDENT_TICKET_KIND}/{incident.node}/{incident.first}"


def key_stay(view: NodeSnapshot) -> str:
    """Return the key of the ticket of a node's present stay in its state."""
    return f"stay/{view.name}/{view.node_state.stay_id}"


def is_cable_in_stay(snapshot: FleetSnapshot, view: NodeSnapshot, ticket: Ticket) -> bool:
    """Whether the ticket of the node's state is about the cable of a fabric's ticket too."""
    ends = {place.device for place in ticket.places}
    opened = list_open_incidents(snapshot.relations, view.node_state) if has_paperwork(snapshot, view) else ()
    return any(f"{view.name} {incident.work.part}" in ends for incident in opened)


def key_shared(shared: SharedIncident) -> str:
    """Return the key of the ticket of what nodes share."""
    return f"{SHARED_TICKET_KIND}/{shared.shares}/{shared.place}/{shared.cause.summary}"


def join_failures(
    snapshot: FleetSnapshot, view: NodeSnapshot, incidents: Sequence[Incident], failures: Sequence[RecordedOutcome]
) -> Iterator[tuple[str, Incident]]:
    """Yield the ids of the failed checks that are signs of one of these open incidents, each with that."""
    owners = {symptom.id: incident for incident in incidents for symptom in incident.symptoms}
    alike = {(each.fault_class, each.subject): own for own in incidents for each in own.open_symptoms}
    for group in list_incidents(snapshot.relations, view.node_state, failures) if owners and failures else ():
        if owner := next((owners[symptom.id] for symptom in group.symptoms if symptom.id in owners), None):
            yield from ((symptom.id, owner) for symptom in group.symptoms if symptom.id not in owners)
    for failure in failures:
        if owner := alike.get((failure.outcome.fault, failure.outcome.subject)):
            yield failure.id, owner


class TicketMoveFinder:
    """Finds where the work of tickets went. What all nodes show is listed once, for the first ticket that asks."""

    def __init__(self, snapshot: FleetSnapshot) -> None:
        self._snapshot = snapshot

    @cached_property
    def _views(self) -> dict[str, NodeSnapshot]:
        return {view.name: view for view in self._snapshot.nodes}

    @cached_property
    def _opened(self) -> dict[str, list[Incident]]:
        return map_open_incidents(self._snapshot)

    @cached_property
    def _shared(self) -> list[SharedIncident]:
        return [*list_shared_incidents(self._snapshot, self._opened)]

    def find(self, ticket: Ticket) -> TicketMoves:
        """Return which tickets have the work of an incident's or a shared incident's ticket that nothing asks for now.

        Incidents merge into one with their cause, or into one that nodes share; they split when a proof says so.
        """
        relations = self._snapshot.relations
        kind, _, rest = ticket.key.partition("/")
        node, _, first = rest.partition("/")
        owner = self._views.get(ticket.node)
        if kind == FABRIC_TICKET_KIND and owner and is_cable_in_stay(self._snapshot, owner, ticket):
            return TicketMoves(into=key_stay(owner))
        view = self._views.get(node)
        if kind == TRIAL_TICKET_KIND and view is not None:
            checks = {*ticket.verify.splitlines()}
            failures = [each for each in view.latest if f"{each.outcome.check}[{each.outcome.subject}]" in checks]
            joined = join_failures(self._snapshot, view, self._opened.get(node, ()), failures)
            return TicketMoves(into=next((key_incident(incident) for _, incident in joined), ""))
        if kind == SHARED_TICKET_KIND:
            classes = {name for each in relations.shared if ticket.key.endswith(each.summary) for name in each.classes}
            places = {place.device for place in ticket.places}
            opened = [each for name in places for each in self._opened.get(name, ())]
            members = [each for each in opened if matches(classes, each.cause.fault_class)]
            return TicketMoves(left=tuple(map(key_incident, members)))
        if kind != INCIDENT_TICKET_KIND or view is None:
            return TicketMoves()
        incidents = list_incidents(relations, view.node_state)
        named = [each for each in incidents if first in _list_names(each)]
        if incident := next((each for each in reversed(named) if each.is_open), None):
            keys = [key_shared(each) for each in self._shared if any(own.id == incident.id for own in each.members)]
            is_listed = incident.severity == "catastrophic" and has_paperwork(self._snapshot, view)
            is_in_stay = is_listed or is_in_stay_ticket(self._snapshot, view, incident)
            stay = key_stay(view) if is_in_stay else ""
            return TicketMoves(into=stay or next(iter(keys), key_incident(incident)))
        causes = {each.id for each in named}
        left = [each for each in incidents if each.is_open and each.split_from in causes]
        return TicketMoves(left=tuple(map(key_incident, left)))


def find_incident_end(snapshot: FleetSnapshot, view: NodeSnapshot, first: str) -> str:
    """Return why an incident's ticket has no work any more, "" while it goes on. `first` is the id in its key."""
    incidents = list_incidents(snapshot.relations, view.node_state)
    named = [each for each in incidents if first in _list_names(each)]
    return "" if not named or any(each.is_open for each in named) else "nothing of it is seen any more"


def _list_names(incident: Incident) -> set[str]:
    """Return the ids that tickets of an incident may have in their keys: each part of it may have had its own."""
    return {incident.first, *(name_incident(symptom.id) for symptom in incident.symptoms)}


def has_paperwork(snapshot: FleetSnapshot, view: NodeSnapshot) -> bool:
    """Whether the node's state has a ticket that lists all open faults."""
    return bool(PAPERWORK & set(snapshot.policy_state_of(view).entry) and view.node_state.decision)


def is_in_stay_ticket(snapshot: FleetSnapshot, view: NodeSnapshot, incident: Incident) -> bool:
    """Whether an incident brought the node into its state, which has a ticket of its own."""
    moves = view.node_state.transitions[-1:] if PAPERWORK & set(snapshot.policy_state_of(view).entry) else ()
    return any(symptom.id in move.faults for move in moves for symptom in incident.symptoms)
