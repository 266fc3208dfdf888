"""`GET /customer/feed.atom` and `/customer/feed.rss`: the news of the nodes that a visitor may see, for feed readers.

A feed reader that knows no other way shows the visitor's token as the password of HTTP Basic. An address never has a
token in it: addresses are logged and passed on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from html import escape
from typing import Any
from urllib.parse import urljoin
from uuid import NAMESPACE_URL, uuid5

import anyio
from feedgenerator import Atom1Feed, Rss201rev2Feed
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from assay.model.ledger_entry import derive_id
from assay.model.timestamps import format_time
from assay.views.customer.service_news import ServiceNews, list_service_news
from assay.web.access.gate import AccessGate
from assay.web.access.security_headers import SECURITY_HEADERS
from assay.web.access.visitor import Visitor
from assay.web.app_state import AppState
from assay.web.pages.page_frame import link

FEEDS: dict[str, Any] = {"/customer/feed.atom": Atom1Feed, "/customer/feed.rss": Rss201rev2Feed}
BUILT_AT_ONCE = 2


def routes(state: AppState) -> Sequence[BaseRoute]:
    """Return the routes of the feeds."""
    feeds = FeedRoutes(state)
    return [Route(path, feeds.make_endpoint(form), methods=["GET"]) for path, form in FEEDS.items()]


class FeedRoutes:
    """Answers feed readers. The same news give the same tag, and then no body."""

    def __init__(self, state: AppState) -> None:
        self._state, self._gate = state, AccessGate(state)
        self._turns = anyio.CapacityLimiter(BUILT_AT_ONCE)

    def make_endpoint(self, form: Any) -> Callable[[Request], Awaitable[Response]]:
        """Return the function that answers with feeds of one form."""

        async def reply(request: Request) -> Response:
            visitor = await self._gate.admit_feed_reader(request)
            work = partial(self._read_news, visitor)
            news = await anyio.to_thread.run_sync(work, limiter=self._turns)
            tag = f'"{derive_id(str(request.url), *map(repr, news))}"'
            headers = {**SECURITY_HEADERS, "ETag": tag, "Vary": "Authorization, Cookie"}
            if request.headers.get("if-none-match") == tag:
                return Response(status_code=304, headers=headers)
            return Response(format_feed(form, str(request.url), news), media_type=form.content_type, headers=headers)

        return reply

    def _read_news(self, visitor: Visitor) -> list[ServiceNews]:
        return list_service_news(self._state.records, visitor.may_see)


def format_feed(form: Any, url: str, news: Iterable[ServiceNews]) -> str:
    """Return the feed in one of the library's forms. `url`: where it is served. What is told of a node is HTML."""
    page = urljoin(url, "/customer")
    feed = form("Your nodes", page, "Nodes that left service, and came back", author_name="assay", feed_url=url)
    for one in news:
        feed.add_item(
            one.title,
            urljoin(url, link("/customer", node=one.node)),
            "".join(_format_paragraph(*told) for told in one.told),
            pubdate=one.at,
            updateddate=one.changed_at,
            unique_id=f"urn:uuid:{uuid5(NAMESPACE_URL, f'assay {one.node} {one.what} {format_time(one.at)}')}",
            unique_id_is_permalink=False,
        )
    return str(feed.writeString("utf-8"))


def _format_paragraph(heading: str, text: str) -> str:
    lines = "<br>".join(map(escape, text.splitlines()))
    return f"<h4>{escape(heading)}</h4><p>{lines}</p>" if heading else f"<p>{lines}</p>"
