"""Records when each source of each node answered last, and how far each agent has delivered, in one SQLite file.

    .assay/heard.sqlite
      word   node, source (agent, probe, bmc), at: last answer, looked: last poll, since: start of the silence
      agent  node, life: buffer id, acked: last number taken, received: items in all, state: the agent's own report

The file may be deleted: times restart, and the ledger recognises items that agents send again. The row of node "" is
about all agents: from `since` to `looked` a controller listened to them without a gap.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from assay.model.errors import AssayError
from assay.model.facts import frozen

CONTACTS_FILE = "heard.sqlite"
LOCK_TIMEOUT_S = 10.0
TABLES = (
    """CREATE TABLE IF NOT EXISTS word (
    node TEXT, source TEXT, at TEXT, since TEXT, looked TEXT, PRIMARY KEY (node, source)) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS agent (
    node TEXT PRIMARY KEY, life TEXT, acked INTEGER, received INTEGER, state TEXT) WITHOUT ROWID""",
)
ALL_AGENTS = ("", "agent")
CLOCK_OFF = "clock_off_s"
"""In an agent's state: by how many seconds its clock was ahead of the server's when it delivered last."""


@frozen
class Contact:
    """The contact with one source: its last answer (None: never), its last poll, and the start of its silence.

    `silent_since` is the first of the polls in a row without an answer, or the time of the last answer.
    """

    last_at: datetime | None
    silent_since: datetime
    polled_at: datetime


@frozen
class DeliveryPosition:
    """How far an agent has delivered: up to the number `acked` of a buffer, `received` items in all.

    `state` is the agent's report on itself.
    """

    buffer_id: str = ""
    acked: int = 0
    received: int = 0
    state: Mapping[str, Any] = field(default_factory=dict)


class LastSeen:
    """The file at `path`, made by the first record. Threads and processes share it. Methods may raise AssayError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def positions(self, nodes: Collection[str] | None = None) -> dict[str, DeliveryPosition]:
        """Return how far each agent has delivered, or those of `nodes`."""
        return {
            node: DeliveryPosition(life, acked, received, json.loads(state))
            for node, life, acked, received, state in self._select("node, life, acked, received, state", "agent", nodes)
        }

    def record_delivery(self, positions: Mapping[str, DeliveryPosition], now: datetime) -> None:
        """Record how far agents have delivered, and their contact, in one transaction."""
        rows = [
            (node, position.buffer_id, position.acked, position.received, json.dumps(position.state))
            for node, position in positions.items()
        ]
        with self._write() as data:
            data.executemany("INSERT OR REPLACE INTO agent VALUES (?, ?, ?, ?, ?)", rows)
            for node in positions:
                _write_contact(data, (node, "agent"), Contact(now, now, now))

    def contacts(self, nodes: Collection[str] | None = None) -> dict[tuple[str, str], Contact]:
        """Return the contact with every source, or those of `nodes`, by (node, source)."""
        parse = datetime.fromisoformat
        return {
            (node, source): Contact(parse(at) if at else None, parse(since), parse(polled))
            for node, source, at, since, polled in self._select("node, source, at, since, looked", "word", nodes)
        }

    def last_answers(self, nodes: Collection[str] | None = None) -> dict[tuple[str, str], float]:
        """Return when every source, or those of `nodes`, answered last, by (node, source), in Unix seconds to 1 ms."""
        seconds = "(julianday(at) - 2440587.5) * 86400.0"
        rows = self._select(f"node, source, {seconds}", "word", nodes)
        return {(node, source): at_s for node, source, at_s in rows if at_s is not None}

    def _select(self, columns: str, table: str, nodes: Collection[str] | None) -> list[Any]:
        """Return the rows of a table, or those of `nodes`. Nothing is made or locked: pages and commands read often."""
        if not self._path.exists():
            return []
        chosen = "" if nodes is None else "WHERE node IN (SELECT value FROM json_each(?))"
        named = () if nodes is None else (json.dumps([*nodes]),)
        with self._connect("ro") as data:
            if not data.execute("SELECT 1 FROM sqlite_master").fetchone():
                return []  # another process is making the file
            return data.execute(f"SELECT {columns} FROM {table} {chosen}", named).fetchall()  # noqa: S608

    def count_received(self) -> int:
        """Return how many items all agents have delivered."""
        return sum(received for (received,) in self._select("received", "agent", None))

    def record_polls(self, answered: Mapping[tuple[str, str], bool], now: datetime) -> None:
        """Record that sources (node, source) were polled now, and whether they answered."""
        contacts = self.contacts({node for node, _ in answered})
        with self._write() as data:
            for key, has_answered in answered.items():
                known = contacts.get(key)
                was_silent = known is not None and known.last_at != known.polled_at
                since = known.silent_since if known and was_silent and not has_answered else now
                last_at = now if has_answered else known.last_at if known else None
                _write_contact(data, key, Contact(last_at, since, now))

    def record_listening(self, now: datetime, gap: timedelta) -> None:
        """Record that a controller listens to agents now. After a pause longer than `gap`, the time starts again."""
        known = self.contacts(ALL_AGENTS[:1]).get(ALL_AGENTS)
        since = known.silent_since if known and now - known.polled_at <= gap else now
        with self._write() as data:
            _write_contact(data, ALL_AGENTS, Contact(now, since, now))

    @contextlib.contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """Yield the file inside a transaction."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._connect("rwc") as data:
            data.execute("PRAGMA journal_mode = WAL")
            data.execute("PRAGMA synchronous = NORMAL")  # the last rows may be lost: agents send their items again
            with data:
                data.execute("BEGIN IMMEDIATE")
                for table in TABLES:
                    data.execute(table)
                yield data

    @contextlib.contextmanager
    def _connect(self, mode: str) -> Iterator[sqlite3.Connection]:
        uri = f"{self._path.absolute().as_uri()}?mode={mode}"
        try:
            with contextlib.closing(sqlite3.connect(uri, timeout=LOCK_TIMEOUT_S, uri=True)) as data:
                yield data
        except sqlite3.Error as error:
            problem = f"the contacts cannot be read or written: {error}"
            fix = "if the file is damaged, delete it: a new one is created"
            raise AssayError(problem, where=str(self._path), fix=fix) from None


def _write_contact(data: sqlite3.Connection, key: tuple[str, str], contact: Contact) -> None:
    times = (at.isoformat() if at else "" for at in (contact.last_at, contact.silent_since, contact.polled_at))
    data.execute("INSERT OR REPLACE INTO word VALUES (?, ?, ?, ?, ?)", (*key, *times))
