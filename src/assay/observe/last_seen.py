"""When each source of each node was heard last, and how far each agent has delivered: one small SQLite file.

```
.assay/heard.sqlite
  word   node, source (agent, probe, bmc), at: last heard, looked: last asked, since: unanswered from then on
  agent  node, life, acked: what was taken up to there; received: items in all; state: what the agent says of itself
```

It may be deleted: counting begins anew, and what agents send again is known from the ledger. The row of node "" is
about all agents at once: from `since` to `looked` somebody listened to them without a gap.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from assay.model.errors import AssayError

LOCK_TIMEOUT_S = 10.0
TABLES = """
CREATE TABLE IF NOT EXISTS word (
    node TEXT, source TEXT, at TEXT, since TEXT, looked TEXT, PRIMARY KEY (node, source)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS agent (
    node TEXT PRIMARY KEY, life TEXT, acked INTEGER, received INTEGER, state TEXT) WITHOUT ROWID;
"""
ALL_AGENTS = ("", "agent")


@dataclass(frozen=True, slots=True)
class Contact:
    """The last word of a source, None where there was none. `looked`: when it was asked last.

    `since`: the first time in a row that it was asked and did not answer, or when it answered last.
    """

    last_at: datetime | None
    silent_since: datetime
    polled_at: datetime


@dataclass(frozen=True, slots=True)
class DeliveryPosition:
    """How far an agent has delivered: up to `acked` of its `life`, `received` items in all; its `state` as told."""

    buffer_id: str = ""
    acked: int = 0
    received: int = 0
    state: Mapping[str, Any] = field(default_factory=dict)


class LastSeen:
    """The file at `path`, made on first use. Usable from several threads and processes. Methods may raise Trouble."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def positions(self) -> dict[str, DeliveryPosition]:
        """Return how far each agent has delivered."""
        with self._open() as data:
            rows = data.execute("SELECT node, life, acked, received, state FROM agent").fetchall()
        return {
            node: DeliveryPosition(life, acked, received, json.loads(state))
            for node, life, acked, received, state in rows
        }

    def record_delivery(self, positions: Mapping[str, DeliveryPosition], now: datetime) -> None:
        """Keep how far agents have delivered, which is a word of theirs, in one transaction."""
        rows = [
            (node, one.buffer_id, one.acked, one.received, json.dumps(one.state)) for node, one in positions.items()
        ]
        with self._open() as data:
            data.executemany("INSERT OR REPLACE INTO agent VALUES (?, ?, ?, ?, ?)", rows)
            for node in positions:
                _keep(data, (node, "agent"), Contact(now, now, now))

    def contacts(self) -> dict[tuple[str, str], Contact]:
        """Return the last word of every source, by node and source."""
        with self._open() as data:
            rows = data.execute("SELECT node, source, at, since, looked FROM word").fetchall()
        return {(node, source): Contact(_time(at), *map(_when, times)) for node, source, at, *times in rows}

    def record_polls(self, answered: Mapping[tuple[str, str], bool], now: datetime) -> None:
        """Keep that sources (node, source) were asked now, and whether they answered."""
        words = self.contacts()
        with self._open() as data:
            for key, heard in answered.items():
                word = words.get(key)
                since = word.silent_since if word and not heard and word.last_at != word.polled_at else now
                _keep(data, key, Contact(now if heard else word.last_at if word else None, since, now))

    def record_listening(self, now: datetime, gap: timedelta) -> None:
        """Keep that agents can be heard now. Nothing counts while nobody listened for longer than `gap`."""
        word = self.contacts().get(ALL_AGENTS)
        since = word.silent_since if word and now - word.polled_at <= gap else now
        with self._open() as data:
            _keep(data, ALL_AGENTS, Contact(now, since, now))

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Yield the file inside a transaction."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self._path, timeout=LOCK_TIMEOUT_S)) as data:
                data.execute("PRAGMA journal_mode = WAL")
                data.execute("PRAGMA synchronous = NORMAL")  # losing the last words costs nothing: they are sent again
                data.executescript(TABLES)
                with data:
                    data.execute("BEGIN IMMEDIATE")
                    yield data
        except sqlite3.Error as error:
            fix = "delete the file where it is damaged: it is made anew"
            raise AssayError(f"what was heard cannot be kept: {error}", where=str(self._path), fix=fix) from None


def _keep(data: sqlite3.Connection, key: tuple[str, str], word: Contact) -> None:
    times = (one.isoformat() if one else "" for one in (word.last_at, word.silent_since, word.polled_at))
    data.execute("INSERT OR REPLACE INTO word VALUES (?, ?, ?, ?, ?)", (*key, *times))


def _time(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _when(text: str) -> datetime:
    return datetime.fromisoformat(text)
