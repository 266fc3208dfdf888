"""A quick look into an SQLite ledger with the standard library alone: loading SQLAlchemy takes longer than looking."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from assay.ledger.words import VERSION, no_ledger, other_version, plainly
from assay.model.entry import Entry

PATIENCE_S = 10.0


def glance(file: Path, patience_s: float = PATIENCE_S) -> list[Entry]:
    """Return every entry of the ledger in `file`, in order; none where there is no file. Raises Trouble."""
    if not file.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True, timeout=patience_s)) as database:
            _must_be_ours(database, str(file))
            found = database.execute("SELECT id, at, kind, node, body, seq FROM entry ORDER BY seq")
            return [Entry(id_, at, kind, node, json.loads(body), seq) for id_, at, kind, node, body, seq in found]
    except sqlite3.Error as error:
        raise plainly(str(error), str(file)) from error


def _must_be_ours(database: sqlite3.Connection, where: str) -> None:
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    if "assay_ledger" not in tables:
        raise no_ledger(tables, where)
    ((version,),) = database.execute("SELECT version FROM assay_ledger")
    if version != VERSION:
        raise other_version(version, where)
