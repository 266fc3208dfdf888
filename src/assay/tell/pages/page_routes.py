"""The routes of pages. A page is rendered in a thread, few at a time, so that no batch of an agent waits for it.

One render serves everybody with the same rights: no page shows who reads it.

`GET /live?after=SEQ` is the stream that tells an open page that the ledger has grown; the page then reads itself again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from assay.model.ledger_entry import derive_id
from assay.tell.pages.customer_page import render_customer_page
from assay.tell.pages.fabric_pages import render_fabric_page, render_switch_page
from assay.tell.pages.fleet_page import render_fleet_page
from assay.tell.pages.machines_page import render_machines_page
from assay.tell.pages.node_page import render_node_page
from assay.tell.pages.page_frame import PageRequest
from assay.tell.pages.rack_and_pool_pages import render_pool_page, render_rack_page
from assay.tell.pages.rollout_pages import render_rollout_page, render_rollouts_page
from assay.tell.pages.shared_pages import PageKey, SharedPage, SharedPages
from assay.tell.pages.source_page import render_source_page
from assay.tell.pages.static_files import STATIC_ROUTE
from assay.tell.pages.ticket_pages import render_ticket_page, render_tickets_page
from assay.tell.pages.trends_page import render_trends_page
from assay.tell.server.app_state import AppState
from assay.tell.server.gate import AccessGate
from assay.tell.server.ledger_changes import EventStream, LedgerChanges
from assay.tell.server.request_bodies_and_refusals import make_refusal
from assay.tell.server.security_headers import SECURITY_HEADERS
from assay.tell.server.visitor import Visitor
from assay.tell.views.live_records import LiveRecords

PageRenderer = Callable[[LiveRecords, PageRequest], str | None]
"""Returns a page, None if there is no such thing."""
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
    "/trends": render_trends_page,
    "/fabric": render_fabric_page,
    "/fabric/{name}": render_switch_page,
    CUSTOMER_PAGE: render_customer_page,
    "/source/{commit}/{path:path}": render_source_page,
}


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
            page = await self._pages.render(key, partial(self._find_page, render, key, asked, visitor.anonymous))
            if page is None:
                raise make_refusal(404, "there is nothing of this name")
            return page.reply(request)

        return reply

    def _find_page(
        self, render: PageRenderer, key: PageKey, asked: Callable[..., PageRequest], who: Visitor
    ) -> SharedPage | None:
        """Return a page as the records are now; None for one of which there is nothing to show."""
        records = self._state.records
        stamp, now = records.read_stamp(), records.clock.now()
        tag = derive_id(*map(str, (*stamp, int(now.timestamp()) // MINUTE_S, *key)))
        if (known := self._pages.find(tag)) is not None:
            return known
        if (text := render(records, asked(stamp[0], now, who, records.fleet.is_lab))) is None:
            return None
        page = SharedPage.pack(tag, text)
        self._pages.keep(page)
        return page

    async def stream_changes(self, request: Request) -> Response:
        """Stream an event `changed` for each growth of the ledger, with the number of its newest entry as id."""
        await self._gate.admit(request)
        if self._changes.is_full:
            raise make_refusal(503, "as many pages follow the ledger as may", wait_s=30)
        after = request.headers.get("last-event-id") or request.query_params.get("after", "")
        start = int(after) if after.isascii() and after.isdecimal() and len(after) < 16 else 0
        return EventStream(self._format_changes(start))

    async def _format_changes(self, after: int) -> AsyncIterator[str]:
        yield "retry: 3000\n\n"
        async with aclosing(self._changes.watch(after)) as changes:
            async for head in changes:
                yield f"id: {head}\nevent: changed\ndata: {head}\n\n" if head else ": still here\n\n"
