"""What is new in the fleet since a time, and what waits for whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from assay.decide.faults.incidents import list_incidents
from assay.decide.moves.held_answers import OpenBreaker, list_open_breakers
from assay.decide.rollouts.rollout_history import Rollout, RolloutHistory
from assay.decide.state.node_state import NodeState
from assay.model.facts import frozen
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.fault_relations import UNRELATED
from assay.model.ticket import TicketRecord
from assay.tell.views.fleet import NodeOnMap
from assay.tell.views.incident_groups import IncidentGroup, IncidentMember, group_incidents
from assay.tell.views.incident_story import NodeStory
from assay.tell.views.next_step import NextStep


@frozen
class WaitingNodes:
    """Nodes that wait: `who` must act, and what the `task` is ("" if it differs). Each node with what is its own."""

    who: str
    task: str
    nodes: tuple[tuple[str, str], ...]


@frozen
class FleetNews:
    """What changed since `since` (ISO 8601 UTC), what waits for whom, and what is under way."""

    since: str
    incidents: tuple[IncidentGroup, ...]
    moves: tuple[tuple[str, str], ...]
    """The nodes that changed their state without one of these incidents, each with its way."""
    waiting: tuple[WaitingNodes, ...]
    tickets: tuple[TicketRecord, ...]
    breakers: tuple[OpenBreaker, ...]
    rollout: Rollout | None
    """The rollout that has not ended."""


def build_fleet_news(
    catalog: FaultCatalog | None,
    states: Sequence[NodeState],
    cells: Sequence[NodeOnMap],
    tickets: Sequence[TicketRecord],
    rollouts: RolloutHistory,
    stories: Mapping[str, NodeStory],
    since: str,
) -> FleetNews:
    """Return the news of the nodes `cells`; `states` may be of more nodes. Tickets about no node are of everybody."""
    seen = {cell.name for cell in cells}
    seen_or_none = {*seen, ""}  # a ticket may be of no node
    ours = [state for state in states if state.node in seen]
    incidents = group_incidents(catalog, _list_new_incidents(catalog, ours, since))
    with_incidents = {node for group in incidents for node in group.holders}
    return FleetNews(
        since=since,
        incidents=tuple(incidents),
        moves=tuple(_list_moves((state for state in ours if state.node not in with_incidents), since)),
        waiting=tuple(_list_waiting(stories, cells)),
        tickets=tuple(record for record in tickets if not record.closed_at and record.ticket.node in seen_or_none),
        breakers=tuple(list_open_breakers(ours)),
        rollout=rollouts.find_active(),
    )


def _list_new_incidents(
    catalog: FaultCatalog | None, states: Iterable[NodeState], since: str
) -> Iterator[IncidentMember]:
    """Yield the incidents of which nothing was known at the time. What is only recorded is left out."""
    relations = catalog.fault_relations if catalog else UNRELATED
    for state in states:
        if any((fault.arrived_at or fault.first_seen) >= since for fault in state.faults):
            for incident in list_incidents(relations, state):
                is_new = all(symptom.recorded_at >= since for symptom in incident.symptoms)
                if is_new and incident.severity != "informational":
                    rest = (symptom for symptom in incident.symptoms if symptom is not incident.work)
                    yield IncidentMember(state.node, (incident.work, *rest), state.state)


def _list_moves(states: Iterable[NodeState], since: str) -> Iterator[tuple[str, str]]:
    """Yield the nodes that changed their state, with their way and the last reason."""
    for state in states:
        moves = [move for move in state.transitions if move.at >= since]
        if moves:
            way = " → ".join([moves[0].origin, *(move.target for move in moves)])
            yield state.node, f"{way}: {state.reason}"


def _list_waiting(stories: Mapping[str, NodeStory], cells: Iterable[NodeOnMap]) -> Iterator[WaitingNodes]:
    """Yield the nodes by who must act next, with the task of all, or else that of each; the unobserved come last."""
    by_who: dict[str, list[tuple[str, NextStep]]] = defaultdict(list)
    for cell in cells:
        if cell.name in stories and (step := stories[cell.name].next).who:
            by_who[step.who].append((cell.name, step))
    for who, steps in by_who.items():
        shared = steps[0][1].task if len({step.task for _, step in steps}) == 1 else ""
        yield WaitingNodes(who, shared, tuple((node, step.detail if shared else step.task) for node, step in steps))
    if unseen := tuple((cell.name, "") for cell in cells if cell.standing == "unseen"):
        yield WaitingNodes("assay", "observe the node for the first time", unseen)
