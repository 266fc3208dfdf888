"""`GET /api/v1/events`: the changes of the ledger as server-sent events. `Last-Event-ID` says where to go on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from assay.model.facts import format_compact
from assay.tell.api.endpoints import MAX_PAGE, ChangesQuery, read_query
from assay.tell.server.app_state import AppState
from assay.tell.server.gate import AccessGate
from assay.tell.server.ledger_changes import EventStream, LedgerChanges
from assay.tell.server.requests import make_refusal
from assay.tell.server.visitor_rights import Visitor
from assay.tell.views.listings import list_changes


class ChangeStream:
    """Streams what a visitor may see of the ledger's changes."""

    def __init__(self, state: AppState) -> None:
        self._state, self._gate = state, AccessGate(state)
        self._changes = LedgerChanges(state.context.ledger.wait, state.ending, state.report)

    async def stream_changes(self, request: Request) -> Response:
        """Begin a stream."""
        visitor = await self._gate.admit(request)
        query = read_query(ChangesQuery, request.url.query, request.query_params)
        assert isinstance(query, ChangesQuery)
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isascii() and last.isdecimal() and len(last) < 16 else query.after
        if self._changes.is_full:
            raise make_refusal(503, "as many follow the ledger as may", wait_s=30)
        return EventStream(self.format_changes(visitor, after))

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
                        yield f"id: {change.seq}\nevent: change\ndata: {format_compact(change)}\n\n"
