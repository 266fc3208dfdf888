"""The tables of a run's file.

An outcome is a row of small numbers: what many outcomes share (check, subject, reason, document, limit, artefact) has
tables of its own, and a verdict is its place in `model.outcome.VERDICTS`. Rows are ordered by subject and check, so
that the outcomes of one node lie together.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RUN_FILE_VERSION = 3
TWICE_REASON = "the check was judged twice in one run: two functions of its module have this name"
"""The text with id 1, so that every statement can refer to it."""
SHARED_TABLES: dict[str, tuple[str, ...]] = {
    "check_": ("name", "fault", "phases", "active"),
    "subject": ("name", "node"),
    "text": ("text",),
    "document": ("digest", "at", "basis"),
    "gauge": ("name", "unit", "at_least", "at_most", "source"),
    "artefact_file": ("name", "digest", "bytes"),
}
"""Tables of values that outcomes share, each with the columns that identify a row. `phases` is a JSON list."""


def deciding_condition(outcome: str) -> str:
    """Return the SQL condition for an outcome that no known issue or stage `observe` excuses.

    `outcome` is the table or its alias. `Outcome.counts_against_subject` is the same in Python, for bad verdicts.
    """
    return f"{outcome}.known IS NULL AND {outcome}.observed IS NULL"


RUN_FILE_SCHEMA = f"""
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE check_ (id INTEGER PRIMARY KEY, name TEXT NOT NULL, fault TEXT NOT NULL, phases TEXT NOT NULL,
  active INTEGER NOT NULL);
CREATE TABLE subject (id INTEGER PRIMARY KEY, name TEXT NOT NULL, node TEXT NOT NULL);
CREATE TABLE text (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE document (id INTEGER PRIMARY KEY, digest TEXT NOT NULL, at TEXT NOT NULL, basis TEXT NOT NULL,
  name TEXT NOT NULL DEFAULT '');
CREATE TABLE gauge (id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL, at_least REAL, at_most REAL,
  source TEXT NOT NULL);
INSERT INTO text VALUES (1, '{TWICE_REASON}');
CREATE TABLE outcome (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, verdict INTEGER NOT NULL, reason INTEGER,
  document INTEGER, micros INTEGER NOT NULL, known INTEGER, observed INTEGER,
  PRIMARY KEY (subject, check_)) WITHOUT ROWID;
CREATE TABLE measurement (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, n INTEGER NOT NULL,
  gauge INTEGER NOT NULL, value REAL NOT NULL, PRIMARY KEY (subject, check_, n)) WITHOUT ROWID;
CREATE TABLE artefact_file (id INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE outcome_artefact (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, file INTEGER NOT NULL,
  PRIMARY KEY (subject, check_, file)) WITHOUT ROWID;
CREATE VIEW artefact AS SELECT o.subject, o.check_, f.name, f.digest, f.bytes
  FROM outcome_artefact o JOIN artefact_file f ON f.id = o.file;
CREATE TABLE left_out (check_ TEXT NOT NULL, subject TEXT NOT NULL, PRIMARY KEY (check_, subject)) WITHOUT ROWID;
PRAGMA user_version = {RUN_FILE_VERSION};
"""


def open_writable(path: Path) -> sqlite3.Connection:
    """Return a connection to a run's file, which is created where there is none. Each statement commits by itself.

    Whatever was written before a kill stays; a power cut may lose the last batches, never the file.
    """
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        connection.executescript(f"BEGIN IMMEDIATE;{RUN_FILE_SCHEMA}COMMIT;")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run the block as one transaction, rolled back when it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def read_shared_rows(connection: sqlite3.Connection, table: str) -> dict[tuple[Any, ...], int]:
    """Return the ids of a shared table's rows, by the columns that identify them."""
    rows = connection.execute(f"SELECT {', '.join(SHARED_TABLES[table])}, id FROM main.{table}")
    return {row[:-1]: row[-1] for row in rows}
