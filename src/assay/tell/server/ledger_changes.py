"""Tells open pages and programs that the ledger has grown: one look at it, however many wait."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from threading import Event

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from assay.tell.server.gate import SECURITY_HEADERS

LOOK_S = 5.0
"""How long one look waits for an entry. A new entry ends it at once."""
REST_S = 1.0
"""Seconds between two messages, and after a look that failed: a burst of entries is one change."""
STREAM_S = 900
"""So long a stream lasts: then the client connects again, and is asked again who it is."""
STREAM_HEADERS = {**SECURITY_HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """A stream of server-sent events that ends after a time, even if its client reads nothing. Then it calls `end`."""

    def __init__(self, events: AsyncIterator[str], end: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers=STREAM_HEADERS)
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STREAM_S):
                    await super().__call__(scope, receive, send)
        finally:
            self._end()


class LedgerChanges:
    """Waits for new entries in one thread while anybody watches. Works on the event loop's thread only.

    `wait` returns the number of the newest entry as soon as it is above a number, or after so many seconds. `report`
    shows a line to people when it fails.
    """

    def __init__(self, wait: Callable[[int, float], int], ending: Event, report: Callable[[str], None]) -> None:
        self._wait_for_entry, self._ending, self._report = wait, ending, report
        self._head, self.watchers = 0, 0
        self._failure = ""
        self._grown = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def watch(self, after: int, admits_still: Callable[[], Awaitable[bool]]) -> AsyncGenerator[int, None]:
        """Yield the number of the newest entry whenever it is above the last one, else 0 every few seconds.

        Ends when the server does, and before it tells anything to a visitor who is not admitted any more.
        """
        self.watchers += 1
        try:
            while not self._ending.is_set():
                self._task = self._task or asyncio.create_task(self._follow())
                if self._head <= after:
                    await self._wait()
                if not await admits_still():
                    return
                is_news = self._head > after
                after = max(after, self._head)
                yield after if is_news else 0
        finally:
            self.watchers -= 1

    async def _wait(self) -> None:
        grown = self._grown
        try:
            async with asyncio.timeout(LOOK_S):
                await grown.wait()
        except TimeoutError:
            return

    async def _follow(self) -> None:
        """Follow the ledger until nobody watches."""
        try:
            while self.watchers and not self._ending.is_set():
                if (head := await self._look()) != self._head:
                    self._head = head
                    self._wake()
                    await asyncio.sleep(REST_S)
        finally:
            self._task = None
            self._wake()

    async def _look(self) -> int:
        """Return the number of the newest entry; the last one known, after a rest, if the ledger cannot be read.

        Whatever the failure, those who watch wait for a later look: a database is busy, or starts anew. So an error
        is told once, and ends nothing.
        """
        try:
            head = await run_in_threadpool(self._wait_for_entry, self._head, LOOK_S)
        except Exception as error:
            if self._failure != (failure := f"{type(error).__name__}: {error}"):
                self._failure = failure
                self._report(f"open pages wait: the ledger cannot be read: {failure}")
            await asyncio.sleep(REST_S)
            return self._head
        self._failure = ""
        return max(head, self._head)

    def _wake(self) -> None:
        """Let all who wait look."""
        self._grown.set()
        self._grown = asyncio.Event()
