"""Delivers the buffered items in order, and retries until the controller takes them, with growing pauses.

A batch is `{"schema": "assay.agent/1", "node", "life", "after", "now", "items": [{"seq", "kind", "at", "body"}…],
"agent": {…}}`. `life` names the buffer. Its numbers rise; gaps are dropped items, which `agent` counts. The controller
answers `{"acked": N, "entry": E}`, and the items up to N are deleted. What the node reads from then on is newer than
entry E of the ledger. A batch without items is a heartbeat.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from assay.model.backoff import Backoff
from assay.model.text.printable_text import escape_line
from assay.node.agent.controller_connection import ControllerConnection, ControllerResponse, ControllerUnreachable
from assay.node.agent.delivery_buffer import DeliveryBuffer, QueuedItem

BATCH_SCHEMA = "assay.agent/1"
MAX_BATCH_ITEMS = 2000
MAX_BATCH_BYTES = 1024 * 1024
DELIVERY_BACKOFF = Backoff((1.0,), longest_s=60.0, jitter=0.5)
"""Up to half of each wait is random, so that a thousand agents do not return at once."""
REFUSED_TOKEN_PAUSE_S = 30.0


class DeliveryPace(NamedTuple):
    """`linger_s`: the least time between two batches. `heartbeat_s`: the longest time without one."""

    linger_s: float = 0.05
    heartbeat_s: float = 15.0


class BatchSender:
    """Sends the items of `buffer` through `connection` as node `node`; `state` describes the agent.

    Set `news` when the buffer has new items, and `over` to end `run`. `on_words` gets the controller's filter words.
    `last_entry` is the number of the ledger's newest entry in the controller's last answer, None before that.
    """

    def __init__(
        self,
        connection: ControllerConnection,
        buffer: DeliveryBuffer,
        node: str,
        state: Callable[[], dict[str, Any]],
        logger: StderrLogger,
        pace: DeliveryPace,
    ) -> None:
        self._connection, self._buffer, self._node = connection, buffer, node
        self._state, self._logger, self._pace = state, logger, pace
        self.news, self.over = threading.Event(), threading.Event()
        self.on_words: Callable[[list[str]], None] = lambda _: None
        self.last_entry: int | None = None
        self._batch_items, self._failures, self._next_heartbeat = MAX_BATCH_ITEMS, 0, 0.0
        self._sent_at = -pace.linger_s

    def run(self) -> None:
        """Deliver until `over` is set."""
        while not self.over.is_set():
            if self.news.wait(max(0.0, min(self._next_heartbeat - time.monotonic(), self._pace.heartbeat_s))):
                self.over.wait(self._sent_at + self._pace.linger_s - time.monotonic())
            self.news.clear()
            while not self.over.is_set() and self._is_due():
                self.over.wait(self.deliver())

    def flush(self, seconds: float) -> None:
        """Deliver the remaining items, for at most `seconds` and until the first failure."""
        ends_at = time.monotonic() + seconds
        while self._buffer.count and time.monotonic() < ends_at:
            if self.deliver():
                return

    def deliver(self) -> float:
        """Send one batch; return the seconds to wait before the next one, 0 on success."""
        self._sent_at = time.monotonic()
        try:
            batch = self._buffer.next_batch(self._batch_items, MAX_BATCH_BYTES)
            answer = self._connection.post(f"/agent/v1/nodes/{self._node}/batches", self._encode_batch(batch))
            return self._handle_response(batch, answer)
        except ControllerUnreachable as error:
            self._logger.log_once("controller", f"the controller cannot be reached, everything is kept: {error}")
        except sqlite3.Error as error:  # items that cannot be deleted are sent again; the controller knows them
            self._logger.log_once("buffer", f"the buffer cannot be read or written: {error}")
        return self._backoff_s()

    def _is_due(self) -> bool:
        return bool(self._buffer.count) or time.monotonic() >= self._next_heartbeat

    def _encode_batch(self, batch: Sequence[QueuedItem]) -> bytes:
        """Return the batch as JSON. The items' bodies are JSON already and go in unchanged."""
        items = ",".join(
            f'{{"seq":{item.seq},"kind":"{item.kind}","at":{item.at:.6f},"body":{item.body}}}' for item in batch
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
        self._logger.log_once("controller", f"the controller answers {answer.status}, everything is kept: {reason}")
        pause = max(self._backoff_s(), answer.wait_s)
        return max(pause, REFUSED_TOKEN_PAUSE_S) if answer.status in (401, 403) else pause

    def _handle_accepted(self, batch: Sequence[QueuedItem], document: dict[str, Any]) -> float:
        acked = document.get("acked")
        if not isinstance(acked, int) or (batch and acked < batch[0].seq):
            self._logger.log_once("controller", "the controller's answer is not understood; everything is kept")
            return self._backoff_s()
        if batch:
            self._buffer.mark_delivered(min(acked, batch[-1].seq))
        if type(entry := document.get("entry")) is int:
            self.last_entry = entry
        if isinstance(words := document.get("words"), list):
            self.on_words([str(word) for word in words])
        self._logger.log_once("controller", "the controller accepts the items")
        self._batch_items, self._failures = MAX_BATCH_ITEMS, 0
        self._next_heartbeat = time.monotonic() + self._pace.heartbeat_s
        return 0.0

    def _isolate_refused(self, batch: Sequence[QueuedItem], reason: str) -> float:
        """Halve the batches until the one item that the controller refuses is alone, and drop that."""
        if len(batch) > 1:
            self._batch_items = len(batch) // 2
            return 0.0
        self._logger.log_once("refused", f"the controller refuses item {batch[0].seq}, which is dropped: {reason}")
        self._buffer.drop_refused(batch[0])
        return 0.0

    def _backoff_s(self) -> float:
        self._failures += 1
        return DELIVERY_BACKOFF.wait_s(self._failures)


class StderrLogger:
    """Writes lines to standard error, and no line twice in a row on one topic."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def log_once(self, topic: str, text: str) -> None:
        """Write the line, unless it is the last one on this topic."""
        if self._last.get(topic) != text:
            self._last[topic] = text
            print(f"assay agent: {escape_line(text)}", file=sys.stderr, flush=True)  # noqa: T201 — the log
