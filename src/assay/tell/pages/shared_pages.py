"""Pages that many ask for at once: rendered once for all of them, compressed once, and kept while nothing changes.

However many viewers a page has, at most one render of it waits while another runs: a burst of entries is few renders.
"""

from __future__ import annotations

import asyncio
import gzip
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import anyio
from starlette.requests import Request
from starlette.responses import Response

from assay.tell.server.security_headers import SECURITY_HEADERS

RENDERED_AT_ONCE, KEPT_PAGES, KEPT_BYTES = 2, 64, 32 * 1024 * 1024
COMPRESSED_FROM_BYTES, COMPRESSION = 1024, 4
PageKey = tuple[object, ...]
"""What asks for a page have in common if one render serves them all."""


@dataclass(frozen=True, slots=True)
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
    for one in accepted.split(","):
        name, _, weight = one.replace(" ", "").lower().partition(";q=")
        if name == "gzip":
            return weight.strip("0.") != "" or not weight
    return False


class SharedPages:
    """The newest pages, and the renders that are asked for now."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, SharedPage] = OrderedDict()
        self._lock = Lock()
        self._turns = anyio.CapacityLimiter(RENDERED_AT_ONCE)
        self._waiting: dict[PageKey, asyncio.Task[SharedPage | None]] = {}

    async def render(self, key: PageKey, work: Callable[[], SharedPage | None]) -> SharedPage | None:
        """Return what `work` does in a thread. All who ask with the same key before it begins share it.

        Who asks after it began gets a later one: what it reads is never older than the question.
        """
        task = self._waiting.get(key)
        if task is None:
            task = self._waiting[key] = asyncio.create_task(self._run(key, work))
        return await asyncio.shield(task)

    async def _run(self, key: PageKey, work: Callable[[], SharedPage | None]) -> SharedPage | None:
        async with self._turns:
            del self._waiting[key]
            return await asyncio.to_thread(work)

    def find(self, tag: str) -> SharedPage | None:
        """Return the page with this tag if it is kept."""
        return self._kept.get(tag)

    def keep(self, page: SharedPage) -> None:
        """Keep a page; the oldest give way."""
        with self._lock:
            self._kept[page.tag] = page
            while len(self._kept) > KEPT_PAGES or sum(map(_size, self._kept.values())) > KEPT_BYTES:
                self._kept.popitem(last=False)


def _size(page: SharedPage) -> int:
    return len(page.body) + len(page.small)
