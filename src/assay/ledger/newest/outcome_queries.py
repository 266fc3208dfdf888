"""The queries of outcomes. Each gives a row for each subject, also where one row of the table stands for several.

Outcomes, their measurements and what is newest are inserted by statements of the driver: a run may bring a million
outcomes, and SQLAlchemy's own statements take longer for a row than the database does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Subquery,
    Table,
    and_,
    case,
    delete,
    exists,
    func,
    select,
    tuple_,
)

from assay.ledger import tables
from assay.ledger.hash_chain import OUTCOME_COLUMNS
from assay.ledger.newest.interned_texts import BATCH_SIZE, split_batches
from assay.model.outcome import VERDICTS

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
PASS = VERDICTS.index("pass")
EACH_NEWEST = tables.newest.join(tables.members, tables.members.c.list == tables.newest.c.subject)
"""What is newest, a row for each subject."""


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
        own = tables.members.alias("own")
        other = tables.members.alias("other")
        newer = tables.newest.alias("newer")
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


def is_recorded_after(run: int) -> ColumnElement[bool]:
    """Return the condition for outcomes of the runs after one: a run's outcomes have numbers of their own, in order."""
    runs = tables.runs.c
    last = select(func.coalesce(func.max(runs.outcomes), 0)).where(runs.seq <= run).scalar_subquery()
    return tables.outcomes.c.seq > last


def is_of_run(name: str) -> ColumnElement[bool]:
    """Return the condition for outcomes of the run with this id."""
    runs, itself = tables.runs.c, tables.runs.alias().c
    number = select(itself.seq).where(itself.id == name).scalar_subquery()
    before = select(func.coalesce(func.max(runs.outcomes), 0)).where(runs.seq < number).scalar_subquery()
    last = select(itself.outcomes).where(itself.id == name).scalar_subquery()
    return and_(tables.outcomes.c.seq > before, tables.outcomes.c.seq <= last)


def select_outcomes() -> Select[Any]:
    """Return the first part of a query of outcomes with their runs, a row for each subject."""
    runs = tables.runs
    outcomes = tables.outcomes
    members = tables.members.c
    columns = (column for column in outcomes.c if column.name != "subject")
    query = select(*columns, members.subject, members.place, runs.c.id.label("run_id"), runs.c.at.label("run_at"))
    joined = outcomes.join(tables.members, members.list == outcomes.c.subject).join(runs, runs.c.seq == outcomes.c.run)
    return query.select_from(joined)


def select_newest(nodes: Collection[int] | None = None) -> Select[Any]:
    """Return the query of the newest outcome of each check × subject, by the time of its evidence."""
    wanted = (tables.newest.c.node.in_(nodes),) if nodes is not None else ()
    return _join_newest(rank_newest(*wanted))


_OF_ONE = (tables.newest.c.check, tables.members.c.subject)


def rank_newest(*wanted: ColumnElement[bool], more: Sequence[ColumnElement[Any]] = ()) -> Subquery:
    """Return outcome, verdict, subject and `more` of the newest of each check × subject, among rows of `newest`."""
    table, members = tables.newest.c, tables.members.c
    age = func.row_number().over(partition_by=_OF_ONE, order_by=(table.measured_s.desc(), table.outcome.desc()))
    query = select(table.outcome, table.verdict, members.subject, age.label("age"), *more).where(*wanted)
    ranked = query.select_from(tables.newest.join(tables.members, members.list == table.subject)).subquery()
    columns = [column for column in ranked.c if column.name != "age"]
    return select(*columns).where(ranked.c.age == 1).subquery()


def select_newest_rows() -> Select[Any]:
    """Return the query of what is newest as numbers of texts, a row for each check × subject.

    Its columns: node, fault, phases, subject, check, verdict, reason, date, run, the duration in microseconds (of a row
    for several subjects an equal share), and whether the check has ever failed on the subject.
    """
    outcomes, members = tables.outcomes.c, tables.members.c
    failures = func.max(case((tables.newest.c.verdict == VERDICTS.index("fail"), 1), else_=0))
    ranked = rank_newest(more=[failures.over(partition_by=_OF_ONE).label("has_failed")])
    newest = ranked.c
    sizes = select(members.list, func.count().label("size")).group_by(members.list).subquery()
    shared = (outcomes.node, outcomes.fault, outcomes.phases, newest.subject, outcomes.check, newest.verdict)
    own = (outcomes.reason, outcomes.measured_s, outcomes.run, outcomes.micros // sizes.c.size, newest.has_failed)
    joined = tables.outcomes.join(ranked, newest.outcome == outcomes.seq)
    return select(*shared, *own).select_from(joined.join(sizes, sizes.c.list == outcomes.subject))


def _join_newest(newest: Subquery) -> Select[Any]:
    """Return the query of the outcomes that `rank_newest` found."""
    same = and_(newest.c.outcome == tables.outcomes.c.seq, newest.c.subject == tables.members.c.subject)
    return select_outcomes().join(newest, same)


def select_failing(newest: Subquery) -> Select[Any]:
    """Return the query of those outcomes that `rank_newest` found which are no pass."""
    return _join_newest(newest).where(newest.c.verdict != PASS)


def select_expected_newest() -> Select[Any]:
    """Return the query that recomputes `newest`: the rows that are the newest of a check, subject and verdict."""
    table, members = tables.outcomes.c, tables.members.c
    kind = (table.check, members.subject, table.verdict)
    age = func.row_number().over(partition_by=kind, order_by=(table.measured_s.desc(), table.seq.desc())).label("age")
    columns = (table.check, table.subject, table.verdict, table.node, table.measured_s, table.seq.label("outcome"))
    joined = tables.outcomes.join(tables.members, members.list == table.subject)
    ranked = select(*columns, age).select_from(joined).subquery()
    return select(*(ranked.c[name] for name in NEWEST_COLUMNS)).where(ranked.c.age == 1).distinct()


def select_last_outcome(check: int | None, subject: int | None, verdict: int) -> Select[Any]:
    """Return the query of the newest outcome of a check on a subject with a verdict."""
    table = tables.newest.c
    kind = (table.check == check, tables.members.c.subject == subject, table.verdict == verdict)
    query = select_outcomes().join(tables.newest, table.outcome == tables.outcomes.c.seq).where(*kind)
    return query.order_by(table.measured_s.desc(), table.outcome.desc()).limit(1)


def select_newest_passes(check: int | None) -> Select[Any]:
    """Return the query of the newest pass of a check on each subject."""
    table = tables.newest.c
    return _join_newest(rank_newest(table.check == check, table.verdict == PASS))


def select_last_outcome_before(run: str, check: int | None, subject: int | None, verdict: int) -> Select[Any]:
    """Return the query of the newest such outcome recorded before a run; for an unrecorded run, before its begin."""
    table, runs = tables.outcomes.c, tables.runs.c
    itself = tables.runs.alias()
    number = select(itself.c.seq).where(itself.c.id == run).scalar_subquery()
    kind = (table.check == check, tables.members.c.subject == subject, table.verdict == verdict)
    older = case((number.is_(None), runs.id < run), else_=runs.seq < number)
    return select_outcomes().where(*kind, older).order_by(table.measured_s.desc(), table.seq.desc()).limit(1)
