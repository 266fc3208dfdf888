"""What waits to be delivered: numbered items in an SQLite file, bounded in bytes, whole after any kill.

An item and the cursor that it moves are one transaction, so a line is neither lost nor taken twice, whenever the agent
is killed. When the buffer is full, readings of the whole node go first (the next probe replaces them), then lines that
only warn, the oldest first; of lines that tell of known things the newest are refused, since the first ones tell the
cause. What was dropped is counted by kind, and told with every delivery.
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

READINGS_WORTH, WARNING_WORTH, KNOWN_WORTH = 0, 1, 2
WORTH_NAMES = {READINGS_WORTH: "readings", WARNING_WORTH: "warnings", KNOWN_WORTH: "known"}
OVERHEAD = 64
_encoded = json.JSONEncoder(separators=(",", ":")).encode  # made once: json.dumps makes one a call
TABLES = (
    """CREATE TABLE IF NOT EXISTS item (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, at REAL NOT NULL,
        worth INTEGER NOT NULL, size INTEGER NOT NULL, body TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS item_by_worth ON item (worth, seq)",
    "CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, said TEXT NOT NULL) WITHOUT ROWID",
)


class BufferItem(NamedTuple):
    """Something to deliver: `kernel`, `nvml` or `probe`, when it was (seconds since 1970, this node's clock), what."""

    kind: str
    at: float
    worth: int
    body: Mapping[str, Any]


class QueuedItem(NamedTuple):
    """An item with its number, as JSON text."""

    seq: int
    kind: str
    at: float
    body: str


class DeliveryBuffer:
    """The items in the file at `path`, `limit` bytes at most. May be used from several threads."""

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
        """Return what was remembered under a name, "" for nothing."""
        with self._lock:
            row = self._data.execute("SELECT said FROM fact WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def store_facts(self, **facts: str) -> None:
        """Remember facts by name."""
        with self._change() as data:
            _remember(data, facts)

    def add(self, items: Sequence[BufferItem], **facts: str) -> None:
        """Take items in, in their order, together with facts such as the cursor that they moved."""
        with self._change() as data:
            rows = [(one.kind, one.at, one.worth, *_sized(one.body)) for one in items]
            data.executemany("INSERT INTO item (kind, at, worth, size, body) VALUES (?, ?, ?, ?, ?)", rows)
            self.count += len(rows)
            self.bytes += sum(row[3] for row in rows)
            if self.bytes > self.limit:
                self._drop_to_limit(data)
                facts["dropped"] = json.dumps(self.dropped)
            _remember(data, facts)

    def next_batch(self, items: int, size: int) -> list[QueuedItem]:
        """Return the oldest items, `items` and about `size` bytes at most, and keep them from being dropped."""
        with self._lock:
            query = "SELECT seq, kind, at, body, size FROM item ORDER BY seq LIMIT ?"
            taken: list[QueuedItem] = []
            for seq, kind, at, body, one in self._data.execute(query, (items,)):
                size -= one
                if taken and size < 0:
                    break
                taken.append(QueuedItem(seq, kind, at, body))
            self.sending = taken[-1].seq if taken else 0
            return taken

    def mark_delivered(self, up_to: int) -> None:
        """Let go of the items up to a number: the controller has them."""
        with self._change() as data:
            gone = data.execute("SELECT count(*), coalesce(sum(size), 0) FROM item WHERE seq <= ?", (up_to,)).fetchone()
            data.execute("DELETE FROM item WHERE seq <= ?", (up_to,))
            self.count, self.bytes = self.count - gone[0], self.bytes - gone[1]
            self.acked, self.sending = max(self.acked, up_to), 0
            _remember(data, {"acked": str(self.acked)})

    def drop_refused(self, waiting: QueuedItem) -> None:
        """Drop an item that the controller will never take."""
        with self._change() as data:
            self._drop(data, [(waiting.seq, len(waiting.body) + OVERHEAD)], "refused")
            _remember(data, {"dropped": json.dumps(self.dropped)})

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._data.close()

    def _store_buffer_id(self, life: str) -> str:
        self.store_facts(life=life)
        return life

    def _drop_to_limit(self, data: sqlite3.Connection) -> None:
        for worth, order in ((READINGS_WORTH, "ASC"), (WARNING_WORTH, "ASC"), (KNOWN_WORTH, "DESC")):
            query = f"SELECT seq, size FROM item WHERE worth = ? AND seq > ? ORDER BY seq {order} LIMIT 500"  # noqa: S608  # a constant
            while self.bytes > self.limit and (rows := data.execute(query, (worth, self.sending)).fetchall()):
                self._drop(data, _enough(rows, self.bytes - self.limit), WORTH_NAMES[worth])

    def _drop(self, data: sqlite3.Connection, rows: Sequence[tuple[int, int]], name: str) -> None:
        data.executemany("DELETE FROM item WHERE seq = ?", [(seq,) for seq, _ in rows])
        self.count, self.bytes = self.count - len(rows), self.bytes - sum(size for _, size in rows)
        self.dropped[name] = self.dropped.get(name, 0) + len(rows)

    @contextlib.contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """Yield the file inside one transaction; what is counted in memory goes back with it when it fails."""
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
    """Open the file; one that is damaged is set aside, and counting begins a new life."""
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


def _sized(body: Mapping[str, Any]) -> tuple[int, str]:
    text = _encoded(body)
    return len(text) + OVERHEAD, text


def _remember(data: sqlite3.Connection, facts: Mapping[str, str]) -> None:
    data.executemany("INSERT OR REPLACE INTO fact (name, said) VALUES (?, ?)", list(facts.items()))


def _enough(rows: Sequence[tuple[int, int]], wanted: int) -> list[tuple[int, int]]:
    taken: list[tuple[int, int]] = []
    for row in rows:
        if wanted <= 0:
            break
        taken.append(row)
        wanted -= row[1]
    return taken
