"""Copies all rows of one ledger into another, empty one, whatever database and readable schema the first one has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Table, delete, func, inspect, select, text

from assay.ledger import tables
from assay.ledger.schema_upgrade import ADDED_COLUMNS, fill_members

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
    if target.dialect.name == "postgresql":
        _continue_sequences(target)


def _read_rows(source: Connection, table: Table, names: set[str]) -> Iterator[list[dict[str, Any]]]:
    columns = [column for column in table.columns if column.name in names]
    absent = {name: ADDED_COLUMNS[name] for name in {column.name for column in table.columns} - names}
    key = list(table.primary_key.columns)
    query = select(*columns).order_by(*key)
    found = source.execute(query, execution_options={"yield_per": ROWS_AT_ONCE})
    for some in found.mappings().partitions():
        yield [{**row, **absent} for row in some]


def _continue_sequences(target: Connection) -> None:
    """Let PostgreSQL number new rows after those that brought their own number."""
    for table in (tables.texts, tables.measurements):
        if last := target.execute(select(func.max(table.c.seq))).scalar():
            target.execute(text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'seq'), {last})"))
