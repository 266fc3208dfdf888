"""Delivers what waits in the buffer: in order, again until it is taken, with longer pauses the longer nobody answers.

A batch is `{"schema": "assay.agent/1", "node", "life", "after", "now", "items": [{"seq", "kind", "at", "body"}…],
"agent": {…}}`. Numbers rise within a life (of the buffer) and may leave gaps: what is missing was dropped, and is
counted in `agent`. The controller answers `{"acked": N}`; what it has, up to N, is let go. A batch without items is a
heartbeat.
"""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from assay.agent.buffer import Buffer, Waiting
from assay.agent.line import Answer, Line, Unreachable
from assay.agent.said import Said

SCHEMA = "assay.agent/1"
MOST_ITEMS = 2000
MOST_BYTES = 1024 * 1024
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
TOKEN_PAUSE_S = 30.0


class Pace(NamedTuple):
    """How long an item waits for company after the last were sent; how long the controller may go without a word."""

    linger_s: float = 0.05
    beat_s: float = 15.0


class Pusher:
    """Takes from `buffer` and sends through `line` as node `node`; `state` says how the agent is."""

    def __init__(
        self, line: Line, buffer: Buffer, node: str, state: Callable[[], dict[str, Any]], said: Said, pace: Pace
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
        self.words: Callable[[list[str]], None] = lambda _: None
        self._most, self._failures, self._next_beat = MOST_ITEMS, 0, 0.0
        self._sent_at = -pace.linger_s

    def run(self) -> None:
        """Deliver until `over` is set."""
        while not self.over.is_set():
            if self.news.wait(max(0.0, min(self._next_beat - time.monotonic(), self._pace.beat_s))):
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
            batch = self._buffer.batch(self._most, MOST_BYTES)
            answer = self._line.post(f"/agent/v1/nodes/{self._node}/batches", self._body(batch))
            return self._answered(batch, answer)
        except Unreachable as trouble:
            self._said.once("controller", f"the controller cannot be reached, everything is kept: {trouble}")
        except sqlite3.Error as error:  # what was taken and cannot be let go of is sent again, and known there
            self._said.once("buffer", f"the buffer cannot be read or written: {error}")
        return self._pause()

    def _is_due(self) -> bool:
        return bool(self._buffer.count) or time.monotonic() >= self._next_beat

    def _body(self, batch: Sequence[Waiting]) -> bytes:
        """Return the document. What waits is JSON already and goes in as it is."""
        items = ",".join(
            f'{{"seq":{one.seq},"kind":"{one.kind}","at":{one.at:.6f},"body":{one.body}}}' for one in batch
        )
        head = {"schema": SCHEMA, "node": self._node, "life": self._buffer.life, "after": self._buffer.acked}
        rest = json.dumps({**head, "now": time.time(), "agent": self._state()}, separators=(",", ":"))
        return f'{rest[:-1]},"items":[{items}]}}'.encode()

    def _answered(self, batch: Sequence[Waiting], answer: Answer) -> float:
        if answer.status == 200:
            return self._taken(batch, answer.document)
        reason = str(answer.document.get("error") or "no reason given")[:300]
        if answer.status in (400, 413, 422) and batch:
            return self._misfit(batch, reason)
        self._said.once("controller", f"the controller answers {answer.status}, everything is kept: {reason}")
        pause = max(self._pause(), answer.wait_s)
        return max(pause, TOKEN_PAUSE_S) if answer.status in (401, 403) else pause

    def _taken(self, batch: Sequence[Waiting], document: dict[str, Any]) -> float:
        acked = document.get("acked")
        if not isinstance(acked, int) or (batch and acked < batch[0].seq):
            self._said.once("controller", "the controller answers nothing that we understand; everything is kept")
            return self._pause()
        if batch:
            self._buffer.delivered(min(acked, batch[-1].seq))
        if isinstance(words := document.get("words"), list):
            self.words([str(word) for word in words])
        self._said.once("controller", "the controller takes what we send")
        self._most, self._failures, self._next_beat = MOST_ITEMS, 0, time.monotonic() + self._pace.beat_s
        return 0.0

    def _misfit(self, batch: Sequence[Waiting], reason: str) -> float:
        """Find the item that the controller will never take, by halves, and drop that one."""
        if len(batch) > 1:
            self._most = len(batch) // 2
            return 0.0
        self._said.once("misfit", f"the controller refuses item {batch[0].seq}, which is dropped: {reason}")
        self._buffer.refused(batch[0])
        return 0.0

    def _pause(self) -> float:
        self._failures += 1
        longest = min(LONGEST_PAUSE_S, SHORTEST_PAUSE_S * 2 ** min(self._failures, 10))
        return random.uniform(longest / 2, longest)  # noqa: S311  # so that a thousand agents do not knock at once
