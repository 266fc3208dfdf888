"""Upgrades a ledger that an older assay wrote. All that it holds stays as it was, with its hashes.

Schema 5 has two more columns in `outcome`. In older outcomes, they have the number 0, which no text has: nobody noted
what the evidence rests on, or what the check was judged by. The hash of such an outcome covers its other columns.

Schema 6 has rows for several subjects, with the column `numbers`, and the table `member`. In a row for one subject,
`numbers` is empty, and the hash does not cover it.

A ledger of an older schema is read from a copy of its own that has the present schema, and stays as it is. All rows of
a ledger are copied into an empty one, whatever database and readable schema the first one has.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import warnings
import weakref
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, Table, create_engine, delete, func, inspect, literal, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateIndex, CreateTable

from assay.ledger import tables
from assay.ledger.errors import SCHEMA_VERSION, LedgerReadWarning, make_database_error
from assay.ledger.hash_chain import HASHED_OUTCOME_FIELDS
from assay.ledger.newest.interned_texts import NO_TEXT

ADDED_COLUMNS: dict[str, int | str] = {"basis": NO_TEXT, "judged_by": NO_TEXT, "numbers": ""}
"""The columns of `outcome` that schema 4 did not have, and what they hold in its outcomes."""
_ADDED_PLACES = tuple(HASHED_OUTCOME_FIELDS.index(name) for name in ADDED_COLUMNS if name in HASHED_OUTCOME_FIELDS)


def upgrade_schema(connection: Connection) -> None:
    """Bring a ledger of schema 4 or 5 to the present schema, inside the writing transaction of `connection`."""
    name, seen = tables.outcomes.name, inspect(connection)
    known = {column["name"] for column in seen.get_columns(name)}
    for column, content in ADDED_COLUMNS.items():
        kind = f"INTEGER NOT NULL DEFAULT {content}" if isinstance(content, int) else "TEXT NOT NULL DEFAULT ''"
        if column not in known:
            connection.execute(text(f"ALTER TABLE {name} ADD COLUMN {column} {kind}"))
    connection.execute(text("DROP INDEX IF EXISTS outcome_by_run"))  # the numbers of a run's outcomes have no gaps
    if not seen.has_table(tables.members.name):
        connection.execute(CreateTable(tables.members))
        for index in tables.members.indexes:
            connection.execute(CreateIndex(index))
        fill_members(connection)
    for statement in tables.make_version_update(connection.dialect.name, SCHEMA_VERSION):
        connection.exec_driver_sql(statement)


def fill_members(connection: Connection) -> None:
    """Fill the table of subjects in a ledger of schema 4 or 5, whose subjects all stand alone."""
    subject = tables.outcomes.c.subject
    alone = select(subject, literal(0), subject).distinct()
    connection.execute(tables.members.insert().from_select(["list", "place", "subject"], alone))


def select_hashed_columns(lines: Iterable[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    """Yield lines of `OUTCOME_COLUMNS` as their hashes cover them: without columns that their schema did not have."""
    for line in lines:
        if line[-1]:
            yield tuple(line)
        elif all(line[place] == NO_TEXT for place in _ADDED_PLACES):
            yield tuple(value for place, value in enumerate(line[:-1]) if place not in _ADDED_PLACES)
        else:
            yield tuple(line[:-1])


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
