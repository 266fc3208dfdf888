"""Upgrades a ledger that an older assay wrote. All that it holds stays as it was, with its hashes.

Schema 5 has two more columns in `outcome`. In older outcomes, they have the number 0, which no text has: nobody noted
what the evidence rests on, or what the check was judged by. The hash of such an outcome covers its other columns.

Schema 6 has rows for several subjects, with the column `numbers`, and the table `member`. In a row for one subject,
`numbers` is empty, and the hash does not cover it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import Connection, Table, inspect, literal, select, text
from sqlalchemy.schema import CreateIndex, CreateTable

from assay.ledger import tables
from assay.ledger.errors import SCHEMA_VERSION
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
        _make_members(connection, tables.members)
    for statement in tables.make_version_update(connection.dialect.name, SCHEMA_VERSION):
        connection.exec_driver_sql(statement)


def _make_members(connection: Connection, members: Table) -> None:
    connection.execute(CreateTable(members))
    for index in members.indexes:
        connection.execute(CreateIndex(index))
    fill_members(connection)


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
