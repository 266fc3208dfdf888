"""Upgrades a ledger that an older assay wrote. All that it holds stays as it was, with its hashes.

Schema 5 has two more columns in `outcome`. In older outcomes, they have the number 0, which no text has: nobody noted
what the evidence rests on, or what the check was judged by. The hash of such an outcome covers its other columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import Connection, inspect, text

from assay.ledger import tables
from assay.ledger.errors import SCHEMA_VERSION
from assay.ledger.hash_chain import HASHED_OUTCOME_FIELDS
from assay.ledger.interned_texts import NO_TEXT

ADDED_COLUMNS = ("basis", "judged_by")
_ADDED_PLACES = tuple(HASHED_OUTCOME_FIELDS.index(name) for name in ADDED_COLUMNS)


def upgrade_schema(connection: Connection) -> None:
    """Bring a ledger of schema 4 to the present schema, inside the writing transaction of `connection`."""
    known = {column["name"] for column in inspect(connection).get_columns(tables.outcomes.name)}
    for name in ADDED_COLUMNS:
        if name not in known:
            added = f"ALTER TABLE {tables.outcomes.name} ADD COLUMN {name} INTEGER NOT NULL DEFAULT {NO_TEXT}"
            connection.execute(text(added))
    for statement in tables.make_version_update(connection.dialect.name, SCHEMA_VERSION):
        connection.exec_driver_sql(statement)


def select_hashed_columns(lines: Iterable[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    """Yield lines of `outcome` as their hashes cover them: those from before the upgrade without the added columns."""
    for line in lines:
        is_old = all(line[place] == NO_TEXT for place in _ADDED_PLACES)
        yield tuple(value for place, value in enumerate(line) if place not in _ADDED_PLACES) if is_old else line
