"""Copies all rows of a ledger into an empty one, whatever database and readable schema the first one has.

So a ledger of an older schema is read from a copy of its own that has the present schema, and stays as it is.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import warnings
import weakref
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, Table, create_engine, delete, func, inspect, select, text
from sqlalchemy.exc import DBAPIError

from assay.ledger import tables
from assay.ledger.errors import LedgerReadWarning, make_database_error
from assay.ledger.schema_upgrade import ADDED_COLUMNS, fill_members, upgrade_schema

ROWS_AT_ONCE = 2000
COPIED_TABLES = [table for table in tables.metadata.sorted_tables if table not in (tables.schema_info, tables.leases)]
"""Each after the tables that it refers to. Leases are no history: nobody holds one in a copy."""


def copy_rows(source: Connection, target: Connection) -> None:
    """Copy every row with its number and hash, within the transaction of `target`.

    `target` has the present schema and no row. `source` may have an older schema.
    """
    known = inspect(source)
    target.execute(delete(tables.chains))
    for table in COPIED_TABLES:
        names = {column["name"] for column in known.get_columns(table.name)} if known.has_table(table.name) else set()
        for rows in _read_rows(source, table, names) if names else ():
            target.execute(table.insert(), rows)
    if not known.has_table(tables.members.name):
        fill_members(target)
    if target.dialect.name == "postgresql":  # numbers new rows after those that brought their own number
        for table in (tables.texts, tables.measurements):
            if last := target.execute(select(func.max(table.c.seq))).scalar():
                target.execute(text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'seq'), {last})"))


def _read_rows(source: Connection, table: Table, names: set[str]) -> Iterator[list[dict[str, Any]]]:
    columns = [column for column in table.columns if column.name in names]
    absent = {name: ADDED_COLUMNS[name] for name in {column.name for column in table.columns} - names}
    key = list(table.primary_key.columns)
    query = select(*columns).order_by(*key)
    result = source.execute(query, execution_options={"yield_per": ROWS_AT_ONCE})
    for some in result.mappings().partitions():
        yield [{**row, **absent} for row in some]


def open_upgraded_copy(source: Connection, name: str) -> Engine:
    """Return an engine that reads a copy of the ledger that `source` shows; the copy goes with the engine.

    `name` is that of the ledger, for errors. Raises AssayError where there is no room for a copy.
    """
    folder = tempfile.mkdtemp(prefix="assay-ledger-")
    copy = Path(folder, "ledger.sqlite")
    try:
        _make_upgraded_copy(source, copy)
    except (OSError, sqlite3.Error) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise make_database_error(str(error), folder) from error
    engine = create_engine(URL.create("sqlite", database=name), creator=partial(_connect, copy, reads_only=True))
    weakref.finalize(engine, shutil.rmtree, folder, ignore_errors=True)
    notice = f"{name}: an older assay wrote this ledger; it was read from a copy, which takes longer"
    warnings.warn(LedgerReadWarning(f"{notice}: call `assay ledger upgrade`"), stacklevel=2)
    return engine


def copy_file(source: Connection, to: Path) -> None:
    """Copy an SQLite ledger as it is now into one file, while others may write into the ledger."""
    with closing(sqlite3.connect(to)) as target:
        source.connection.driver_connection.backup(target)  # type: ignore[union-attr]  # sqlite3's own
        target.execute("PRAGMA journal_mode = DELETE")  # so that it is one file, and can be read on a read-only disk


def open_copy(file: Path) -> Engine:
    """Return an engine that writes into a copy, which nobody else knows yet."""
    return create_engine(URL.create("sqlite", database=str(file)), creator=partial(_connect, file))


def copy_into_new_file(source: Connection, to: Path) -> None:
    """Copy the rows of any ledger that can be read into a new file with the present schema."""
    engine = open_copy(to)
    try:
        with engine.begin() as target:
            target.exec_driver_sql("BEGIN IMMEDIATE")
            tables.create_tables(target)
            copy_rows(source, target)
    except DBAPIError as error:
        if isinstance(error.orig, sqlite3.Error):
            raise error.orig from error  # of the file; others are of the source
        raise
    finally:
        engine.dispose()


def _make_upgraded_copy(source: Connection, copy: Path) -> None:
    if source.dialect.name == "postgresql":
        copy_into_new_file(source, copy)
        return
    copy_file(source, copy)
    engine = open_copy(copy)
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        upgrade_schema(connection)
    engine.dispose()


def _connect(file: Path, *, reads_only: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
    if reads_only:
        connection.execute("PRAGMA query_only = ON")
    return connection
