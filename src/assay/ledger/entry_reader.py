"""A quick look into an SQLite ledger with the standard library alone: loading SQLAlchemy takes longer than looking."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from assay.ledger.errors import SCHEMA_VERSION, make_database_error, make_not_a_ledger_error, make_schema_version_error
from assay.model.ledger_entry import LedgerEntry

READ_TIMEOUT_S = 10.0


def read_sqlite_entries(file: Path, patience_s: float = READ_TIMEOUT_S) -> list[LedgerEntry]:
    """Return every entry of the ledger in `file`, in order; none where there is no file. Raises AssayError."""
    if not file.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True, timeout=patience_s)) as database:
            _check_schema(database, str(file))
            found = database.execute("SELECT id, at, kind, node, body, seq FROM entry ORDER BY seq")
            return [LedgerEntry(id_, at, kind, node, json.loads(body), seq) for id_, at, kind, node, body, seq in found]
    except sqlite3.Error as error:
        raise make_database_error(str(error), str(file)) from error


def _check_schema(database: sqlite3.Connection, where: str) -> None:
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    if "assay_ledger" not in tables:
        raise make_not_a_ledger_error(tables, where)
    ((version,),) = database.execute("SELECT version FROM assay_ledger")
    if version != SCHEMA_VERSION:
        raise make_schema_version_error(version, where)
