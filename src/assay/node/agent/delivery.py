"""Buffers items until they are delivered, and delivers them in order: a refused batch is retried, with growing pauses.

A batch is `{"schema": "assay.agent/1", "node", "life", "after", "now", "items": [{"seq", "kind", "at", "body"}…],
"agent": {…}}`. `life` names the buffer. Its numbers rise; gaps are dropped items, which `agent` counts. The controller
answers `{"acked": N, "entry": E}`, and the items up to N are deleted. What the node reads from then on is newer than
entry E of the ledger. A batch without items is a heartbeat. With `"machine": true` in the answer, the next batches have
the serial number of this machine as `machine`: what another machine than the node's says counts for nothing.

The buffer is an SQLite file, bounded in bytes. An item and the cursor that it moves are one transaction, so no line is
lost or taken twice if the agent is killed. A
full buffer drops the probe's readings first (the next probe replaces them), then warnings, the oldest first. Of lines
with a known word it drops the newest, since the first ones show the cause. Drops are counted and reported.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from assay.model.backoff import Backoff
from assay.model.text.safe_text import escape_line
from assay.node.agent.controller_connection import ControllerConnection, ControllerResponse, ControllerUnreachable
from assay.node.probe.kernel_log import RecordPriority

DROP_ORDER = (  # what a full buffer drops first: priority, order by number, name in the counts of drops
    (RecordPriority.ROUTINE, "ASC", "readings"),
    (RecordPriority.WARNING, "ASC", "warnings"),
    (RecordPriority.KNOWN, "DESC", "known"),
)
ITEM_OVERHEAD_BYTES = 64
_encode_json = json.JSONEncoder(separators=(",", ":")).encode  # made once: json.dumps makes one for each call
TABLES = (
    """CREATE TABLE IF NOT EXISTS item (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, at REAL NOT NULL,
        worth INTEGER NOT NULL, size INTEGER NOT NULL, body TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS item_by_worth ON item (worth, seq)",
    "CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, said TEXT NOT NULL) WITHOUT ROWID",
)
BATCH_SCHEMA = "assay.agent/1"
MAX_BATCH_ITEMS = 2000
MAX_BATCH_BYTES = 1024 * 1024
DELIVERY_BACKOFF = Backoff((1.0,), longest_s=60.0, jitter=0.5)
"""Up to half of each wait is random, so that a thousand agents do not return at once."""
REFUSED_TOKEN_PAUSE_S = 30.0


class BufferItem(NamedTuple):
    """An item to deliver: `kind` is kernel, nvml or probe; `at` is in seconds since 1970, by this node's clock."""

    kind: str
    at: float
    priority: RecordPriority
    body: Mapping[str, Any]


class QueuedItem(NamedTuple):
    """A buffered item with its number; `body` is JSON text."""

    seq: int
    kind: str
    at: float
    body: str


class DeliveryBuffer:
    """The items in the SQLite file at `path`, `limit` bytes at most. Threads may share it. Raises sqlite3.Error.

    `buffer_id` names this buffer; a damaged file gets a successor with a new one. `acked` is the last number that the
    controller has taken.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self.limit = limit
        self._lock = threading.RLock()
        self._data = _open_or_replace(path)
        self.count = self.bytes = self.acked = self.sending = 0
        self.dropped: dict[str, int] = {}
        self.buffer_id = self.read_fact("life")
        if not self.buffer_id:
            self.buffer_id = str(uuid.uuid4())
            self.store_facts(life=self.buffer_id)
        self.acked = int(self.read_fact("acked") or 0)
        self.dropped = json.loads(self.read_fact("dropped") or "{}")
        ((self.count, self.bytes),) = self._data.execute("SELECT count(*), coalesce(sum(size), 0) FROM item")

    def read_fact(self, name: str) -> str:
        """Return the fact that is stored under a name, "" where there is none."""
        with self._lock:
            row = self._data.execute("SELECT said FROM fact WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def store_facts(self, **facts: str) -> None:
        """Store facts by name."""
        with self._change() as data:
            _write_facts(data, facts)

    def add(self, items: Sequence[BufferItem], **facts: str) -> None:
        """Add items in their order and, in the same transaction, store facts such as the cursor that they moved."""
        with self._change() as data:
            rows = []
            for item in items:
                text = _encode_json(item.body)
                rows.append((item.kind, item.at, int(item.priority), len(text) + ITEM_OVERHEAD_BYTES, text))
            data.executemany("INSERT INTO item (kind, at, worth, size, body) VALUES (?, ?, ?, ?, ?)", rows)
            self.count += len(rows)
            self.bytes += sum(row[3] for row in rows)
            if self.bytes > self.limit:
                self._drop_to_limit(data)
                facts["dropped"] = json.dumps(self.dropped)
            _write_facts(data, facts)

    def next_batch(self, items: int, size: int) -> list[QueuedItem]:
        """Return the oldest items, at most `items` and about `size` bytes. They cannot be dropped while in transit."""
        with self._lock:
            query = "SELECT seq, kind, at, body, size FROM item ORDER BY seq LIMIT ?"
            taken: list[QueuedItem] = []
            for seq, kind, at, body, item_size in self._data.execute(query, (items,)):
                size -= item_size
                if taken and size < 0:
                    break
                taken.append(QueuedItem(seq, kind, at, body))
            self.sending = taken[-1].seq if taken else 0
            return taken

    def mark_delivered(self, up_to: int) -> None:
        """Delete the items up to a number, which the controller has taken."""
        with self._change() as data:
            query = "SELECT count(*), coalesce(sum(size), 0) FROM item WHERE seq <= ?"
            count, size = data.execute(query, (up_to,)).fetchone()
            data.execute("DELETE FROM item WHERE seq <= ?", (up_to,))
            self.count -= count
            self.bytes -= size
            self.acked = max(self.acked, up_to)
            self.sending = 0
            _write_facts(data, {"acked": str(self.acked)})

    def drop_refused(self, item: QueuedItem) -> None:
        """Drop an item that the controller will never take."""
        with self._change() as data:
            self._drop(data, [(item.seq, len(item.body) + ITEM_OVERHEAD_BYTES)], "refused")
            _write_facts(data, {"dropped": json.dumps(self.dropped)})

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._data.close()

    def _drop_to_limit(self, data: sqlite3.Connection) -> None:
        for priority, order, name in DROP_ORDER:
            query = f"SELECT seq, size FROM item WHERE worth = ? AND seq > ? ORDER BY seq {order} LIMIT 500"  # noqa: S608  # a constant
            while self.bytes > self.limit and (rows := data.execute(query, (int(priority), self.sending)).fetchall()):
                self._drop(data, _take_bytes(rows, self.bytes - self.limit), name)

    def _drop(self, data: sqlite3.Connection, rows: Sequence[tuple[int, int]], name: str) -> None:
        data.executemany("DELETE FROM item WHERE seq = ?", [(seq,) for seq, _ in rows])
        self.count -= len(rows)
        self.bytes -= sum(size for _, size in rows)
        self.dropped[name] = self.dropped.get(name, 0) + len(rows)

    @contextlib.contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """Yield the file inside one transaction; if that fails, the counts in memory are restored as well."""
        with self._lock:
            before = (self.count, self.bytes, self.acked, dict(self.dropped))
            self._data.execute("BEGIN IMMEDIATE")
            try:
                yield self._data
                self._data.execute("COMMIT")
            except BaseException:
                self.count, self.bytes, self.acked, self.dropped = before
                if self._data.in_transaction:
                    self._data.execute("ROLLBACK")
                raise


def _open_or_replace(path: Path) -> sqlite3.Connection:
    """Open the file. A damaged file is renamed to `….damaged`, and a new one takes its place."""
    try:
        return _open(path)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + end).replace(path.with_name(f"{path.name}.damaged{end}"))
        return _open(path)


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "journal_size_limit = 1048576", "cache_size = -1024"):
        data.execute(f"PRAGMA {pragma}")
    for statement in TABLES:
        data.execute(statement)
    data.execute("SELECT max(seq) FROM item").fetchone()
    return data


def _write_facts(data: sqlite3.Connection, facts: Mapping[str, str]) -> None:
    data.executemany("INSERT OR REPLACE INTO fact (name, said) VALUES (?, ?)", list(facts.items()))


def _take_bytes(rows: Sequence[tuple[int, int]], wanted: int) -> list[tuple[int, int]]:
    """Return the first rows (number, size) that together have at least `wanted` bytes."""
    taken: list[tuple[int, int]] = []
    for row in rows:
        if wanted <= 0:
            break
        taken.append(row)
        wanted -= row[1]
    return taken


class DeliveryPace(NamedTuple):
    """`linger_s`: the least time between two batches. `heartbeat_s`: the longest time without one."""

    linger_s: float = 0.05
    heartbeat_s: float = 15.0


class BatchSender:
    """Sends the items of `buffer` through `connection` as node `node`; `state` describes the agent.

    Set `news` when the buffer has new items, and `over` to end `run`. `on_words` gets the controller's filter words.
    `last_entry` is the number of the ledger's newest entry in the controller's last answer, None before that. `machine`
    is this machine's serial number, "" if it cannot be read.
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
        self._connection = connection
        self._buffer = buffer
        self._node = node
        self._state = state
        self._logger = logger
        self._pace = pace
        self.news = threading.Event()
        self.over = threading.Event()
        self.on_words: Callable[[list[str]], None] = lambda _: None
        self.last_entry: int | None = None
        self.machine = ""
        self._is_machine_asked = False  # an older controller refuses what it does not know
        self._batch_items = MAX_BATCH_ITEMS
        self._failures = 0
        self._next_heartbeat = 0.0
        self._sent_at = -pace.linger_s

    def run(self) -> None:
        """Deliver until `over` is set."""
        while not self.over.is_set():
            if self.news.wait(max(0.0, min(self._next_heartbeat - time.monotonic(), self._pace.heartbeat_s))):
                self.over.wait(self._sent_at + self._pace.linger_s - time.monotonic())
            self.news.clear()
            while not self.over.is_set() and (self._buffer.count or time.monotonic() >= self._next_heartbeat):
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

    def _encode_batch(self, batch: Sequence[QueuedItem]) -> bytes:
        """Return the batch as JSON. The items' bodies are JSON already and go in unchanged."""
        items = ",".join(
            f'{{"seq":{item.seq},"kind":"{item.kind}","at":{item.at:.6f},"body":{item.body}}}' for item in batch
        )
        head = {"schema": BATCH_SCHEMA, "node": self._node, "life": self._buffer.buffer_id, "after": self._buffer.acked}
        head |= {"machine": self.machine} if self._is_machine_asked else {}
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
        self._is_machine_asked = document.get("machine") is True
        if isinstance(words := document.get("words"), list):
            self.on_words([str(word) for word in words])
        self._logger.log_once("controller", "the controller accepts the items")
        self._batch_items = MAX_BATCH_ITEMS
        self._failures = 0
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
