"""Delivers what waits in the buffer: in order, again until it is taken, with longer pauses the longer nobody answers.

A batch is `{"schema": "assay.agent/1", "node", "life", "after", "now", "items": [{"seq", "kind", "at", "body"}…],
"agent": {…}}`. Numbers rise within a life (of the buffer) and may leave gaps: what is missing was dropped, and is
counted in `agent`. The controller answers `{"acked": N}`; what it has, up to N, is let go. A batch without items is a
heartbeat.

What the agent tells people: one line on standard error, and the same thing once only.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from assay.agent.controller_connection import ControllerConnection, ControllerResponse, ControllerUnreachable
from assay.agent.delivery_buffer import DeliveryBuffer, QueuedItem


class StderrLogger:
    """Remembers the last line about each matter."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def log_once(self, matter: str, text: str) -> None:
        """Say it, unless it was the last thing said about this matter."""
        if self._last.get(matter) != text:
            self._last[matter] = text
            print(f"assay agent: {text}", file=sys.stderr, flush=True)  # noqa: T201 — this is what it is for


BATCH_SCHEMA = "assay.agent/1"
MAX_BATCH_ITEMS = 2000
MAX_BATCH_BYTES = 1024 * 1024
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
REFUSED_TOKEN_PAUSE_S = 30.0


class DeliveryPace(NamedTuple):
    """How long an item waits for company after the last were sent; how long the controller may go without a word."""

    linger_s: float = 0.05
    heartbeat_s: float = 15.0


class BatchSender:
    """Takes from `buffer` and sends through `line` as node `node`; `state` says how the agent is."""

    def __init__(
        self,
        line: ControllerConnection,
        buffer: DeliveryBuffer,
        node: str,
        state: Callable[[], dict[str, Any]],
        said: StderrLogger,
        pace: DeliveryPace,
    ) -> None:
        self._line, self._buffer, self._node, self._state, self._said, self._pace = (
            line,
            buffer,
            node,
            state,
            said,
            pace,
        )
        self.news, self.over = threading.Event(), threading.Event()
        self.on_words: Callable[[list[str]], None] = lambda _: None
        self._most, self._failures, self._next_beat = MAX_BATCH_ITEMS, 0, 0.0
        self._sent_at = -pace.linger_s

    def run(self) -> None:
        """Deliver until `over` is set."""
        while not self.over.is_set():
            if self.news.wait(max(0.0, min(self._next_beat - time.monotonic(), self._pace.heartbeat_s))):
                self.over.wait(self._sent_at + self._pace.linger_s - time.monotonic())
            self.news.clear()
            while not self.over.is_set() and self._is_due():
                self.over.wait(self.deliver())

    def flush(self, seconds: float) -> None:
        """Deliver what is left, as far as that goes in so many seconds."""
        ends_at = time.monotonic() + seconds
        while self._buffer.count and time.monotonic() < ends_at:
            if self.deliver():
                return

    def deliver(self) -> float:
        """Send one batch; return the seconds to wait before the next, 0 when all is well."""
        self._sent_at = time.monotonic()
        try:
            batch = self._buffer.next_batch(self._most, MAX_BATCH_BYTES)
            answer = self._line.post(f"/agent/v1/nodes/{self._node}/batches", self._body(batch))
            return self._handle_response(batch, answer)
        except ControllerUnreachable as trouble:
            self._said.log_once("controller", f"the controller cannot be reached, everything is kept: {trouble}")
        except sqlite3.Error as error:  # what was taken and cannot be let go of is sent again, and known there
            self._said.log_once("buffer", f"the buffer cannot be read or written: {error}")
        return self._backoff_s()

    def _is_due(self) -> bool:
        return bool(self._buffer.count) or time.monotonic() >= self._next_beat

    def _body(self, batch: Sequence[QueuedItem]) -> bytes:
        """Return the document. What waits is JSON already and goes in as it is."""
        items = ",".join(
            f'{{"seq":{one.seq},"kind":"{one.kind}","at":{one.at:.6f},"body":{one.body}}}' for one in batch
        )
        head = {"schema": BATCH_SCHEMA, "node": self._node, "life": self._buffer.buffer_id, "after": self._buffer.acked}
        rest = json.dumps({**head, "now": time.time(), "agent": self._state()}, separators=(",", ":"))
        return f'{rest[:-1]},"items":[{items}]}}'.encode()

    def _handle_response(self, batch: Sequence[QueuedItem], answer: ControllerResponse) -> float:
        if answer.status == 200:
            return self._handle_accepted(batch, answer.document)
        reason = str(answer.document.get("error") or "no reason given")[:300]
        if answer.status in (400, 413, 422) and batch:
            return self._isolate_refused(batch, reason)
        self._said.log_once("controller", f"the controller answers {answer.status}, everything is kept: {reason}")
        pause = max(self._backoff_s(), answer.wait_s)
        return max(pause, REFUSED_TOKEN_PAUSE_S) if answer.status in (401, 403) else pause

    def _handle_accepted(self, batch: Sequence[QueuedItem], document: dict[str, Any]) -> float:
        acked = document.get("acked")
        if not isinstance(acked, int) or (batch and acked < batch[0].seq):
            self._said.log_once("controller", "the controller answers nothing that we understand; everything is kept")
            return self._backoff_s()
        if batch:
            self._buffer.mark_delivered(min(acked, batch[-1].seq))
        if isinstance(words := document.get("words"), list):
            self.on_words([str(word) for word in words])
        self._said.log_once("controller", "the controller takes what we send")
        self._most, self._failures, self._next_beat = MAX_BATCH_ITEMS, 0, time.monotonic() + self._pace.heartbeat_s
        return 0.0

    def _isolate_refused(self, batch: Sequence[QueuedItem], reason: str) -> float:
        """Find the item that the controller will never take, by halves, and drop that one."""
        if len(batch) > 1:
            self._most = len(batch) // 2
            return 0.0
        self._said.log_once("misfit", f"the controller refuses item {batch[0].seq}, which is dropped: {reason}")
        self._buffer.drop_refused(batch[0])
        return 0.0

    def _backoff_s(self) -> float:
        self._failures += 1
        longest = min(LONGEST_PAUSE_S, SHORTEST_PAUSE_S * 2 ** min(self._failures, 10))
        return random.uniform(longest / 2, longest)  # noqa: S311  # so that a thousand agents do not knock at once
