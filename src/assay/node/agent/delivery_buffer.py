"""Buffers items until they are delivered: numbered, in an SQLite file, bounded in bytes.

An item and the cursor that it moves are one transaction, so no line is lost or taken twice if the agent is killed. A
full buffer drops the probe's readings first (the next probe replaces them), then warnings, the oldest first. Of lines
with a known word it drops the newest, since the first ones show the cause. Drops are counted and reported.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from assay.node.probe.kernel_log_filter import RecordPriority

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
        self.limit, self._lock = limit, threading.RLock()
        self._data = _open_or_replace(path)
        self.count = self.bytes = self.acked = self.sending = 0
        self.dropped: dict[str, int] = {}
        self.buffer_id = self.read_fact("life") or self._store_buffer_id(str(uuid.uuid4()))
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
            rows = [(item.kind, item.at, int(item.priority), *_encode_with_size(item.body)) for item in items]
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
            self.count, self.bytes = self.count - count, self.bytes - size
            self.acked, self.sending = max(self.acked, up_to), 0
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

    def _store_buffer_id(self, buffer_id: str) -> str:
        self.store_facts(life=buffer_id)
        return buffer_id

    def _drop_to_limit(self, data: sqlite3.Connection) -> None:
        for priority, order, name in DROP_ORDER:
            query = f"SELECT seq, size FROM item WHERE worth = ? AND seq > ? ORDER BY seq {order} LIMIT 500"  # noqa: S608  # a constant
            while self.bytes > self.limit and (rows := data.execute(query, (int(priority), self.sending)).fetchall()):
                self._drop(data, _take_bytes(rows, self.bytes - self.limit), name)

    def _drop(self, data: sqlite3.Connection, rows: Sequence[tuple[int, int]], name: str) -> None:
        data.executemany("DELETE FROM item WHERE seq = ?", [(seq,) for seq, _ in rows])
        self.count, self.bytes = self.count - len(rows), self.bytes - sum(size for _, size in rows)
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


def _encode_with_size(body: Mapping[str, Any]) -> tuple[int, str]:
    text = _encode_json(body)
    return len(text) + ITEM_OVERHEAD_BYTES, text


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
