"""What the API answers: one line for each address, with the fields that its query may have.

The routes and the OpenAPI document are made from these lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.act.tickets.repair_history import REPAIRS, MachineRepair, select_repairs
from assay.decide.plan.inputs import PresentFacts
from assay.decide.state.operation_record import OperationRecord
from assay.ledger.ledger_reader import read_projection
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.outside_documents import describe_mistakes
from assay.model.ticket import TicketRecord
from assay.model.timestamps import format_time, hours
from assay.observe.evidence_store import EvidenceStore
from assay.observe.logs.console_log import CONSOLES, ConsoleAnswer, search_console
from assay.tell.customer.customer_explanation import CustomerExplanation
from assay.tell.server.requests import make_refusal
from assay.tell.server.visitor_rights import Visitor
from assay.tell.views.hosts import CapacityGroup, HostReader, HostRecord
from assay.tell.views.listings import (
    ChangePage,
    NodeSummary,
    PoolSummary,
    VisibleFleet,
    build_present_facts,
    list_changes,
    summarize_pools,
)
from assay.tell.views.machine_list import MachineList, build_machine_list
from assay.tell.views.node_explanation import ExplainAnswer
from assay.tell.views.node_status import NodeStatus
from assay.tell.views.node_sync import RolloutSummary, summarize_rollout
from assay.tell.views.pool_delivery import list_pool_deliveries
from assay.tell.views.records import LiveRecords
from assay.tell.views.trust_view import FleetTrust, build_fleet_trust

MAX_PAGE = 1000
MAX_QUERY_CHARACTERS = 1024
Text = Annotated[str, Field(max_length=128)]


class ApiQuery(BaseModel):
    """A query without fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NodesQuery(ApiQuery):
    """Which nodes: of a pool, in a state, held by somebody; after the node of this name, at most `limit`."""

    pool: Text = ""
    state: Text = ""
    held: bool | None = None
    after: Text = ""
    limit: int = Field(default=200, ge=1, le=MAX_PAGE)


class HostsQuery(ApiQuery):
    """Which nodes: one, or those of a pool; after the node of this name, at most `limit`."""

    node: Text = ""
    pool: Text = ""
    after: Text = ""
    limit: int = Field(default=50, ge=1, le=200)


class EvidenceQuery(ApiQuery):
    """Which branch of the readings, its steps separated by slashes, such as `bmc/sensor`; without it, all of them."""

    path: Text = ""


class ConsoleQuery(ApiQuery):
    """Lines with a `text` of the last `hours`; at most `limit`, the newest."""

    text: Text = ""
    hours: float = Field(default=0, ge=0, le=100_000)
    limit: int = Field(default=200, ge=1, le=MAX_PAGE)


class CapacityQuery(ApiQuery):
    """Groups of a kind (fleet, pool, rack, spec or customer); the one of a name."""

    kind: Text = ""
    name: Text = ""


class ExplainQuery(ApiQuery):
    """How many decisions, 0 for all."""

    last: int = Field(default=8, ge=0, le=MAX_PAGE)


class TicketsQuery(ApiQuery):
    """Whether closed tickets are listed too."""

    all: bool = False


class RepairsQuery(ApiQuery):
    """Repairs of a node's machine, or of a machine or part by its serial number; at most `limit`, the newest first."""

    node: Text = ""
    serial: Text = ""
    limit: int = Field(default=200, ge=1, le=MAX_PAGE)


class OperationsQuery(ApiQuery):
    """Operations for a node; with `open`, only those that have not ended; at most `limit`."""

    node: Text = ""
    open: bool = False
    limit: int = Field(default=200, ge=1, le=MAX_PAGE)


class ChangesQuery(ApiQuery):
    """Changes after a position of the ledger, at most `limit`."""

    after: int = Field(default=0, ge=0, le=2**62)
    limit: int = Field(default=200, ge=1, le=MAX_PAGE)


class EventsQuery(ChangesQuery):
    """Changes after a position of the ledger; with the id of an `operation`, that operation until it has ended."""

    operation: Text = ""


def read_query(model: type[ApiQuery], text: str, fields: Mapping[str, str]) -> ApiQuery:
    """Return the query of a request. Raises a refusal that says which field is wrong."""
    if len(text) > MAX_QUERY_CHARACTERS:
        raise make_refusal(414, f"a query of more than {MAX_QUERY_CHARACTERS} characters")
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        raise make_refusal(422, describe_mistakes(error, "the query")) from None


@frozen
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


@frozen
class NodePage:
    """Nodes by name. `next`: ask for those after this name; "" after the last. `total`: how many match."""

    nodes: list[NodeSummary]
    """The nodes."""
    next: str
    total: int


@frozen
class HostPage:
    """Nodes by name. `next`: ask for those after this name; "" after the last. `total`: how many match."""

    hosts: list[HostRecord]
    """The nodes."""
    next: str
    total: int


@frozen
class NodeReadings:
    """What was last read of a node. `readings`: the branch, whose leaves are value, absent, unsupported or failed."""

    node: str
    """The name of the node."""
    at: str
    """When it was read: ISO 8601 UTC; "" for never."""
    digest: str
    """The SHA-256 of the whole evidence, by which outcomes name it; "" without any."""
    readings: Any


@frozen
class NodeDetail:
    """A node. `details`: its status; for customers, what happened in plain words. `position`: an order names it."""

    node: NodeSummary
    """The node in short."""
    details: NodeStatus | CustomerExplanation
    position: int


@frozen
class RolloutList:
    """The rollouts, the newest first. `position`: an order names it."""

    rollouts: list[RolloutSummary]
    """The rollouts."""
    position: int


@frozen
class ApiEndpoint:
    """One address. `build` returns the answer, None for nothing. `is_timed`: the answer changes with the clock."""

    path: str
    summary: str
    answer: Any
    build: Callable[[VisitorRequest], Any]
    query: type[ApiQuery] = ApiQuery
    for_customers: bool = True
    is_timed: bool = False


Explanation = ExplainAnswer | CustomerExplanation
"""What staff and customers are told of a node."""


def list_nodes(request: VisitorRequest) -> NodePage:
    """Return one page of the nodes that match."""
    query = request.query
    matching = [
        node
        for node in request.fleet.list_nodes()
        if query.pool in ("", node.pool)
        and query.state in ("", node.state)
        and (query.held is None or query.held == bool(node.held_by))
    ]
    rest = [node for node in matching if node.node > query.after]
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
    records = request.records
    staff = not request.visitor.is_customer
    deliveries = list_pool_deliveries(records, records.read_node_states()) if staff else ()
    return summarize_pools(request.fleet.list_nodes(), deliveries)


def list_hosts(request: VisitorRequest) -> HostPage:
    """Return one page of the nodes that the inventory has and the ledger knows, each as its machine is."""
    query, reader = request.query, _make_host_reader(request)
    known = [name for name in sorted(reader.states) if query.node in ("", name)]
    matching = [name for name in known if query.pool in ("", request.records.fleet.nodes[name].pool)]
    rest = [name for name in matching if name > query.after]
    shown = rest[: query.limit]
    return HostPage(reader.list_hosts(shown), shown[-1] if len(rest) > len(shown) else "", len(matching))


def show_readings(request: VisitorRequest) -> NodeReadings | None:
    """Return what was last read of a node."""
    name = request.path["name"]
    if name not in request.records.fleet.nodes:
        return None
    evidence = EvidenceStore(request.records.data_dir / "evidence").latest(name)
    if evidence is None:
        return NodeReadings(name, "", "", None)
    readings: Any = evidence.channels
    for step in filter(None, request.query.path.split("/")):
        readings = readings.get(step) if isinstance(readings, Mapping) else None
    return NodeReadings(name, format_time(evidence.at), evidence.digest(), readings)


def show_console(request: VisitorRequest) -> ConsoleAnswer | None:
    """Return what was recorded of a node's serial console; None where nothing was."""
    name, query = request.path["name"], request.query
    since = SystemClock().now() - hours(query.hours) if query.hours else None
    if name not in request.records.fleet.nodes:
        return None
    try:
        return search_console(request.records.data_dir / CONSOLES, name, since, query.text, query.limit)
    except AssayError:
        return None


def measure_capacity(request: VisitorRequest) -> list[CapacityGroup]:
    """Return what the fleet and its groups have."""
    return list(_make_host_reader(request).list_groups(request.query.kind, request.query.name))


def _make_host_reader(request: VisitorRequest) -> HostReader:
    records = request.records
    states = {state.node: state for state in records.read_node_states() if state.node in records.fleet.nodes}
    return HostReader(records, states, records.read_jobs)


def show_trust(request: VisitorRequest) -> FleetTrust | None:
    """Return how far automation may go, and what waits for a person."""
    return build_fleet_trust(request.records, request.records.read_node_states())


def list_rollouts(request: VisitorRequest) -> RolloutList:
    """Return the rollouts."""
    rollouts = request.records.read_rollouts().rollouts.values()
    return RolloutList([summarize_rollout(rollout) for rollout in rollouts][::-1], request.position)


def list_tickets(request: VisitorRequest) -> list[TicketRecord]:
    """Return the tickets."""
    return [record for record in request.records.read_tickets() if request.query.all or not record.closed_at]


def list_repairs(request: VisitorRequest) -> list[MachineRepair]:
    """Return the repairs of machines."""
    query = request.query
    history = read_projection(request.records.ledger_for_reading, REPAIRS)
    return select_repairs(history, query.node, query.serial)[: query.limit]


def show_changes(request: VisitorRequest) -> ChangePage:
    """Return one page of changes."""
    return list_changes(request.records, request.query.after, request.query.limit, request.visitor.sees)


def list_machines(request: VisitorRequest) -> MachineList:
    """Return the machines that were seen."""
    records = request.records
    return build_machine_list(records.fleet, records.read_machines(), records.ledger_for_reading)


def tell_facts(request: VisitorRequest) -> PresentFacts:
    """Return what `assay plan` needs to know of the fleet."""
    return build_present_facts(request.records, request.position)


def list_operations(request: VisitorRequest) -> list[OperationRecord]:
    """Return the operations, the newest first."""
    query = request.query
    records = request.records.read_operations(request.visitor.sees)
    fitting = (
        record
        for record in reversed(records.values())
        if (not query.open or not record.is_over) and (not query.node or record.find(query.node))
    )
    return [*islice(fitting, query.limit)]


def show_operation(request: VisitorRequest) -> OperationRecord | None:
    """Return one operation."""
    return request.records.read_operations(request.visitor.sees).get(request.path["id"])


ENDPOINTS = (
    ApiEndpoint("/nodes", "The nodes", NodePage, list_nodes, NodesQuery),
    ApiEndpoint("/nodes/{name}", "One node", NodeDetail, show_node, is_timed=True),
    ApiEndpoint("/nodes/{name}/explain", "Why it is so", Explanation, explain, ExplainQuery, is_timed=True),
    ApiEndpoint("/hosts", "Nodes as machines", HostPage, list_hosts, HostsQuery, for_customers=False, is_timed=True),
    ApiEndpoint(
        "/capacity",
        "What the fleet and its groups deliver",
        list[CapacityGroup],
        measure_capacity,
        CapacityQuery,
        for_customers=False,
        is_timed=True,
    ),
    ApiEndpoint(
        "/nodes/{name}/readings",
        "What was last read",
        NodeReadings,
        show_readings,
        EvidenceQuery,
        for_customers=False,
        is_timed=True,
    ),
    ApiEndpoint(
        "/nodes/{name}/console",
        "What its serial console showed",
        ConsoleAnswer,
        show_console,
        ConsoleQuery,
        for_customers=False,
        is_timed=True,
    ),
    ApiEndpoint("/pools", "The pools", list[PoolSummary], list_pools, is_timed=True),
    ApiEndpoint(
        "/trust", "How far automation may go", FleetTrust | None, show_trust, for_customers=False, is_timed=True
    ),
    ApiEndpoint("/rollouts", "Merged changes on their way", RolloutList, list_rollouts, for_customers=False),
    ApiEndpoint("/tickets", "Work for people", list[TicketRecord], list_tickets, TicketsQuery, for_customers=False),
    ApiEndpoint(
        "/repairs", "Repairs of machines", list[MachineRepair], list_repairs, RepairsQuery, for_customers=False
    ),
    ApiEndpoint("/machines", "Machines that were seen", MachineList, list_machines, for_customers=False, is_timed=True),
    ApiEndpoint("/facts", "What a plan must know", PresentFacts, tell_facts, for_customers=False, is_timed=True),
    ApiEndpoint("/operations", "What was ordered by name", list[OperationRecord], list_operations, OperationsQuery),
    ApiEndpoint("/operations/{id}", "One operation", OperationRecord, show_operation),
    ApiEndpoint("/changes", "What has changed after a position", ChangePage, show_changes, ChangesQuery),
)
