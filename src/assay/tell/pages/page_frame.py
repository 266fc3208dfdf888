"""What all pages have: the frame with its navigation, addresses, words for standings, stylesheet and scripts.

The addresses of stylesheet and scripts hold the hash of their content, so browsers keep them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from assay.model.facts import frozen
from assay.model.page import render_page
from assay.tell.server.requests import make_refusal, read_refusal, reply_refusal
from assay.tell.server.visitor_rights import LOCAL_READER, Visitor
from assay.tell.views.node_status import STANDING_LETTERS, STANDING_WORDS

FOREVER = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
HASH_LENGTH = 12


@frozen
class StaticFile:
    """One file that pages load: its content, its media type, and its address."""

    content: bytes
    media_type: str
    url: str


@cache
def load_static_files() -> dict[str, StaticFile]:
    """Return the files by name. The stylesheet is the one of all pages, and what only live pages add to it.

    htmx and its extension are one file: htmx begins as soon as its own script has run, in a timer. An extension in a
    second script sometimes came too late, and such a page never followed the ledger.
    """
    ours = resources.files(__package__) / "static"
    shared = resources.files("assay.model") / "style.css"
    style = shared.read_bytes() + b"\n" + (ours / "live.css").read_bytes()

    def join(*names: str) -> bytes:
        return b"\n;\n".join((ours / name).read_bytes() for name in names)

    return {
        "style.css": _make_file("style.css", style, "text/css"),
        "live.js": _make_file("live.js", join("htmx.min.js", "hx-sse.min.js"), "text/javascript"),
        "paper.js": _make_file("paper.js", join("qrcode.js", "paper.js"), "text/javascript"),
        "icon.svg": _make_file("icon.svg", (ours / "icon.svg").read_bytes(), "image/svg+xml"),
    }


def _make_file(name: str, content: bytes, media_type: str) -> StaticFile:
    digest = hashlib.sha256(content).hexdigest()[:HASH_LENGTH]
    return StaticFile(content, media_type, f"/static/{digest}/{name}")


def list_urls() -> dict[str, str]:
    """Return the address of each file by its name."""
    return {name: file.url for name, file in load_static_files().items()}


async def reply_refusal_to_reader(request: Request, error: Exception) -> Response:
    """Reply to a refused request: to a browser with a page that leads back, to a program with JSON."""
    refusal = read_refusal(error)
    is_browser = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    if refusal.status_code < 400 or not is_browser or "hx-request" in request.headers:
        return await reply_refusal(request, error)
    status, reason = refusal.status_code, refusal.detail
    page = render_page(__package__, "refusal.html.j2", files=list_urls(), status=status, reason=reason)
    return HTMLResponse(page, status, refusal.headers)


async def _send(request: Request) -> Response:
    file = load_static_files().get(str(request.path_params["name"]))
    if file is None or file.url != request.url.path:
        raise make_refusal(404, "there is no such file")
    return Response(file.content, media_type=file.media_type, headers=FOREVER)


STATIC_ROUTE = Route("/static/{digest}/{name}", _send)


@frozen
class PageRequest:
    """What a reader asked for. `seq` is the newest entry of the ledger then, `now` the fleet's time.

    `visitor` is who asks. `has_fabric`: the fleet has a designed fabric. `pages`: where people open pages, by
    the policy.
    """

    path: str
    path_params: Mapping[str, str]
    query: Mapping[str, str]
    seq: int
    now: datetime
    visitor: Visitor = LOCAL_READER
    is_lab: bool = False
    has_fabric: bool = False
    pages: str = ""

    @property
    def url(self) -> str:
        """The address of the page with its filters."""
        return link(self.path, **self.query)


def render_frame(template: str, request: PageRequest, **values: Any) -> str:
    """Return a page of this package: a template that extends `frame.html.j2`. Every value is escaped."""
    return render_page(
        __package__,
        template,
        request=request,
        files=list_urls(),
        link=link,
        place=place,
        letters=STANDING_LETTERS,
        standing_words=STANDING_WORDS,
        **values,
    )


def link(path: str, **query: str) -> str:
    """Return the address of a page; fields of the query that are "" are left out."""
    kept = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(kept)}" if kept else path


def place(kind: str, name: str, **query: str) -> str:
    """Return the address of the page of one thing: `/nodes/n0003`. The name may hold any character."""
    return link(f"/{kind}/{quote(name, safe='')}", **query)
