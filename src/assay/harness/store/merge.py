"""Brings the files of a run's processes together. A part that was taken in before is not taken in again."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.harness.store.tables import SHARED, VERDICTS, shared_rows, transaction, writable
from assay.model.errors import Trouble

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


def merge(into: Path, parts: Sequence[Path]) -> None:
    """Bring the outcomes of `parts` into the run's file `into`; what two of them hold becomes an error.

    Each part is taken in whole or not at all. Raises Trouble for a part that cannot be read.
    """
    connection = writable(into)
    try:
        ids = {table: shared_rows(connection, table) for table in SHARED}
        for part in parts:
            _attach(connection, part)
            with transaction(connection):
                _take_in(connection, ids)
            connection.execute("DETACH part")
    finally:
        connection.close()


def _attach(connection: sqlite3.Connection, part: Path) -> None:
    try:
        connection.execute("ATTACH ? AS part", (str(part),))
        connection.execute("SELECT 1 FROM part.about").fetchone()
    except sqlite3.Error as error:
        raise Trouble(f"is no part of a run that can be read: {error}", where=str(part)) from None


def _take_in(connection: sqlite3.Connection, ids: dict[str, dict[tuple[Any, ...], int]]) -> None:
    (name,) = connection.execute("SELECT value FROM part.about WHERE key = 'part'").fetchone()
    mark = f"took in {name}"
    if connection.execute("SELECT 1 FROM main.about WHERE key = ?", (mark,)).fetchone():
        return
    for table in SHARED:
        _number(connection, table, ids[table])
    for statement in _TAKE_IN:
        connection.execute(statement)
    connection.execute("INSERT INTO main.about VALUES (?, '')", (mark,))


def _number(connection: sqlite3.Connection, table: str, ids: dict[tuple[Any, ...], int]) -> None:
    """Add the part's rows that are new here, and note in `temp.of_TABLE` which number each has here."""
    names = ", ".join(SHARED[table])
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
    places = ", ".join("?" * (1 + len(SHARED[table])))
    connection.executemany(f"INSERT INTO main.{table} (id, {names}) VALUES ({places})", fresh)
