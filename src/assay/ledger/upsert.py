"""The one statement that SQLite and PostgreSQL write alike and SQLAlchemy keeps apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, Table

if TYPE_CHECKING:
    from sqlalchemy.dialects.sqlite import Insert


def upsert(connection: Connection, table: Table) -> Insert:
    """Return an insertion into `table` that can say what becomes of rows that are there already."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert

        return insert(table)  # type: ignore[return-value]  # of the same form
    from sqlalchemy.dialects.sqlite import insert as sqlite_insert

    return sqlite_insert(table)
