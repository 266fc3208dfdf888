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
from assay.ledger.interned_texts import NO_TEXT

ADDED_COLUMNS = ("basis", "judged_by")
_ADDED_PLACES = tuple(HASHED_OUTCOME_FIELDS.index(name) for name in ADDED_COLUMNS)


def upgrade_schema(connection: Connection) -> None:
    """Bring a ledger of schema 4 or 5 to the present schema, inside the writing transaction of `connection`."""
    name, seen = tables.outcomes.name, inspect(connection)
    known = {column["name"] for column in seen.get_columns(name)}
    kinds = {
        **dict.fromkeys(ADDED_COLUMNS, f"INTEGER NOT NULL DEFAULT {NO_TEXT}"),
        "numbers": "TEXT NOT NULL DEFAULT ''",
    }
    for column, kind in kinds.items():
        if column not in known:
            connection.execute(text(f"ALTER TABLE {name} ADD COLUMN {column} {kind}"))
    connection.execute(text("DROP INDEX IF EXISTS outcome_by_run"))  # the numbers of a run's outcomes have no gaps
    if not seen.has_table(tables.members.name):
        _make_members(connection, tables.members)
    for statement in tables.make_version_update(connection.dialect.name, SCHEMA_VERSION):
        connection.exec_driver_sql(statement)


def _make_members(connection: Connection, members: Table) -> None:
    """Make the table of subjects: each stands alone in all that there is."""
    connection.execute(CreateTable(members))
    for index in members.indexes:
        connection.execute(CreateIndex(index))
    subject = tables.outcomes.c.subject
    alone = select(subject, literal(0), subject).distinct()
    connection.execute(members.insert().from_select(["list", "place", "subject"], alone))


def select_hashed_columns(lines: Iterable[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    """Yield lines of `OUTCOME_COLUMNS` as their hashes cover them: without columns that their schema did not have."""
    for line in lines:
        if line[-1]:
            yield tuple(line)
        elif all(line[place] == NO_TEXT for place in _ADDED_PLACES):
            yield tuple(value for place, value in enumerate(line[:-1]) if place not in _ADDED_PLACES)
        else:
            yield tuple(line[:-1])
