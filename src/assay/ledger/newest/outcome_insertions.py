"""Inserts outcomes, their measurements and what is newest by statements of the driver.

A run may bring a million outcomes: SQLAlchemy's own statements take longer for a row than the database does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table, delete, exists, select, tuple_

from assay.ledger import tables
from assay.ledger.hash_chain import OUTCOME_COLUMNS
from assay.ledger.newest.interned_texts import BATCH_SIZE, split_batches

OUTCOMES_PER_INSERT = 5_000
InsertedOutcome = tuple[Any, ...]
"""The values of `OUTCOME_COLUMNS`."""
InsertedMeasurement = tuple[int, int, float]
"""Outcome, gauge, value."""
NEWEST_COLUMNS = ("check", "subject", "verdict", "node", "measured_s", "outcome")
"""Columns of `newest`."""
_get_newest = itemgetter(*(OUTCOME_COLUMNS.index(name) for name in (*NEWEST_COLUMNS[:-1], "seq")))
_NODE = OUTCOME_COLUMNS.index("node")
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
        self._outcomes = self._make_insert(tables.outcomes, OUTCOME_COLUMNS)
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
        self._delete_superseded({row[_NODE] for row in outcomes})

    def _delete_superseded(self, nodes: Collection[int]) -> None:
        """Delete from `newest` the rows of these nodes that are no longer the newest of any of their subjects."""
        own, other, newer = tables.members.alias("own"), tables.members.alias("other"), tables.newest.alias("newer")
        row = tables.newest.c
        later = tuple_(newer.c.measured_s, newer.c.outcome) > tuple_(row.measured_s, row.outcome)
        # IN lets SQLite search by the whole key: of a join, it makes a scan of the check on all nodes
        lists = select(other.c.list).where(other.c.subject == own.c.subject).correlate(own)
        same = newer.c.check == row.check, newer.c.subject.in_(lists), newer.c.verdict == row.verdict
        superseding = exists(select(1).select_from(newer).where(*same, later).correlate(tables.newest, own))
        kept = exists(
            select(1).select_from(own).where(own.c.list == row.subject, ~superseding).correlate(tables.newest)
        )
        for some in split_batches(nodes, BATCH_SIZE):
            self._connection.execute(delete(tables.newest).where(row.node.in_(some), ~kept))

    def _make_insert(self, table: Table, columns: Sequence[str]) -> str:
        quote = self._connection.dialect.identifier_preparer.quote
        place = "%s" if self._connection.dialect.paramstyle in ("format", "pyformat") else "?"
        names, places = ", ".join(map(quote, columns)), ", ".join([place] * len(columns))
        return f"INSERT INTO {table.name} ({names}) VALUES ({places})"  # noqa: S608 — our own names
