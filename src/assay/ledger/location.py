"""Where a fleet's ledger is, and a quick look into it. An SQLite file is read with the standard library alone.

Loading SQLAlchemy takes longer than looking, so only a server's ledger loads it.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from assay.ledger.connection import SqliteSource
from assay.ledger.errors import (
    LEDGER_VARIABLE,
    SCHEMA_VERSION,
    UPGRADED_VERSIONS,
    make_database_error,
    make_no_read_error,
    make_not_a_ledger_error,
    make_schema_version_error,
)
from assay.model.ledger_entry import LedgerEntry

READ_TIMEOUT_S = 10.0
_READ_ALL = "SELECT id, at, kind, node, body, seq FROM entry WHERE body NOT LIKE '@%' ORDER BY seq"
"""Leaves out the entries whose body stands in an archive, see `copies.archived_bodies`."""


def locate_ledger(home: Path, *, is_lab: bool = False) -> Path | str:
    """Return the location of the ledger of a fleet with the data folder `home`. A lab's is always in its home."""
    asked = "" if is_lab else os.environ.get(LEDGER_VARIABLE, "")
    return asked if is_server_url(asked) else Path(asked or home / "ledger.sqlite").absolute()


def locate_existing_ledger(home: Path, *, is_lab: bool = False) -> str:
    """Return the location of the ledger for readers that can do without one: "" if it has no file yet."""
    where = locate_ledger(home, is_lab=is_lab)
    return str(where) if is_server_url(where) or has_file(Path(where)) else ""


def has_file(file: Path) -> bool:
    """Whether there is a file. Raises AssayError if its folder cannot be read."""
    try:
        return file.exists()
    except OSError as error:
        raise make_no_read_error(str(file), error.strerror or str(error)) from error


def is_server_url(where: Path | str) -> bool:
    """Whether this is a URL."""
    return "://" in str(where)


def read_all_entries(where: Path | str) -> list[LedgerEntry]:
    """Return every entry, in order. Makes no file if there is none, and needs no right to write. Raises AssayError."""
    if not is_server_url(where):
        return read_sqlite_entries(Path(where))
    from assay.ledger.store import Ledger

    ledger = Ledger.open_for_reading(where)
    try:
        return ledger.entries()
    finally:
        ledger.close()


def read_sqlite_entries(file: Path, patience_s: float = READ_TIMEOUT_S) -> list[LedgerEntry]:
    """Return every entry of the ledger in `file`, in order; none where there is no file. Raises AssayError."""
    if not has_file(file):
        return []
    source = SqliteSource(file, patience_s)  # keeps a copy of the ledger as long as it lives
    try:
        with closing(source.connect()) as database:
            _check_schema(database, str(file))
            found = database.execute(_READ_ALL)
            return [LedgerEntry(id_, at, kind, node, json.loads(body), seq) for id_, at, kind, node, body, seq in found]
    except sqlite3.Error as error:
        raise make_database_error(str(error), str(file)) from error


def _check_schema(database: sqlite3.Connection, where: str) -> None:
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    if "assay_ledger" not in tables:
        raise make_not_a_ledger_error(tables, where)
    ((version,),) = database.execute("SELECT version FROM assay_ledger")
    if version not in (SCHEMA_VERSION, *UPGRADED_VERSIONS):
        raise make_schema_version_error(version, where)
