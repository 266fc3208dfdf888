"""Finds out whether the file of a run is damaged: its pages, and the values that are read by their form."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from pathlib import Path

from assay.ledger.runs.schema import SHARED_TABLES
from assay.model.errors import AssayError
from assay.model.outcome import VERDICTS


def damaged_run_error(path: Path, problem: object) -> AssayError:
    """Return the error for the file of a run that cannot be read to its end."""
    fix = "restore it from a backup, or move its folder away; its outcomes are in the ledger and in the history"
    return AssayError(f"this run is damaged: {problem}", where=str(path), fix=fix)


def find_damage(connection: sqlite3.Connection) -> str:
    """Return what is wrong with a run's file, "" for nothing. Raises what SQLite or JSON raise."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        return str(found).replace("\n", " ")
    query = f"SELECT count(*) FROM outcome WHERE verdict NOT IN ({', '.join(map(str, range(len(VERDICTS))))})"
    (strange,) = connection.execute(query).fetchone()
    for table, columns in SHARED_TABLES.items():
        for row in connection.execute(f"SELECT {', '.join(columns)} FROM {table}"):
            if table == "check_":
                json.loads(row[2])
            if table == "document":
                datetime.fromisoformat(row[1] or "2000-01-01")
    return f"{strange} outcomes have no verdict" if strange else ""
