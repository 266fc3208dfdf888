"""Inserts entries into the ledger's table, each id once."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, Table, bindparam, select

from assay.ledger import tables
from assay.ledger.hash_chain import HashChain
from assay.model.ledger_entry import LedgerEntry


def insert_entries(connection: Connection, chain: HashChain, entries: Sequence[LedgerEntry]) -> Collection[str]:
    """Insert many entries at once, in order; return the new ids. If an id occurs twice, the first entry counts."""
    known = find_known_ids(connection, tables.entries, [entry.id for entry in entries])
    new: dict[str, tables.TableRow] = {}
    for entry in entries:
        if entry.id not in known and entry.id not in new:
            new[entry.id] = chain.add(tables.entry_to_row(entry))
    if new:
        _insert(connection, list(new.values()))
    return new.keys()


def find_known_ids(connection: Connection, table: Table, ids: Sequence[str]) -> set[str]:
    """Return the ids that the table already has."""
    return set(connection.execute(_SELECT_KNOWN[table.name], {"ids": ids}).scalars())


_SELECT_KNOWN = {
    table.name: select(table.c.id).where(table.c.id.in_(bindparam("ids", expanding=True)))
    for table in (tables.entries, tables.runs)
}


def _insert(connection: Connection, lines: Sequence[tables.TableRow]) -> None:
    """Insert entries by one statement of the driver: SQLAlchemy's statement takes longer per entry than its hash."""
    marks = ", ".join([_PLACEHOLDER[connection.dialect.name]] * len(_ENTRY_COLUMNS))
    statement = f"INSERT INTO entry ({', '.join(_ENTRY_COLUMNS)}) VALUES {', '.join([f'({marks})'] * len(lines))}"  # noqa: S608
    connection.exec_driver_sql(statement, tuple(line[name] for line in lines for name in _ENTRY_COLUMNS))


_PLACEHOLDER = {"sqlite": "?", "postgresql": "%s"}
_ENTRY_COLUMNS = tables.entries.columns.keys()
