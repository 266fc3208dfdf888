"""`POST` of orders for nodes and rollouts: by the API as JSON, or by a page's form, which is led back to its page.

`POST /api/v1/operations`: what operators, and customers for their own nodes, order by name, and take back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl, quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from assay.act.orders.operations import MAX_NODES, OperationOrders, WantedOperation, expand_rack
from assay.act.orders.orders import OperatorIdentity, strip_to_one_line
from assay.act.orders.visitor_orders import (
    NodeOrderName,
    OrderRefused,
    OrderResult,
    RolloutOrderName,
    TicketOrderName,
    VisitorOrder,
    order_for_node,
    order_for_rollout,
    order_for_ticket,
)
from assay.decide.state.operation_record import CUSTOMER, OperationRecord
from assay.model.errors import AssayError
from assay.model.facts import format_compact
from assay.model.outside_documents import describe_mistakes
from assay.model.specs.policy_sections import OperationName
from assay.tell.server.app_state import AppState
from assay.tell.server.gate import SECURITY_HEADERS, AccessGate
from assay.tell.server.requests import make_refusal, read_body
from assay.tell.server.visitor_rights import Visitor
from assay.tell.views.calendar import ROLLOUT, format_calendar

MAX_ORDER_BYTES = 4096
OPERATIONS_PATH = "/operations"
CANCEL_PATH = f"{OPERATIONS_PATH}/{{id}}/cancel"
DEFER_PATH = f"{OPERATIONS_PATH}/{{id}}/defer"
CALENDAR_PATH = f"{OPERATIONS_PATH}.ics"
MAX_OPERATION_BYTES = 65536
MAX_GPUS = 64
OPERATION = "operation"
"""The name under which the rights of visitors have it."""
Name = Annotated[str, Field(min_length=1, max_length=64)]
Reason = Annotated[str, Field(min_length=1, max_length=500)]
Moment = Annotated[str, Field(max_length=40)]
FORM = "application/x-www-form-urlencoded"
Order = TypeVar("Order", bound=BaseModel)
Result = TypeVar("Result")


class NodeOrder(BaseModel):
    """An order for a node. `after`: the `position` that came with what the person saw. `for`: 90m, 12h, 3d, 2w.

    `decision`: the id of what is approved or declined.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    order: NodeOrderName
    reason: Reason
    after: int = Field(ge=0, le=2**62)
    duration: str = Field(default="", max_length=16, alias="for")
    decision: str = Field(default="", max_length=64)


class RolloutOrder(BaseModel):
    """An order for a rollout. `after`: the `position` that came with what the person saw."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    order: RolloutOrderName
    reason: Reason
    after: int = Field(ge=0, le=2**62)


class TicketOrder(BaseModel):
    """What a technician says of a ticket. `after`: the `position` that came with what the person saw."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    order: TicketOrderName
    reason: Reason
    after: int = Field(ge=0, le=2**62)


class OperationRequest(BaseModel):
    """An operation for `nodes`, or for all nodes of a `rack`, named `RACK` or `SITE/RACK`.

    `key`: chosen by the caller, and new for each operation. The same request with the same key is the same operation.
    `now`: without waiting for jobs. `gpus`: the slots that a `gpu-reset` is for; none: all. `starts_at` and `ends_at`:
    the window of planned work (ISO 8601 with a zone); without them, it begins at once.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    operation: OperationName
    nodes: list[Name] = Field(default=[], max_length=MAX_NODES)
    rack: str = Field(default="", max_length=128)
    reason: Reason
    key: str = Field(min_length=8, max_length=128, pattern=r"^[!-~]+$")
    now: bool = False
    gpus: list[Annotated[int, Field(ge=0, le=MAX_GPUS - 1)]] = Field(default=[], max_length=MAX_GPUS)
    starts_at: Moment = ""
    ends_at: Moment = ""


class OperationDeferral(BaseModel):
    """When planned work shall begin instead (ISO 8601 with a zone), and why. It takes as long as it was planned."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    starts_at: Annotated[str, Field(min_length=1, max_length=40)]
    reason: Reason


class OperationCancel(BaseModel):
    """Why an operation is taken back."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reason: Reason


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the routes of orders."""
    orders, operations = OrderRoutes(state), OperationRoutes(state)
    return [
        Route(f"/api/v1{OPERATIONS_PATH}", operations.begin, methods=["POST"]),
        Route(f"/api/v1{CANCEL_PATH}", operations.cancel, methods=["POST"]),
        Route(f"/api/v1{DEFER_PATH}", operations.defer, methods=["POST"]),
        Route(f"/api/v1{CALENDAR_PATH}", operations.read_calendar, methods=["GET"]),
        Route("/api/v1/nodes/{name}/orders", orders.order_for_node, methods=["POST"]),
        Route("/api/v1/rollouts/{id}/orders", orders.order_for_rollout, methods=["POST"]),
        Route("/api/v1/tickets/{id}/orders", orders.order_for_ticket, methods=["POST"]),
    ]


class OrderRoutes:
    """Takes orders of visitors who may give them. Each goes the way of the command line, in the visitor's name."""

    def __init__(self, state: AppState) -> None:
        self._state, self._gate = state, AccessGate(state)

    async def order_for_node(self, request: Request) -> Response:
        """Hold, release or certify a node, or say yes or no to what waits there."""
        visitor = await self._admit_orderer(request)
        body = await self._read_order(request, NodeOrder)
        order = replace(
            self._allow(visitor, body.order, body.reason, body.after, body.duration), decision=body.decision
        )
        name = request.path_params["name"]
        state = next((state for state in self._state.records.read_node_states() if state.node == name), None)
        if state is None or not visitor.may_see(state):
            raise make_refusal(404, "there is no such node")
        result = await self._give(visitor, partial(order_for_node, self._state.context, state, order))
        return self._reply(request, result, f"/nodes/{quote(name, safe='')}")

    async def order_for_rollout(self, request: Request) -> Response:
        """Pause or resume a rollout."""
        visitor = await self._admit_orderer(request)
        body = await self._read_order(request, RolloutOrder)
        order = self._allow(visitor, body.order, body.reason, body.after)
        rollouts, ident = self._state.records.read_rollouts().rollouts, request.path_params["id"]
        if ident not in rollouts:
            raise make_refusal(404, "there is no such rollout")
        result = await self._give(
            visitor, partial(order_for_rollout, self._state.context, rollouts.values(), ident, order)
        )
        return self._reply(request, result, f"/rollouts/{quote(ident, safe='')}")

    async def order_for_ticket(self, request: Request) -> Response:
        """Take a technician's word that the work is done."""
        visitor = await self._admit_orderer(request)
        body = await self._read_order(request, TicketOrder)
        order = self._allow(visitor, body.order, body.reason, body.after)
        records, ident = self._state.records.read_tickets(), request.path_params["id"]
        if ident not in {record.ticket.id for record in records}:
            raise make_refusal(404, "there is no such ticket")
        result = await self._give(visitor, partial(order_for_ticket, self._state.context, records, ident, order))
        return self._reply(request, result, f"/tickets/{quote(ident, safe='')}")

    async def _admit_orderer(self, request: Request, order: str = "") -> Visitor:
        """Return the visitor. Raises a refusal for one who may not give it, or none, before anything is looked up."""
        visitor = await self._gate.admit(request)
        if not visitor.may_order(order):
            raise make_refusal(403, f"a {visitor.role} gives no {order or 'order'}s")
        return visitor

    def _allow(self, visitor: Visitor, order: str, reason: str, after: int, duration: str = "") -> VisitorOrder:
        if not visitor.may_order(order):
            raise make_refusal(403, f"a {visitor.role} may not order {order}")
        return VisitorOrder(order, visitor.name, reason, after, duration)

    async def _read_order(self, request: Request, model: type[Order], most: int = MAX_ORDER_BYTES) -> Order:
        body = await read_body(request, most, self._state.limits.connections.body_seconds)
        try:
            if _is_form(request):
                return model.model_validate(dict(parse_qsl(body.decode(), strict_parsing=True)))
            return model.model_validate_json(body)
        except ValidationError as error:
            raise make_refusal(422, describe_mistakes(error, "the body")) from None
        except ValueError:
            raise make_refusal(422, "this is no form") from None

    async def _give(self, visitor: Visitor, give: Callable[[], Result]) -> Result:
        try:
            async with self._state.shares.take_turn(visitor.name):
                given = await run_in_threadpool(give)
                self._state.shares.note_order(visitor.name)
                return given
        except OrderRefused as error:
            raise make_refusal(409, error.what) from None
        except AssayError as error:
            raise make_refusal(503, error.what, wait_s=5) from None

    def _reply(self, request: Request, result: OrderResult, page: str) -> Response:
        if _is_form(request):
            return RedirectResponse(page, 303, SECURITY_HEADERS)
        return Response(format_compact(result), media_type="application/json", headers=SECURITY_HEADERS)


def _is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM


def _refuse_own_work(known: OperationRecord) -> None:
    if known.who == "assay" and not known.key:
        raise make_refusal(409, f"nobody ordered this {known.operation}: pause the rollout, or revert its commit")


def describe_orders() -> dict[str, tuple[str, type[BaseModel], Any]]:
    """Return the addresses of orders, for the OpenAPI document: path → summary, body, answer."""
    return {
        "/nodes/{name}/orders": ("Hold, release, certify a node; approve, decline", NodeOrder, OrderResult),
        "/tickets/{id}/orders": ("Say that the work is done, and ask for its proof", TicketOrder, OrderResult),
        "/rollouts/{id}/orders": ("Pause or resume a rollout", RolloutOrder, OrderResult),
        OPERATIONS_PATH: ("Order an operation", OperationRequest, OperationRecord),
        DEFER_PATH: ("Let planned work begin later", OperationDeferral, OperationRecord),
        CANCEL_PATH: ("Take an operation back where it has not begun", OperationCancel, OperationRecord),
    }


class OperationRoutes(OrderRoutes):
    """Takes operations. A node that a visitor may not see is as one that does not exist."""

    async def begin(self, request: Request) -> Response:
        """Accept an operation (202), say that it was accepted before (200), or refuse it."""
        visitor = await self._admit_orderer(request, OPERATION)
        body = await self._read_order(request, OperationRequest, MAX_OPERATION_BYTES)
        record, is_new = await self._give(visitor, partial(self._begin, visitor, body))
        headers = {**SECURITY_HEADERS, "Location": f"/api/v1{OPERATIONS_PATH}/{record.id}"}
        return self._answer(visitor, record, 202 if is_new else 200, headers)

    async def cancel(self, request: Request) -> Response:
        """Take an operation back where it has not begun."""
        visitor = await self._admit_orderer(request, OPERATION)
        body = await self._read_order(request, OperationCancel)
        known = self._state.records.read_operations(visitor.sees).get(ident := request.path_params["id"])
        if known is None:
            raise make_refusal(404, "there is no such operation")
        if visitor.is_customer and known.role != CUSTOMER:
            raise make_refusal(409, "it is not yours to take back: defer it")
        _refuse_own_work(known)
        record = await self._give(visitor, partial(self._order_as(visitor, body.reason).cancel, ident))
        return self._answer(visitor, record, 200, SECURITY_HEADERS)

    async def defer(self, request: Request) -> Response:
        """Let planned work begin at another time: an operator any, a customer work on nodes that are all theirs.

        A rollout waits on the visitor's nodes, and goes on elsewhere.
        """
        visitor = await self._admit_orderer(request, OPERATION)
        body = await self._read_order(request, OperationDeferral)
        ident, known = request.path_params["id"], self._state.records.read_operations(None)
        if ident not in self._state.records.read_operations(visitor.sees):
            raise make_refusal(404, "there is no such operation")
        theirs = {state.node for state in self._state.records.read_node_states() if visitor.may_see(state)}
        orders = self._order_as(visitor, body.reason)
        defer: Callable[[], object]
        if known[ident].operation == ROLLOUT:
            defer = partial(orders.defer_rollout, ident, theirs, body.starts_at, visitor.role)
        elif theirs.issuperset(each.node for each in known[ident].nodes):
            _refuse_own_work(known[ident])
            defer = partial(orders.defer, ident, body.starts_at, visitor.role)
        else:
            raise make_refusal(409, "it is for nodes of others too: ask for another time")
        await self._give(visitor, defer)
        return self._answer(visitor, known[ident], 200, SECURITY_HEADERS)

    async def read_calendar(self, request: Request) -> Response:
        """Return planned work as a calendar that programs subscribe to (iCalendar, RFC 5545)."""
        visitor = await self._gate.admit(request)
        records = await run_in_threadpool(self._state.records.read_operations, visitor.sees)
        text = format_calendar([record for record in records.values() if record.starts_at])
        return Response(text, 200, SECURITY_HEADERS, "text/calendar; charset=utf-8")

    def _begin(self, visitor: Visitor, body: OperationRequest) -> tuple[OperationRecord, bool]:
        if bool(body.nodes) == bool(body.rack):
            raise make_refusal(422, "name either nodes or a rack")
        names = expand_rack(self._state.context.fleet, body.rack) if body.rack else body.nodes
        seen = {state.node: state for state in self._state.records.read_node_states() if visitor.may_see(state)}
        states = [seen[name] for name in dict.fromkeys(names) if name in seen]
        if not names or len(states) < len(set(names)):
            raise make_refusal(404, "there is no such node, or rack")
        nodes = tuple(state.node for state in states)
        gpus = tuple(sorted(set(body.gpus)))
        if bool(body.starts_at) != bool(body.ends_at):
            raise make_refusal(422, "planned work has both a beginning and an end")
        wish = WantedOperation(
            body.operation,
            nodes,
            body.key,
            body.now,
            visitor.role,
            gpus=gpus,
            starts_at=body.starts_at,
            ends_at=body.ends_at,
        )
        return self._order_as(visitor, body.reason).begin(states, wish)

    def _order_as(self, visitor: Visitor, reason: str) -> OperationOrders:
        context, text = self._state.context, strip_to_one_line(reason)
        if not text:
            raise make_refusal(422, "a reason is missing: others will read it")
        operator = OperatorIdentity(visitor.name, text, context.now)
        return OperationOrders(context.fleet, context.ledger, operator)

    def _answer(self, visitor: Visitor, record: OperationRecord, status: int, headers: dict[str, str]) -> Response:
        shown = self._state.records.read_operations(visitor.sees)[record.id]
        return Response(format_compact(shown), status, headers, "application/json")
