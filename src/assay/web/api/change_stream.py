"""`GET /api/v1/events`: the changes of the ledger as server-sent events. `Last-Event-ID` says where to go on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import aclosing

from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from assay.views.listings.changes import RecordedChange, list_changes
from assay.web.access.gate import AccessGate
from assay.web.access.security_headers import SECURITY_HEADERS
from assay.web.access.visitor import Visitor
from assay.web.api.queries import MAX_PAGE, ChangesQuery, read_query
from assay.web.app_state import AppState
from assay.web.ledger_changes import LedgerChanges
from assay.web.request_bodies_and_refusals import make_refusal

STREAM_S = 900
"""So long a stream lasts: then the client connects again, and is asked again who it is. A slow one holds no place."""
CHANGE = TypeAdapter(RecordedChange)


class BoundedStream(StreamingResponse):
    """A stream that ends after a time, even if its client reads nothing."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STREAM_S):
                await super().__call__(scope, receive, send)


class ChangeStream:
    """Streams what a visitor may see of the ledger's changes."""

    def __init__(self, state: AppState) -> None:
        self._state, self._gate = state, AccessGate(state)
        self._changes = LedgerChanges(state.context.ledger.wait, state.ending)

    async def stream_changes(self, request: Request) -> Response:
        """Begin a stream."""
        visitor = await self._gate.admit(request)
        query = read_query(ChangesQuery, request.url.query, request.query_params)
        assert isinstance(query, ChangesQuery)
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isascii() and last.isdecimal() and len(last) < 16 else query.after
        if self._changes.is_full:
            raise make_refusal(503, "as many follow the ledger as may", wait_s=30)
        headers = {**SECURITY_HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return BoundedStream(self.format_changes(visitor, after), media_type="text/event-stream", headers=headers)

    async def format_changes(self, visitor: Visitor, after: int) -> AsyncIterator[str]:
        """Yield an event for each change after a position; a comment where there is none for a while."""
        sees = visitor.may_see if visitor.is_customer else None
        yield "retry: 3000\n\n"
        async with aclosing(self._changes.watch(after)) as heads:
            async for head in heads:
                if not head:
                    yield ": still here\n\n"
                while after < head:
                    page = await run_in_threadpool(list_changes, self._state.records, after, MAX_PAGE, sees)
                    after = page.position
                    for change in page.changes:
                        yield f"id: {change.seq}\nevent: change\ndata: {CHANGE.dump_json(change).decode()}\n\n"
