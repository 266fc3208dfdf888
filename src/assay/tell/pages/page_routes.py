"""The routes of pages. A page is rendered in a thread, few at a time, so that no batch of an agent waits for it.

One render serves everybody with the same rights, for no page shows who reads it; it is kept while nothing changes. At
most one render of a page waits while another runs: a burst of entries is few renders. `GET /live?after=SEQ` is the
stream that tells an open page that the ledger has grown; the page then reads itself again. So a browser that opens a
page waits for no render of one that is kept: it gets the page as it was up to `STALE_S` before.
"""

from __future__ import annotations

import asyncio
import gzip
import math
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from weakref import WeakValueDictionary

import anyio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from assay.model.facts import frozen
from assay.model.ledger_entry import derive_id
from assay.tell.pages.fabric_pages import render_fabric_page, render_switch_page
from assay.tell.pages.fleet_pages import (
    render_customer_page,
    render_fleet_page,
    render_idle_page,
    render_machines_page,
    render_pool_page,
    render_rack_page,
    render_rollout_page,
    render_rollouts_page,
    render_source_page,
    render_ticket_page,
    render_tickets_page,
    render_trends_page,
)
from assay.tell.pages.node_page import render_node_page
from assay.tell.pages.page_frame import STATIC_ROUTE, PageRequest
from assay.tell.pages.search_page import render_search_page
from assay.tell.server.app_state import AppState
from assay.tell.server.gate import SECURITY_HEADERS, AccessGate
from assay.tell.server.ledger_changes import EventStream, LedgerChanges
from assay.tell.server.requests import make_refusal
from assay.tell.server.visitor_rights import Visitor
from assay.tell.views.records import LiveRecords

RENDERED_AT_ONCE, KEPT_PAGES, KEPT_BYTES = 2, 64, 32 * 1024 * 1024
COMPRESSED_FROM_BYTES, COMPRESSION = 1024, 4
STALE_S = 60.0
"""The minute that a page shows may be as old. What the reader has ordered since is on it in any case."""
PageKey = tuple[object, ...]
"""What asks for a page have in common if one render serves them all."""
MINUTE_S = 60
MAX_QUERY = 512
CUSTOMER_PAGE = "/customer"
NOT_FOR_CUSTOMERS = "this page is for the operators of the fleet; /customer shows your nodes"
PAGES: dict[str, PageRenderer] = {
    "/": render_fleet_page,
    "/nodes/{name}": render_node_page,
    "/racks/{name}": render_rack_page,
    "/pools/{name}": render_pool_page,
    "/rollouts": render_rollouts_page,
    "/rollouts/{id}": render_rollout_page,
    "/tickets": render_tickets_page,
    "/tickets/{id}": render_ticket_page,
    "/machines": render_machines_page,
    "/idle": render_idle_page,
    "/trends": render_trends_page,
    "/fabric": render_fabric_page,
    "/fabric/{name}": render_switch_page,
    "/search": render_search_page,
    CUSTOMER_PAGE: render_customer_page,
    "/source/{commit}/{path:path}": render_source_page,
}


@frozen
class SharedPage:
    """A rendered page and its tag, which names the records that it shows. `small`: in gzip, or b""."""

    tag: str
    body: bytes
    small: bytes = b""

    @classmethod
    def pack(cls, tag: str, text: str) -> SharedPage:
        """Return the page of this text."""
        body = text.encode()
        return cls(tag, body, gzip.compress(body, COMPRESSION) if len(body) >= COMPRESSED_FROM_BYTES else b"")

    def reply(self, request: Request) -> Response:
        """Return what a reader gets: the page, compressed for whom accepts it, or that nothing has changed."""
        is_small = bool(self.small) and accepts_gzip(request.headers.get("accept-encoding", ""))
        tag = f'"{self.tag}-gzip"' if is_small else f'"{self.tag}"'
        headers = {**SECURITY_HEADERS, "ETag": tag, "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        if is_small:
            return Response(self.small, media_type="text/html", headers={**headers, "Content-Encoding": "gzip"})
        return Response(self.body, media_type="text/html", headers=headers)


def accepts_gzip(accepted: str) -> bool:
    """Whether a reader that says this in `Accept-Encoding` takes gzip."""
    for coding in accepted.split(","):
        name, _, weight = coding.replace(" ", "").lower().partition(";q=")
        if name == "gzip":
            return weight.strip("0.") != "" or not weight
    return False


PageMaker = Callable[[str], SharedPage | None]
"""Makes a page with this tag, None if there is no such thing."""


class SharedPages:
    """The newest pages, and the renders that are asked for now."""

    def __init__(self) -> None:
        self._kept: OrderedDict[PageKey, tuple[SharedPage, float]] = OrderedDict()
        """With when each was last known to be as the records are, in monotonic seconds; the oldest first."""
        self._turns = anyio.CapacityLimiter(RENDERED_AT_ONCE)
        self._turn_unawaited = anyio.CapacityLimiter(1)  # what nobody waits for delays no other render
        self._waiting: dict[PageKey, asyncio.Task[SharedPage | None]] = {}
        self._one_of_each = WeakValueDictionary[PageKey, anyio.Lock]()

    async def render(
        self, key: PageKey, name: Callable[[], str], make: PageMaker, *, known_since: float = math.inf
    ) -> SharedPage | None:
        """Return the kept page with the tag that `name` finds, else the one that `make` makes in a thread.

        All who ask with the same key before it begins share it. Who asks later waits for its end, and gets the same
        if nothing has changed. A kept page that was as the records are `known_since` then (monotonic seconds) or later
        is returned at once, and rendered for the next reader.
        """
        kept, known_at = self._kept.get(key, (None, 0.0))
        is_awaited = kept is None or known_at < known_since
        task = self._waiting.get(key)
        if task is None or task.done():
            turn = self._turns if is_awaited else self._turn_unawaited
            task = self._waiting[key] = asyncio.create_task(self._run(key, name, make, turn))
        return await asyncio.shield(task) if is_awaited else kept

    async def _run(
        self, key: PageKey, name: Callable[[], str], make: PageMaker, turn: anyio.CapacityLimiter
    ) -> SharedPage | None:
        async with self._one_of_each.get(key) or self._one_of_each.setdefault(key, anyio.Lock()):
            del self._waiting[key]
            known_at, tag = time.monotonic(), await asyncio.to_thread(name)
            page, _ = self._kept.get(key, (None, 0.0))
            if page is None or page.tag != tag:
                async with turn:
                    page = await asyncio.to_thread(make, tag)
            if page:
                self._keep(key, page, known_at)
            return page

    def _keep(self, key: PageKey, page: SharedPage, known_at: float) -> None:
        """Keep a page; the oldest give way."""
        self._kept[key] = page, known_at
        self._kept.move_to_end(key)
        size = sum(len(kept.body) + len(kept.small) for kept, _ in self._kept.values())
        while len(self._kept) > KEPT_PAGES or size > KEPT_BYTES:
            _, (oldest, _) = self._kept.popitem(last=False)
            size -= len(oldest.body) + len(oldest.small)


PageRenderer = Callable[[LiveRecords, PageRequest], str | None]
"""Returns a page, None if there is no such thing."""


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the routes of all pages, of what they load, and of the stream that keeps them up to date."""
    pages = PageRoutes(state)
    made = [Route(path, pages.make_endpoint(render), methods=["GET"]) for path, render in PAGES.items()]
    return [*made, Route("/live", pages.stream_changes, methods=["GET"]), STATIC_ROUTE]


class PageRoutes:
    """Renders pages: the same records and rights give the same page."""

    def __init__(self, state: AppState) -> None:
        self._state, self._gate, self._pages = state, AccessGate(state), SharedPages()
        self._changes = LedgerChanges(state.context.ledger.wait, state.ending, state.report)

    def make_endpoint(self, render: PageRenderer) -> Callable[[Request], object]:
        """Return the endpoint of one page."""

        async def reply(request: Request) -> Response:
            visitor = await self._gate.admit(request)
            if visitor.is_customer and request.url.path == "/":
                return RedirectResponse(CUSTOMER_PAGE, 303, SECURITY_HEADERS)
            if visitor.is_customer and render is not render_customer_page:
                raise make_refusal(403, NOT_FOR_CUSTOMERS)
            if len(request.url.query) > MAX_QUERY:
                raise make_refusal(414, f"a query of more than {MAX_QUERY} characters")
            asked = partial(PageRequest, request.url.path, request.path_params, request.query_params)
            key = (request.url.path, request.url.query, *visitor.rights)
            make = partial(self._make_page, render, asked, visitor.anonymous)
            headers, known_since = request.headers, math.inf
            if headers.get("sec-fetch-mode") == "navigate" and "cache-control" not in headers:
                known_since = max(time.monotonic() - STALE_S, self._state.shares.ordered_at(visitor.name))
            async with self._state.shares.take_turn(visitor.name):
                page = await self._pages.render(key, partial(self._make_tag, key), make, known_since=known_since)
            if page is None:
                raise make_refusal(404, "there is nothing of this name")
            return page.reply(request)

        return reply

    def _make_tag(self, key: PageKey) -> str:
        """Return the tag of a page as the records are now."""
        minute = int(self._state.records.clock.now().timestamp()) // MINUTE_S
        return derive_id(*map(str, (*self._state.records.read_stamp(), minute, *key)))

    def _make_page(
        self, render: PageRenderer, asked: Callable[..., PageRequest], who: Visitor, tag: str
    ) -> SharedPage | None:
        """Return a page as the records are now; None for one of which there is nothing to show."""
        records, fleet = self._state.records, self._state.records.fleet
        seq, now = records.ledger_for_reading.head(), records.clock.now()
        made = asked(seq, now, who, fleet.is_lab, bool(fleet.designs), fleet.find_page())
        if (text := render(records, made)) is None:
            return None
        return SharedPage.pack(tag, text)

    async def stream_changes(self, request: Request) -> Response:
        """Stream an event `changed` for each growth of the ledger, with the number of its newest entry as id."""
        visitor = await self._gate.admit(request)
        after = request.headers.get("last-event-id") or request.query_params.get("after", "")
        start = int(after) if after.isascii() and after.isdecimal() and len(after) < 16 else 0
        admits_still = partial(self._gate.admits_still, request, visitor)
        heads = self._changes.watch(start, admits_still)
        return EventStream(self._format_changes(heads), self._state.shares.begin_stream(visitor.name))

    async def _format_changes(self, heads: AsyncGenerator[int, None]) -> AsyncIterator[str]:
        yield "retry: 3000\n\n"
        async with aclosing(heads) as changes:
            async for head in changes:
                yield f"id: {head}\nevent: changed\ndata: {head}\n\n" if head else ": still here\n\n"
