"""Leases: who may work on something until when, by the database's own clock, so that no controller's clock counts.

A lease says nothing of history and changes; whoever holds one renews it by claiming it again. A database whose clock
is set back keeps the lease of a dead holder for so much longer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Float, cast, delete, extract, func, literal_column, select

from assay.ledger import tables
from assay.ledger.upsert import upsert


class Lease(NamedTuple):
    """Who holds it, and until when: seconds since 1970 by the database's clock."""

    holder: str
    until_s: float


def claim(connection: Connection, name: str, holder: str, for_s: float) -> bool:
    """Take a lease that is free, over or ours already, for so many seconds from now; return whether it is ours."""
    table, now = tables.leases, _now(connection)
    statement = upsert(connection, table).values(name=name, holder=holder, until_s=now + for_s)
    fresh = statement.excluded
    ours = (table.c.holder == fresh.holder) | (table.c.until_s <= now)
    taken = {"holder": fresh.holder, "until_s": fresh.until_s}
    statement = statement.on_conflict_do_update(index_elements=["name"], set_=taken, where=ours)
    return connection.execute(statement.returning(table.c.name)).first() is not None


def let_go(connection: Connection, name: str, holder: str) -> None:
    """End a lease at once, if this holder has it."""
    table = tables.leases
    connection.execute(delete(table).where(table.c.name == name, table.c.holder == holder))


def holders(connection: Connection) -> dict[str, Lease]:
    """Return the leases that are held now, by name."""
    table = tables.leases
    found = connection.execute(select(table).where(table.c.until_s > _now(connection)).order_by(table.c.name))
    return {row.name: Lease(row.holder, row.until_s) for row in found}


def _now(connection: Connection) -> ColumnElement[Any]:
    if connection.dialect.name == "postgresql":
        return cast(extract("epoch", func.clock_timestamp()), Float)
    return literal_column("(julianday('now') - 2440587.5) * 86400.0", Float)
