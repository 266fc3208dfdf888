"""Writes a run's outcomes down as they come: many in one transaction, so that a kill costs the last of them only."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

from assay.harness.store.tables import SHARED, VERDICTS, shared_rows, transaction, writable
from assay.model.outcome import Outcome, Run

READER_S = 30.0
BATCH, LINGER_S = 1000, 1.0
"""A transaction is made of so many outcomes, or of those of so long a time."""
_CODES = {verdict: code for code, verdict in enumerate(VERDICTS)}
_MORE = {
    "outcome": f"""INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET verdict = {_CODES["error"]}, reason = 1""",
    "measurement": "INSERT OR IGNORE INTO measurement VALUES (?, ?, ?, ?, ?)",
    "artefact": "INSERT OR IGNORE INTO artefact VALUES (?, ?, ?, ?, ?)",
}

Row = tuple[Any, ...]


class Writer:
    """Takes the outcomes of one process. Opening the file of an earlier one goes on with it.

    Only one process may write a file at a time. `about` is what else is worth knowing of the run. An outcome that
    comes twice is an error.
    """

    def __init__(self, path: Path, run: Run, about: Mapping[str, str] = {}) -> None:
        self._connection = writable(path)
        said = {"run": json.dumps(asdict(run), ensure_ascii=False), "part": uuid4().hex, **about}
        self._connection.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", said.items())
        self._ids = {table: shared_rows(self._connection, table) for table in SHARED}
        self._fresh: dict[str, list[Row]] = {table: [] for table in SHARED}
        self._rows: dict[str, list[Row]] = {table: [] for table in _MORE}
        self._named: list[tuple[str, int]] = []
        self._checks: dict[tuple[str, str, tuple[str, ...], bool], int] = {}
        self._since = time.monotonic()

    def __call__(self, outcome: Outcome) -> None:
        """Take one outcome; it is on disk when its batch is full or old enough, or at `close`."""
        subject = self._id("subject", outcome.subject, outcome.node)
        check = self._check(outcome)
        reason = self._id("text", outcome.reason) if outcome.reason else None
        known = self._id("text", outcome.known) if outcome.known else None
        document = self._id("document", outcome.evidence, outcome.evidence_at) if outcome.evidence else None
        micros, observed = round(outcome.duration_s * 1e6), 1 if outcome.observed else None
        row = (subject, check, _CODES[outcome.verdict], reason, document, micros, known, observed)
        self._rows["outcome"].append(row)
        for n, one in enumerate(outcome.measurements):
            gauge = self._id("gauge", one.name, one.unit, one.at_least, one.at_most, one.source)
            self._rows["measurement"].append((subject, check, n, gauge, one.value))
        for kept in outcome.artefacts:
            self._rows["artefact"].append((subject, check, kept.name, kept.digest, kept.bytes))
        if len(self._rows["outcome"]) >= BATCH or time.monotonic() - self._since > LINGER_S:
            self.flush()

    def flush(self) -> None:
        """Put on disk what was taken so far."""
        self._since = time.monotonic()
        if not any(self._fresh.values()) and not self._rows["outcome"] and not self._named:
            return
        with transaction(self._connection) as connection:
            for table, rows in self._fresh.items():
                names = ", ".join(("id", *SHARED[table]))
                places = ", ".join("?" * (1 + len(SHARED[table])))
                connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", rows)
                rows.clear()
            connection.executemany("UPDATE document SET name = ? WHERE id = ?", self._named)
            self._named.clear()
            for table, insert in _MORE.items():
                connection.executemany(insert, self._rows[table])
                self._rows[table].clear()

    def left_out(self, names: Iterable[tuple[str, str]]) -> None:
        """Write down check and subject of what the user left out, which nobody shall miss."""
        with transaction(self._connection) as connection:
            connection.executemany("INSERT OR IGNORE INTO left_out (check_, subject) VALUES (?, ?)", names)

    def looked_at(self, documents: Iterable[tuple[str, str, str]]) -> None:
        """Write down name, digest and time of the evidence that was judged, with the outcomes that come next."""
        self._named += [(name, self._id("document", digest, at)) for name, digest, at in documents]

    def done(self) -> set[tuple[str, str]]:
        """Return check and subject of every outcome that is on disk."""
        query = (
            "SELECT c.name, s.name FROM outcome o JOIN check_ c ON c.id = o.check_ JOIN subject s ON s.id = o.subject"
        )
        return set(self._connection.execute(query))

    def say(self, **about: str) -> None:
        """Write down what else is worth knowing of the run, in place of what was said before."""
        self._connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about.items())

    def close(self) -> None:
        """Write what is left, and leave one file that can be read from anywhere."""
        self.flush()
        _without_log(self._connection)
        self._connection.close()

    def _check(self, outcome: Outcome) -> int:
        """Return the number of an outcome's check; its phases are written out once for all outcomes."""
        key = (outcome.check, outcome.fault, outcome.phases, outcome.active)
        found = self._checks.get(key)
        if found is None:
            phases = json.dumps(outcome.phases)
            found = self._id("check_", outcome.check, outcome.fault, phases, int(outcome.active))
            self._checks[key] = found
        return found

    def _id(self, table: str, *key: Any) -> int:
        """Return the number of a shared row, which is made where there is none."""
        known = self._ids[table]
        found = known.get(key)
        if found is None:
            found = known[key] = len(known) + 1
            self._fresh[table].append((found, *key))
        return found


def _without_log(connection: sqlite3.Connection) -> None:
    """Put an end to the write-ahead log. SQLite does not wait there for who reads just now, so we do."""
    until = time.monotonic() + READER_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            return
