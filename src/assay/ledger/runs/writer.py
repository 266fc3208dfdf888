"""Writes a run's outcomes as they come, many in a transaction, and merges the files of a run's processes.

A kill loses the last batch only. A file that was merged before is not merged again.
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

from assay.ledger.runs.schema import SHARED_TABLES, open_writable, read_shared_rows, transaction
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceBasis
from assay.model.outcome import VERDICTS, Outcome, SuiteRun
from assay.model.text.lists import escape_surrogates

_DIFFERS_FROM_ADDED = (
    f"outcome.verdict != {VERDICTS.index('error')} OR excluded.verdict != outcome.verdict"
    " OR outcome.reason IS NOT excluded.reason"
)
"""Two errors of one reason are one: a check that is refused may be refused several times."""
_MERGE_STATEMENTS = (
    f"""
    INSERT INTO outcome
    SELECT s.new, c.new, o.verdict, r.new, d.new, o.micros, k.new, o.observed
    FROM part.outcome o JOIN temp.of_subject s ON s.old = o.subject JOIN temp.of_check_ c ON c.old = o.check_
    LEFT JOIN temp.of_text r ON r.old = o.reason LEFT JOIN temp.of_text k ON k.old = o.known
    LEFT JOIN temp.of_document d ON d.old = o.document
    WHERE true
    ON CONFLICT DO UPDATE SET verdict = {VERDICTS.index("error")}, reason = 1 WHERE {_DIFFERS_FROM_ADDED}
    """,
    """
    INSERT OR IGNORE INTO measurement
    SELECT s.new, c.new, o.n, g.new, o.value
    FROM part.measurement o JOIN temp.of_subject s ON s.old = o.subject JOIN temp.of_check_ c ON c.old = o.check_
    JOIN temp.of_gauge g ON g.old = o.gauge
    """,
    """
    INSERT OR IGNORE INTO outcome_artefact
    SELECT s.new, c.new, f.new
    FROM part.outcome_artefact o JOIN temp.of_subject s ON s.old = o.subject JOIN temp.of_check_ c ON c.old = o.check_
    JOIN temp.of_artefact_file f ON f.old = o.file
    """,
    """
    UPDATE main.document SET name = p.name FROM part.document p JOIN temp.of_document d ON d.old = p.id
    WHERE main.document.id = d.new AND p.name != ''
    """,
    "INSERT OR IGNORE INTO left_out SELECT check_, subject FROM part.left_out",
)
READER_WAIT_S = 30.0
BATCH_OUTCOMES, BATCH_AGE_S = 1000, 1.0
"""A transaction holds at most so many outcomes, and no outcome waits longer than this."""


def merge_run_files(into: Path, parts: Sequence[Path]) -> None:
    """Merge the outcomes of the files `parts` into the run's file `into`; one that two files hold becomes an error.

    Each part is merged completely or not at all. Raises AssayError for a part that cannot be read.
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
        raise AssayError(f"cannot be read as part of a run: {error}", where=str(part)) from None


def _merge_part(connection: sqlite3.Connection, ids: dict[str, dict[tuple[Any, ...], int]]) -> None:
    (name,) = connection.execute("SELECT value FROM part.about WHERE key = 'part'").fetchone()
    mark = f"took in {name}"  # as files of runs have it
    if connection.execute("SELECT 1 FROM main.about WHERE key = ?", (mark,)).fetchone():
        return
    for table in SHARED_TABLES:
        _number_shared_rows(connection, table, ids[table])
    for statement in _MERGE_STATEMENTS:
        connection.execute(statement)
    connection.execute("INSERT INTO main.about VALUES (?, '')", (mark,))


def _number_shared_rows(connection: sqlite3.Connection, table: str, ids: dict[tuple[Any, ...], int]) -> None:
    """Add the part's rows that are new, and map the part's ids to ours in `temp.of_TABLE`."""
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


def pack_run_file(path: Path) -> None:
    """Write a complete file anew without gaps, a tenth smaller, and merge its write-ahead log into it."""
    connection = open_writable(path)
    try:
        connection.execute("VACUUM")
        _end_write_ahead_log(connection)
    finally:
        connection.close()


_CODES = {verdict: code for code, verdict in enumerate(VERDICTS)}
_INSERTS = {
    "outcome": f"""INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET verdict = {_CODES["error"]}, reason = 1 WHERE {_DIFFERS_FROM_ADDED}""",
    "measurement": "INSERT OR IGNORE INTO measurement VALUES (?, ?, ?, ?, ?)",
    "outcome_artefact": "INSERT OR IGNORE INTO outcome_artefact VALUES (?, ?, ?)",
}

InsertRow = tuple[Any, ...]


class OutcomeWriter:
    """Writes the outcomes of one process; an existing file is continued. Only one process may write at a time.

    `about` holds further facts of the run. A second outcome of one check and subject turns the first into an error.
    """

    def __init__(self, path: Path, run: SuiteRun, about: Mapping[str, str] = {}) -> None:
        self._connection = open_writable(path)
        facts = {"run": json.dumps(asdict(run), ensure_ascii=False), "part": uuid4().hex, **about}
        self._connection.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", facts.items())
        self._ids = {table: read_shared_rows(self._connection, table) for table in SHARED_TABLES}
        self._fresh: dict[str, list[InsertRow]] = {table: [] for table in SHARED_TABLES}
        self._rows: dict[str, list[InsertRow]] = {table: [] for table in _INSERTS}
        self._document_names: list[tuple[str, int]] = []
        self._checks: dict[tuple[str, str, tuple[str, ...], bool], int] = {}
        self._last_document: tuple[tuple[str, str, EvidenceBasis] | None, int] = (None, 0)
        self._last_flush = time.monotonic()

    def __call__(self, outcome: Outcome) -> None:
        """Add an outcome; it is written when its batch is full or old enough, or at `close`."""
        subject = self._id("subject", outcome.subject, outcome.node)
        check = self._check(outcome)
        reason = self._id("text", outcome.reason) if outcome.reason else None
        known = self._id("text", outcome.known) if outcome.known else None
        document = self._document(outcome) if outcome.evidence else None
        micros, observed = round(outcome.duration_s * 1e6), 1 if outcome.observed else None
        row = (subject, check, _CODES[outcome.verdict], reason, document, micros, known, observed)
        self._rows["outcome"].append(row)
        if outcome.measurements or outcome.artefacts:
            for n, of in enumerate(outcome.measurements):
                gauge = self._id("gauge", of.name, of.unit, of.at_least, of.at_most, of.source)
                self._rows["measurement"].append((subject, check, n, gauge, of.value))
            for artefact in outcome.artefacts:
                file = self._id("artefact_file", artefact.name, artefact.digest, artefact.bytes)
                self._rows["outcome_artefact"].append((subject, check, file))
        if len(self._rows["outcome"]) >= BATCH_OUTCOMES or time.monotonic() - self._last_flush > BATCH_AGE_S:
            self.flush()

    def flush(self) -> None:
        """Write what was added so far."""
        self._last_flush = time.monotonic()
        if not any(self._fresh.values()) and not self._rows["outcome"] and not self._document_names:
            return
        with transaction(self._connection) as connection:
            for table, rows in self._fresh.items():
                names = ", ".join(("id", *SHARED_TABLES[table]))
                places = ", ".join("?" * (1 + len(SHARED_TABLES[table])))
                connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", rows)
                rows.clear()
            connection.executemany("UPDATE document SET name = ? WHERE id = ?", self._document_names)
            self._document_names.clear()
            for table, insert in _INSERTS.items():
                connection.executemany(insert, self._rows[table])
                self._rows[table].clear()

    def add_left_out(self, names: Iterable[tuple[str, str]]) -> None:
        """Write check and subject of what the user's options left out, so that they do not count as missing."""
        with transaction(self._connection) as connection:
            connection.executemany("INSERT OR IGNORE INTO left_out (check_, subject) VALUES (?, ?)", names)

    def add_documents(self, documents: Iterable[tuple[str, str, str, EvidenceBasis]]) -> None:
        """Add name, digest, time and basis of judged documents; they are written with the next outcomes."""
        self._document_names += [
            (name, self._id("document", digest, at, basis.encode())) for name, digest, at, basis in documents
        ]

    def set_about(self, **about: str) -> None:
        """Write further facts of the run, in place of earlier values."""
        self._connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about.items())

    def close(self) -> None:
        """Write what is left, and merge the write-ahead log, so that one file holds everything."""
        self.flush()
        _end_write_ahead_log(self._connection)
        self._connection.close()

    def _document(self, outcome: Outcome) -> int:
        """Return the id of an outcome's document: nearly always that of the outcome before it, the same objects."""
        key = (outcome.evidence, outcome.evidence_at, outcome.basis)
        if key != self._last_document[0]:
            self._last_document = key, self._id("document", *key[:2], outcome.basis.encode())
        return self._last_document[1]

    def _check(self, outcome: Outcome) -> int:
        """Return the id of an outcome's check; the phases are encoded once for all its outcomes."""
        key = (outcome.check, outcome.fault, outcome.phases, outcome.active)
        number = self._checks.get(key)
        if number is None:
            phases = json.dumps(outcome.phases)
            number = self._id("check_", outcome.check, outcome.fault, phases, int(outcome.active))
            self._checks[key] = number
        return number

    def _id(self, table: str, *key: Any) -> int:
        """Return the id of a shared row, which is added where there is none."""
        known = self._ids[table]
        number = known.get(key)
        if number is None:
            number = known[key] = len(known) + 1
            stored = [escape_surrogates(value) if isinstance(value, str) else value for value in key]
            self._fresh[table].append((number, *stored))
        return number


def _end_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the write-ahead log off. SQLite does not wait for readers here, so this waits."""
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
