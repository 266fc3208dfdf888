"""Writes a run's outcomes down as they come: many in one transaction, so that a kill costs the last of them only.

Brings the files of a run's processes together. A part that was taken in before is not taken in again.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

from assay.model.errors import AssayError
from assay.model.outcome import Outcome, SuiteRun
from assay.results.store.schema import SHARED_TABLES, VERDICTS, open_writable, read_shared_rows, transaction

_TAKE_IN = (
    f"""
    INSERT INTO outcome
    SELECT s.new, c.new, o.verdict, r.new, d.new, o.micros, k.new, o.observed
    FROM part.outcome o JOIN temp.of_subject s ON s.old = o.subject JOIN temp.of_check_ c ON c.old = o.check_
    LEFT JOIN temp.of_text r ON r.old = o.reason LEFT JOIN temp.of_text k ON k.old = o.known
    LEFT JOIN temp.of_document d ON d.old = o.document
    WHERE true ON CONFLICT DO UPDATE SET verdict = {VERDICTS.index("error")}, reason = 1
    """,
    """
    INSERT OR IGNORE INTO measurement
    SELECT s.new, c.new, o.n, g.new, o.value
    FROM part.measurement o JOIN temp.of_subject s ON s.old = o.subject JOIN temp.of_check_ c ON c.old = o.check_
    JOIN temp.of_gauge g ON g.old = o.gauge
    """,
    """
    INSERT OR IGNORE INTO artefact
    SELECT s.new, c.new, o.name, o.digest, o.bytes
    FROM part.artefact o JOIN temp.of_subject s ON s.old = o.subject JOIN temp.of_check_ c ON c.old = o.check_
    """,
    """
    UPDATE main.document SET name = p.name FROM part.document p JOIN temp.of_document d ON d.old = p.id
    WHERE main.document.id = d.new AND p.name != ''
    """,
    "INSERT OR IGNORE INTO left_out SELECT check_, subject FROM part.left_out",
)


def merge_run_files(into: Path, parts: Sequence[Path]) -> None:
    """Bring the outcomes of `parts` into the run's file `into`; what two of them hold becomes an error.

    Each part is taken in whole or not at all. Raises Trouble for a part that cannot be read.
    """
    connection = open_writable(into)
    try:
        ids = {table: read_shared_rows(connection, table) for table in SHARED_TABLES}
        for part in parts:
            _attach_part(connection, part)
            with transaction(connection):
                _merge_part(connection, ids)
            connection.execute("DETACH part")
    finally:
        connection.close()


def _attach_part(connection: sqlite3.Connection, part: Path) -> None:
    try:
        connection.execute("ATTACH ? AS part", (str(part),))
        connection.execute("SELECT 1 FROM part.about").fetchone()
    except sqlite3.Error as error:
        raise AssayError(f"is no part of a run that can be read: {error}", where=str(part)) from None


def _merge_part(connection: sqlite3.Connection, ids: dict[str, dict[tuple[Any, ...], int]]) -> None:
    (name,) = connection.execute("SELECT value FROM part.about WHERE key = 'part'").fetchone()
    mark = f"took in {name}"
    if connection.execute("SELECT 1 FROM main.about WHERE key = ?", (mark,)).fetchone():
        return
    for table in SHARED_TABLES:
        _number_shared_rows(connection, table, ids[table])
    for statement in _TAKE_IN:
        connection.execute(statement)
    connection.execute("INSERT INTO main.about VALUES (?, '')", (mark,))


def _number_shared_rows(connection: sqlite3.Connection, table: str, ids: dict[tuple[Any, ...], int]) -> None:
    """Add the part's rows that are new here, and note in `temp.of_TABLE` which number each has here."""
    names = ", ".join(SHARED_TABLES[table])
    fresh, pairs = [], []
    for old, *key in connection.execute(f"SELECT id, {names} FROM part.{table} ORDER BY id"):
        new = ids.get(tuple(key))
        if new is None:
            new = ids[tuple(key)] = len(ids) + 1
            fresh.append((new, *key))
        pairs.append((old, new))
    connection.execute(f"DROP TABLE IF EXISTS temp.of_{table}")
    connection.execute(f"CREATE TABLE temp.of_{table} (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)")
    connection.executemany(f"INSERT INTO temp.of_{table} VALUES (?, ?)", pairs)
    places = ", ".join("?" * (1 + len(SHARED_TABLES[table])))
    connection.executemany(f"INSERT INTO main.{table} (id, {names}) VALUES ({places})", fresh)


READER_WAIT_S = 30.0
BATCH_OUTCOMES, BATCH_AGE_S = 1000, 1.0
"""A transaction is made of so many outcomes, or of those of so long a time."""
_CODES = {verdict: code for code, verdict in enumerate(VERDICTS)}
_INSERTS = {
    "outcome": f"""INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET verdict = {_CODES["error"]}, reason = 1""",
    "measurement": "INSERT OR IGNORE INTO measurement VALUES (?, ?, ?, ?, ?)",
    "artefact": "INSERT OR IGNORE INTO artefact VALUES (?, ?, ?, ?, ?)",
}

InsertRow = tuple[Any, ...]


class OutcomeWriter:
    """Takes the outcomes of one process. Opening the file of an earlier one goes on with it.

    Only one process may write a file at a time. `about` is what else is worth knowing of the run. An outcome that
    comes twice is an error.
    """

    def __init__(self, path: Path, run: SuiteRun, about: Mapping[str, str] = {}) -> None:
        self._connection = open_writable(path)
        said = {"run": json.dumps(asdict(run), ensure_ascii=False), "part": uuid4().hex, **about}
        self._connection.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", said.items())
        self._ids = {table: read_shared_rows(self._connection, table) for table in SHARED_TABLES}
        self._fresh: dict[str, list[InsertRow]] = {table: [] for table in SHARED_TABLES}
        self._rows: dict[str, list[InsertRow]] = {table: [] for table in _INSERTS}
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
        if len(self._rows["outcome"]) >= BATCH_OUTCOMES or time.monotonic() - self._since > BATCH_AGE_S:
            self.flush()

    def flush(self) -> None:
        """Put on disk what was taken so far."""
        self._since = time.monotonic()
        if not any(self._fresh.values()) and not self._rows["outcome"] and not self._named:
            return
        with transaction(self._connection) as connection:
            for table, rows in self._fresh.items():
                names = ", ".join(("id", *SHARED_TABLES[table]))
                places = ", ".join("?" * (1 + len(SHARED_TABLES[table])))
                connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", rows)
                rows.clear()
            connection.executemany("UPDATE document SET name = ? WHERE id = ?", self._named)
            self._named.clear()
            for table, insert in _INSERTS.items():
                connection.executemany(insert, self._rows[table])
                self._rows[table].clear()

    def left_out(self, names: Iterable[tuple[str, str]]) -> None:
        """Write down check and subject of what the user left out, which nobody shall miss."""
        with transaction(self._connection) as connection:
            connection.executemany("INSERT OR IGNORE INTO left_out (check_, subject) VALUES (?, ?)", names)

    def add_documents(self, documents: Iterable[tuple[str, str, str]]) -> None:
        """Write down name, digest and time of the evidence that was judged, with the outcomes that come next."""
        self._named += [(name, self._id("document", digest, at)) for name, digest, at in documents]

    def read_written(self) -> set[tuple[str, str]]:
        """Return check and subject of every outcome that is on disk."""
        query = (
            "SELECT c.name, s.name FROM outcome o JOIN check_ c ON c.id = o.check_ JOIN subject s ON s.id = o.subject"
        )
        return set(self._connection.execute(query))

    def set_about(self, **about: str) -> None:
        """Write down what else is worth knowing of the run, in place of what was said before."""
        self._connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about.items())

    def close(self) -> None:
        """Write what is left, and leave one file that can be read from anywhere."""
        self.flush()
        _end_write_ahead_log(self._connection)
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


def _end_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Put an end to the write-ahead log. SQLite does not wait there for who reads just now, so we do."""
    until = time.monotonic() + READER_WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            return
