"""The queries of outcomes. Each gives a row for each subject, also where one row of the table stands for several."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, and_, case, func, select

from assay.ledger import tables
from assay.ledger.newest.outcome_insertions import NEWEST_COLUMNS
from assay.model.outcome import VERDICTS

PASS = VERDICTS.index("pass")


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
    runs, said, members = tables.runs, tables.outcomes, tables.members.c
    columns = (column for column in said.c if column.name != "subject")
    query = select(*columns, members.subject, members.place, runs.c.id.label("run_id"), runs.c.at.label("run_at"))
    joined = said.join(tables.members, members.list == said.c.subject).join(runs, runs.c.seq == said.c.run)
    return query.select_from(joined)


def select_newest(nodes: Collection[int] | None = None) -> Select[Any]:
    """Return the query of the newest outcome of each check × subject, by the time of its evidence."""
    wanted = (tables.newest.c.node.in_(nodes),) if nodes is not None else ()
    return _join_newest(rank_newest(*wanted))


def rank_newest(*wanted: ColumnElement[bool]) -> Subquery:
    """Return outcome, verdict and subject of the newest of each check × subject, among rows of `newest`."""
    table, members = tables.newest.c, tables.members.c
    age = func.row_number().over(
        partition_by=(table.check, members.subject), order_by=(table.measured_s.desc(), table.outcome.desc())
    )
    query = select(table.outcome, table.verdict, members.subject, age.label("age")).where(*wanted)
    ranked = query.select_from(tables.newest.join(tables.members, members.list == table.subject)).subquery().c
    return select(ranked.outcome, ranked.verdict, ranked.subject).where(ranked.age == 1).subquery()


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


def select_last_pass(check: int | None, subject: int | None) -> Select[Any]:
    """Return the query of the newest pass of a check on a subject."""
    table = tables.newest.c
    passed = (table.check == check, tables.members.c.subject == subject, table.verdict == PASS)
    query = select_outcomes().join(tables.newest, table.outcome == tables.outcomes.c.seq).where(*passed)
    return query.order_by(table.measured_s.desc(), table.outcome.desc()).limit(1)


def select_newest_passes(check: int | None) -> Select[Any]:
    """Return the query of the newest pass of a check on each subject."""
    table = tables.newest.c
    return _join_newest(rank_newest(table.check == check, table.verdict == PASS))


def select_last_pass_before(run: str, check: int | None, subject: int | None) -> Select[Any]:
    """Return the query of the newest pass recorded before a run; for an unrecorded run, before its begin."""
    table, runs = tables.outcomes.c, tables.runs.c
    itself = tables.runs.alias()
    number = select(itself.c.seq).where(itself.c.id == run).scalar_subquery()
    passed = (table.check == check, tables.members.c.subject == subject, table.verdict == PASS)
    older = case((number.is_(None), runs.id < run), else_=runs.seq < number)
    return select_outcomes().where(*passed, older).order_by(table.measured_s.desc(), table.seq.desc()).limit(1)
