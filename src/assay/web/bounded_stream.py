"""A stream of server-sent events that ends after a time: a slow client holds no place for ever."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from assay.web.access.security_headers import SECURITY_HEADERS

STREAM_S = 900
"""So long a stream lasts: then the client connects again, and is asked again who it is."""
HEADERS = {**SECURITY_HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class BoundedStream(StreamingResponse):
    """A stream of events that ends after a time, even if its client reads nothing."""

    def __init__(self, events: AsyncIterator[str]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STREAM_S):
                await super().__call__(scope, receive, send)
