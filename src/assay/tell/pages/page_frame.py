"""What all pages have: the frame with its navigation, the addresses of other pages, and the words for standings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from assay.model.rendering import render_page
from assay.tell.pages.static_files import list_urls
from assay.tell.server.visitor import LOCAL_READER, Visitor
from assay.tell.views.node_standing import STANDING_LETTERS, STANDING_WORDS


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What a reader asked for. `seq` is the newest entry of the ledger then, `now` the fleet's time.

    `visitor` is who asks.
    """

    path: str
    path_params: Mapping[str, str]
    query: Mapping[str, str]
    seq: int
    now: datetime
    visitor: Visitor = LOCAL_READER
    is_lab: bool = False

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
