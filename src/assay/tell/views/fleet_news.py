"""What is new in the fleet since a time, and what waits for whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from assay.decide.moves.held_answers import OpenBreaker, list_open_breakers
from assay.decide.rollouts.rollout_history import Rollout, RolloutHistory
from assay.decide.state.node_state import NodeState
from assay.model.fleet import Fleet
from assay.model.ticket import TicketRecord
from assay.tell.views.fleet import NodeOnMap
from assay.tell.views.next_step import NextStep, find_next_step, list_ticket_titles

Direction = Literal["out", "back", "on"]


@dataclass(frozen=True, slots=True)
class StateChange:
    """Nodes that made the same transition since the time: when last (ISO 8601 UTC), and each node with its reason.

    `direction`: out of service, back into service, or from one state out of service to another.
    """

    origin: str
    target: str
    direction: Direction
    at: str
    nodes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NewFault:
    """Faults of one class that arrived since the time, with the nodes that have them."""

    fault_class: str
    severity: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WaitingNodes:
    """Nodes that wait: `who` must act, and what the `task` is ("" if it differs). Each node with what is its own."""

    who: str
    task: str
    nodes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FleetNews:
    """What changed since `since` (ISO 8601 UTC), what waits for whom, and what is under way."""

    since: str
    changes: tuple[StateChange, ...]
    faults: tuple[NewFault, ...]
    waiting: tuple[WaitingNodes, ...]
    tickets: tuple[TicketRecord, ...]
    breakers: tuple[OpenBreaker, ...]
    rollout: Rollout | None
    """The rollout that has not ended."""


def build_fleet_news(
    fleet: Fleet,
    states: Sequence[NodeState],
    cells: Sequence[NodeOnMap],
    tickets: Sequence[TicketRecord],
    rollouts: RolloutHistory,
    since: str,
) -> FleetNews:
    """Return the news of the nodes `cells`; `states` may be of more nodes. Tickets about no node are of everybody."""
    seen = {cell.name for cell in cells}
    seen_or_none = {*seen, ""}  # a ticket may be of no node
    ours = [state for state in states if state.node in seen]
    serving = frozenset(chain.from_iterable(policy.states_in_service for policy in fleet.policies.values()))
    return FleetNews(
        since=since,
        changes=tuple(_list_changes(ours, serving, since)),
        faults=tuple(_list_new_faults(ours, since)),
        waiting=tuple(_list_waiting(fleet, ours, cells, tickets)),
        tickets=tuple(record for record in tickets if not record.closed_at and record.ticket.node in seen_or_none),
        breakers=tuple(list_open_breakers(ours)),
        rollout=rollouts.find_active(),
    )


def _list_changes(states: Iterable[NodeState], serving: frozenset[str], since: str) -> Iterator[StateChange]:
    moved: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    newest: dict[tuple[str, str], str] = {}
    for state in states:
        for move in reversed(state.transitions):
            if move.at < since:
                break
            way = (move.origin, move.target)
            moved[way].append((state.node, state.reason if move is state.transitions[-1] else ""))
            newest[way] = max(newest.get(way, ""), move.at)
    for way in sorted(moved, key=lambda way: newest[way], reverse=True):
        yield StateChange(*way, _find_direction(*way, serving), newest[way], tuple(moved[way]))


def _find_direction(origin: str, target: str, serving: frozenset[str]) -> Direction:
    if (origin in serving) == (target in serving):
        return "on"
    return "back" if target in serving else "out"


def _list_new_faults(states: Iterable[NodeState], since: str) -> list[NewFault]:
    nodes_by_kind: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for state in states:
        for fault in state.faults:
            if (fault.arrived_at or fault.first_seen) >= since:
                nodes_by_kind[fault.fault_class, fault.severity][state.node] = None
    new = [NewFault(*kind, tuple(nodes)) for kind, nodes in nodes_by_kind.items()]
    return sorted(new, key=lambda fault: (-len(fault.nodes), fault.fault_class))


def _list_waiting(
    fleet: Fleet, states: Iterable[NodeState], cells: Iterable[NodeOnMap], tickets: Iterable[TicketRecord]
) -> Iterator[WaitingNodes]:
    """Yield the nodes by who must act next, with the task of all, or else that of each; the unobserved come last."""
    policies = {name: policy for policy in fleet.policies.values() for name in policy.states}
    titles = list_ticket_titles(tickets)
    by_who: dict[str, list[tuple[str, NextStep]]] = defaultdict(list)
    for state in states:
        step = find_next_step(state, policies.get(state.state), titles.get(state.node, {}))
        if step.who:
            by_who[step.who].append((state.node, step))
    for who, steps in by_who.items():
        shared = steps[0][1].task if len({step.task for _, step in steps}) == 1 else ""
        yield WaitingNodes(who, shared, tuple((node, step.detail if shared else step.task) for node, step in steps))
    if unseen := tuple((cell.name, "") for cell in cells if cell.standing == "unseen"):
        yield WaitingNodes("assay", "observe the node for the first time", unseen)
