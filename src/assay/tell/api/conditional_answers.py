"""The routes of the API. An answer is built in a thread, few at a time, so that no batch of an agent waits for it.

`GET /api/v1/events` gives the changes of the ledger as server-sent events; `Last-Event-ID` says where to go on.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from assay.act.remedies.dossier_build import DIAGNOSTICS
from assay.model.facts import format_compact
from assay.model.ledger_entry import derive_id
from assay.tell.api.endpoints import (
    ENDPOINTS,
    MAX_PAGE,
    ApiEndpoint,
    ApiQuery,
    EventsQuery,
    VisitorRequest,
    read_query,
)
from assay.tell.api.openapi_document import API, ARCHIVE_PATH, ARCHIVE_TYPE, build_openapi_document
from assay.tell.server.app_state import AppState
from assay.tell.server.gate import SECURITY_HEADERS, AccessGate
from assay.tell.server.ledger_changes import EventStream, LedgerChanges
from assay.tell.server.requests import make_refusal
from assay.tell.server.visitor_rights import Visitor
from assay.tell.views.listings import list_changes

BUILT_AT_ONCE = 2
MINUTE_S = 60
ARCHIVE_NAME = re.compile(r"[\w.-]+\.zip")


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the routes of the API."""
    api = ApiRoutes(state)
    made = [Route(f"{API}{endpoint.path}", api.make_endpoint(endpoint), methods=["GET"]) for endpoint in ENDPOINTS]
    stream = ChangeStream(state)
    described = Route(f"{API}/openapi.json", api.describe, methods=["GET"])
    files = Route(f"{API}{ARCHIVE_PATH}", api.get_archive, methods=["GET"])
    return [*made, files, Route(f"{API}/events", stream.stream_changes, methods=["GET"]), described]


class ApiRoutes:
    """Answers the requests of visitors. The same records give the same tag, and then no body."""

    def __init__(self, state: AppState) -> None:
        self._state, self._gate = state, AccessGate(state)
        self._turns = anyio.CapacityLimiter(BUILT_AT_ONCE)

    def make_endpoint(self, endpoint: ApiEndpoint) -> Callable[[Request], Awaitable[Response]]:
        """Return the function that answers the requests of one address."""

        async def reply(request: Request) -> Response:
            visitor = await self._gate.admit(request)
            if visitor.is_customer and not endpoint.for_customers:
                raise make_refusal(403, "this is for the operators of the fleet")
            query = read_query(endpoint.query, request.url.query, request.query_params)
            work = partial(self._build, endpoint, request, visitor, query)
            async with self._state.shares.take_turn(visitor.name):
                tag, body = await anyio.to_thread.run_sync(work, limiter=self._turns)
            headers = {**SECURITY_HEADERS, "ETag": tag, "Vary": "Authorization, Cookie"}
            if body is None:
                return Response(status_code=304, headers=headers)
            return Response(body, media_type="application/json", headers=headers)

        return reply

    def _build(
        self, endpoint: ApiEndpoint, request: Request, visitor: Visitor, query: ApiQuery
    ) -> tuple[str, bytes | None]:
        """Return the tag of an answer and the answer, None if the visitor has it already."""
        records = self._state.records
        stamp = records.read_stamp()
        minute = int(records.clock.now().timestamp()) // MINUTE_S if endpoint.is_timed else 0
        scope = (visitor.role, *sorted(visitor.pools))
        tag = f'"{derive_id(*map(str, stamp), str(minute), *scope, str(request.url))}"'
        if request.headers.get("if-none-match") == tag:
            return tag, None
        answer = endpoint.build(VisitorRequest(records, visitor, request.path_params, query, stamp[0]))
        if answer is None:
            raise make_refusal(404, "there is nothing of this name")
        return tag, format_compact(answer).encode()

    async def get_archive(self, request: Request) -> Response:
        """Return an archive of what was collected before a restart."""
        visitor = await self._gate.admit(request)
        if visitor.is_customer:
            raise make_refusal(403, "this is for the operators of the fleet")
        name = str(request.path_params["file"])
        path = self._state.context.reports / DIAGNOSTICS / name
        if not ARCHIVE_NAME.fullmatch(name) or not await run_in_threadpool(path.is_file):
            raise make_refusal(404, "there is no such archive")
        headers = {**SECURITY_HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
        return Response(await run_in_threadpool(path.read_bytes), media_type=ARCHIVE_TYPE, headers=headers)

    async def describe(self, request: Request) -> Response:
        """Return the OpenAPI document."""
        await self._gate.admit(request)
        return JSONResponse(build_openapi_document(), headers=SECURITY_HEADERS)


class ChangeStream:
    """Streams what a visitor may see of the ledger's changes."""

    def __init__(self, state: AppState) -> None:
        self._state, self._gate = state, AccessGate(state)
        self._changes = LedgerChanges(state.context.ledger.wait, state.ending, state.report)

    async def stream_changes(self, request: Request) -> Response:
        """Begin a stream."""
        visitor = await self._gate.admit(request)
        query = read_query(EventsQuery, request.url.query, request.query_params)
        assert isinstance(query, EventsQuery)
        admits_still = partial(self._gate.admits_still, request, visitor)
        if query.operation:
            if query.operation not in await run_in_threadpool(self._state.records.read_operations, visitor.sees):
                raise make_refusal(404, "there is no such operation")
            events = self.format_operation(visitor, query.operation, admits_still)
            return EventStream(events, self._state.shares.begin_stream(visitor.name))
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isascii() and last.isdecimal() and len(last) < 16 else query.after
        changes = self.format_changes(visitor, after, admits_still)
        return EventStream(changes, self._state.shares.begin_stream(visitor.name))

    async def format_operation(
        self, visitor: Visitor, ident: str, admits_still: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[str]:
        """Yield an event for the operation as it is, and for each of its changes; the last one says how it ended."""
        yield "retry: 3000\n\n"
        last = None
        async with aclosing(self._changes.watch(-1, admits_still)) as heads:
            async for _ in heads:
                record = (await run_in_threadpool(self._state.records.read_operations, visitor.sees)).get(ident)
                if record is None or record == last:
                    yield ": still here\n\n"
                    continue
                last = record
                yield f"id: {record.position}\nevent: operation\ndata: {format_compact(record)}\n\n"
                if record.is_over:
                    return

    async def format_changes(
        self, visitor: Visitor, after: int, admits_still: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[str]:
        """Yield an event for each change after a position; a comment where there is none for a while."""
        yield "retry: 3000\n\n"
        async with aclosing(self._changes.watch(after, admits_still)) as heads:
            async for head in heads:
                if not head:
                    yield ": still here\n\n"
                while after < head:
                    if not await admits_still():
                        return
                    async with self._state.shares.find_turn(visitor.name):
                        page = await run_in_threadpool(list_changes, self._state.records, after, MAX_PAGE, visitor.sees)
                    after = page.position
                    for change in page.changes:
                        yield f"id: {change.seq}\nevent: change\ndata: {format_compact(change)}\n\n"
