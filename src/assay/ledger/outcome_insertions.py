"""Inserts outcomes, their measurements and what is newest by statements of the driver.

A run may bring a million outcomes: SQLAlchemy's own statements take longer for a row than the database does.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table

from assay.ledger import tables
from assay.ledger.hash_chain import HASHED_OUTCOME_FIELDS

OUTCOMES_PER_INSERT = 5_000
InsertedOutcome = tuple[Any, ...]
"""The values of `HASHED_OUTCOME_FIELDS`: all columns of `outcome`."""
InsertedMeasurement = tuple[int, int, float]
"""Outcome, gauge, value."""
NEWEST_COLUMNS = ("check", "subject", "verdict", "node", "measured_s", "outcome")
"""Columns of `newest`."""
_get_newest = itemgetter(*(HASHED_OUTCOME_FIELDS.index(name) for name in (*NEWEST_COLUMNS[:-1], "seq")))
_get_newest_key = itemgetter(0, 1, 2)
"""In the order of the table's own key, a row is found where the one before it was."""
_REPLACE_OLDER = """
ON CONFLICT ("check", subject, verdict) DO UPDATE
SET node = excluded.node, measured_s = excluded.measured_s, outcome = excluded.outcome
WHERE excluded.measured_s >= newest.measured_s
"""
"""Keeps a newer outcome with the same verdict."""


class OutcomeInsertions:
    """The statements of one writing transaction, in the words of its database."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._outcomes = self._make_insert(tables.outcomes, HASHED_OUTCOME_FIELDS)
        self._measurements = self._make_insert(tables.measurements, ("outcome", "gauge", "value"))
        self._newest = self._make_insert(tables.newest, NEWEST_COLUMNS) + _REPLACE_OLDER

    def insert(self, outcomes: Sequence[InsertedOutcome], measured: Sequence[InsertedMeasurement]) -> None:
        """Insert outcomes and their measurements, and what is now the newest of its kind."""
        for statement, rows in (
            (self._outcomes, outcomes),
            (self._measurements, measured),
            (self._newest, sorted(map(_get_newest, outcomes), key=_get_newest_key)),
        ):
            if rows:
                self._connection.exec_driver_sql(statement, list(rows))

    def _make_insert(self, table: Table, columns: Sequence[str]) -> str:
        quote = self._connection.dialect.identifier_preparer.quote
        place = "%s" if self._connection.dialect.paramstyle in ("format", "pyformat") else "?"
        names, places = ", ".join(map(quote, columns)), ", ".join([place] * len(columns))
        return f"INSERT INTO {table.name} ({names}) VALUES ({places})"  # noqa: S608 — our own names
