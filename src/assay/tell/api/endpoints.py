"""What the API answers: one line for each address, from which the routes and the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.model.ticket import TicketRecord
from assay.tell.api.queries import ApiQuery, ChangesQuery, ExplainQuery, NodesQuery, TicketsQuery
from assay.tell.customer.customer_answer import CustomerExplanationAnswer
from assay.tell.server.visitor import Visitor
from assay.tell.views.changes import ChangePage, list_changes
from assay.tell.views.explanation_answer import ExplainAnswer
from assay.tell.views.live_records import LiveRecords
from assay.tell.views.machine_list import MachineList, build_machine_list
from assay.tell.views.node_status import NodeStatus
from assay.tell.views.nodes import NodeSummary, PoolSummary, summarize_pools
from assay.tell.views.rollouts import RolloutSummary, summarize_rollout
from assay.tell.views.trust_view import FleetTrust, build_fleet_trust
from assay.tell.views.visible_fleet import VisibleFleet


@dataclass(frozen=True, slots=True)
class VisitorRequest:
    """Who asks for what. `position` is the newest entry of the ledger then."""

    records: LiveRecords
    visitor: Visitor
    path: Mapping[str, str]
    query: Any
    position: int

    @property
    def fleet(self) -> VisibleFleet:
        """The nodes that the visitor may see."""
        return VisibleFleet(self.records, self.visitor.may_see, self.visitor.is_customer)


@dataclass(frozen=True, slots=True)
class NodePage:
    """Nodes by name. `next`: ask for those after this name; "" after the last. `total`: how many match."""

    nodes: list[NodeSummary]
    """The nodes."""
    next: str
    total: int


@dataclass(frozen=True, slots=True)
class NodeDetail:
    """A node. `details`: its status; for customers, what happened in plain words. `position`: an order names it."""

    node: NodeSummary
    """The node in short."""
    details: NodeStatus | CustomerExplanationAnswer
    position: int


@dataclass(frozen=True, slots=True)
class RolloutList:
    """The rollouts, the newest first. `position`: an order names it."""

    rollouts: list[RolloutSummary]
    """The rollouts."""
    position: int


@dataclass(frozen=True, slots=True)
class ApiEndpoint:
    """One address. `build` returns the answer, None for nothing. `is_timed`: the answer changes with the clock."""

    path: str
    summary: str
    answer: Any
    build: Callable[[VisitorRequest], Any]
    query: type[ApiQuery] = ApiQuery
    for_customers: bool = True
    is_timed: bool = False


Explanation = ExplainAnswer | CustomerExplanationAnswer
"""What staff and customers are told of a node."""


def list_nodes(request: VisitorRequest) -> NodePage:
    """Return one page of the nodes that match."""
    query = request.query
    matching = [
        one
        for one in request.fleet.list_nodes()
        if query.pool in ("", one.pool)
        and query.state in ("", one.state)
        and (query.held is None or query.held == bool(one.held_by))
    ]
    rest = [one for one in matching if one.node > query.after]
    shown = rest[: query.limit]
    return NodePage(shown, shown[-1].node if len(rest) > len(shown) else "", len(matching))


def show_node(request: VisitorRequest) -> NodeDetail | None:
    """Return one node."""
    node, details = request.fleet.find_node(request.path["name"]), request.fleet.describe(request.path["name"])
    return NodeDetail(node, details, request.position) if node and details else None


def explain(request: VisitorRequest) -> Explanation | None:
    """Return why a node is in its state; for customers, in plain words."""
    return request.fleet.explain(request.path["name"], request.query.last)


def list_pools(request: VisitorRequest) -> list[PoolSummary]:
    """Return the pools."""
    return summarize_pools(request.fleet.list_nodes())


def show_trust(request: VisitorRequest) -> FleetTrust | None:
    """Return how far automation may go, and what waits for a person."""
    return build_fleet_trust(request.records, request.records.read_node_states())


def list_rollouts(request: VisitorRequest) -> RolloutList:
    """Return the rollouts."""
    rollouts = request.records.read_rollouts().rollouts.values()
    return RolloutList([summarize_rollout(one) for one in rollouts][::-1], request.position)


def list_tickets(request: VisitorRequest) -> list[TicketRecord]:
    """Return the tickets."""
    return [one for one in request.records.read_tickets() if request.query.all or not one.closed_at]


def show_changes(request: VisitorRequest) -> ChangePage:
    """Return one page of changes."""
    sees = request.visitor.may_see if request.visitor.is_customer else None
    return list_changes(request.records, request.query.after, request.query.limit, sees)


def list_machines(request: VisitorRequest) -> MachineList:
    """Return the machines that were seen."""
    records = request.records
    return build_machine_list(records.fleet, records.read_machines(), records.ledger_for_reading)


ENDPOINTS = (
    ApiEndpoint("/nodes", "The nodes", NodePage, list_nodes, NodesQuery),
    ApiEndpoint("/nodes/{name}", "One node", NodeDetail, show_node, is_timed=True),
    ApiEndpoint("/nodes/{name}/explain", "Why it is so", Explanation, explain, ExplainQuery, is_timed=True),
    ApiEndpoint("/pools", "The pools", list[PoolSummary], list_pools),
    ApiEndpoint(
        "/trust", "How far automation may go", FleetTrust | None, show_trust, for_customers=False, is_timed=True
    ),
    ApiEndpoint("/rollouts", "Merged changes on their way", RolloutList, list_rollouts, for_customers=False),
    ApiEndpoint("/tickets", "Work for people", list[TicketRecord], list_tickets, TicketsQuery, for_customers=False),
    ApiEndpoint("/machines", "Machines that were seen", MachineList, list_machines, for_customers=False, is_timed=True),
    ApiEndpoint("/changes", "What has changed after a position", ChangePage, show_changes, ChangesQuery),
)
