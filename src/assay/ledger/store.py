"""The ledger: append, and read back in order. Nothing is ever changed or taken out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Engine, RowMapping, Select, Table, func, insert, select
from sqlalchemy.sql.dml import ReturningInsert

from assay.ledger import rows, tables
from assay.ledger.engine import PATIENCE_S, address, connect, reading, writing
from assay.model.entry import Entry
from assay.model.outcome import Outcome, Recorded, Run

__all__ = ["Ledger", "Recorded"]

T = TypeVar("T")
BATCH = 500


class Ledger:
    """An append-only history on SQLite or PostgreSQL. Every method may raise Trouble; what it returned from is kept.

    Usable from several threads and processes at once; an instance must not cross a fork.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(cls, where: Path | str, patience_s: float = PATIENCE_S) -> Ledger:
        """Open the ledger at a path or URL, made on first use; `patience_s` is how long to wait for a lock."""
        return cls(connect(address(where), patience_s))

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def append(self, *entries: Entry) -> list[bool]:
        """Append in one transaction; for each entry say whether it is new (False: its id is known, nothing done)."""
        if not entries:
            return []
        with writing(self._engine) as connection:
            added = {one for some in _batches(entries, BATCH) for one in _append(connection, some)}
        return [_taken(added, entry.id) for entry in entries]

    def entries(self, node: str | None = None, kinds: Collection[str] = (), after: int = 0) -> list[Entry]:
        """Return entries in order: of one node, of some kinds, of numbers above `after`."""
        table = tables.entries.c
        query = select(tables.entries).where(table.seq > after).order_by(table.seq)
        if node is not None:
            query = query.where(table.node == node)
        if kinds:
            query = query.where(table.kind.in_(sorted(kinds)))
        with reading(self._engine) as connection:
            return [rows.entry(row) for row in connection.execute(query).mappings()]

    def record(self, run: Run, outcomes: Iterable[Outcome]) -> bool:
        """Write a run and its outcomes whole, or, when the run's id is known, nothing (False)."""
        with writing(self._engine) as connection:
            number = _add(connection, tables.runs, rows.of_run(run))
            if number is None:
                return False
            for some in _batches(outcomes, BATCH):
                _record(connection, some, number, run.at)
            return True

    def runs(self) -> list[Run]:
        """Return every run, oldest first."""
        with reading(self._engine) as connection:
            query = select(tables.runs).order_by(tables.runs.c.seq)
            return [rows.run(row) for row in connection.execute(query).mappings()]

    def outcomes(
        self, run: str | None = None, node: str | None = None, checks: Collection[str] = (), since: str = ""
    ) -> list[Recorded]:
        """Return outcomes in the order they were written: of one run, of one node, of some checks, since a time."""
        query = _outcomes().order_by(tables.outcomes.c.seq)
        if run is not None:
            query = query.where(tables.runs.c.id == run)
        if node is not None:
            query = query.where(tables.outcomes.c.node == node)
        if checks:
            query = query.where(tables.outcomes.c.check.in_(sorted(checks)))
        if since:
            query = query.where(tables.outcomes.c.measured_s >= rows.seconds(since))
        return self._recorded(query)

    def latest(self, node: str | None = None) -> list[Recorded]:
        """Return the newest outcome of each check × subject, by when its evidence was collected (None: of all)."""
        table = tables.outcomes.c
        age = func.row_number().over(
            partition_by=(table.check, table.subject), order_by=(table.measured_s.desc(), table.seq.desc())
        )
        ranked = select(table.seq, age.label("age"))
        if node is not None:
            ranked = ranked.where(table.node == node)
        newest = ranked.subquery()
        query = _outcomes().join(newest, newest.c.seq == table.seq).where(newest.c.age == 1)
        return self._recorded(query.order_by(table.check, table.subject))

    def last_pass(self, check: str, subject: str) -> Recorded | None:
        """Return the newest pass of a check on a subject, by when its evidence was collected."""
        table = tables.outcomes.c
        query = _outcomes().where(table.check == check, table.subject == subject, table.verdict == "pass")
        found = self._recorded(query.order_by(table.measured_s.desc(), table.seq.desc()).limit(1))
        return found[0] if found else None

    def _recorded(self, query: Select[tuple[object, ...]]) -> list[Recorded]:
        with reading(self._engine) as connection:
            found = list(connection.execute(query).mappings())
            measured = _measurements(connection, [row["seq"] for row in found])
        return [rows.recorded(row, measured[row["seq"]]) for row in found]


def _outcomes() -> Select[tuple[object, ...]]:
    runs = tables.runs
    wanted = select(tables.outcomes, runs.c.id.label("run_id"), runs.c.at.label("run_at"))
    return wanted.join(runs, runs.c.seq == tables.outcomes.c.run)


def _measurements(connection: Connection, outcomes: list[int]) -> dict[int, list[RowMapping]]:
    found: dict[int, list[RowMapping]] = defaultdict(list)
    table = tables.measurements
    for some in _batches(outcomes, BATCH):
        query = select(table).where(table.c.outcome.in_(some)).order_by(table.c.seq)
        for row in connection.execute(query).mappings():
            found[row["outcome"]].append(row)
    return found


def _batches(things: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(things)
    while some := list(islice(left, size)):
        yield some


def _append(connection: Connection, entries: Sequence[Entry]) -> Sequence[str]:
    """Insert many at once, in their order; return the ids that were not known. Of one id, the first entry counts."""
    statement = _insert_once(connection.dialect.name, tables.entries, tables.entries.c.id)
    return connection.execute(statement, [rows.of_entry(entry) for entry in entries]).scalars().all()


def _taken(added: set[str], one: str) -> bool:
    """Whether this is the first that is asked of the ids that were added."""
    new = one in added
    added.discard(one)
    return new


def _record(connection: Connection, outcomes: Sequence[Outcome], run: int, at: str) -> None:
    """Insert many at once: one statement each costs five times as much."""
    numbered = insert(tables.outcomes).returning(tables.outcomes.c.seq, sort_by_parameter_order=True)
    seqs = connection.execute(numbered, [rows.of_outcome(outcome, run, at) for outcome in outcomes]).scalars().all()
    measured = [
        rows.of_measurement(measurement, seq)
        for seq, outcome in zip(seqs, outcomes, strict=True)
        for measurement in outcome.measurements
    ]
    if measured:
        connection.execute(insert(tables.measurements), measured)


def _add(connection: Connection, table: Table, row: rows.Row) -> int | None:
    """Insert unless the row's id is known; return its number, or None."""
    statement = _insert_once(connection.dialect.name, table, table.c.seq)
    number: int | None = connection.execute(statement, row).scalar_one_or_none()
    return number


def _insert_once(dialect: str, table: Table, told: Column[Any]) -> ReturningInsert[Any]:
    """Return the insertion of rows whose `id` is not known, which tells one column of those that it made."""
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as postgres_insert

        return postgres_insert(table).on_conflict_do_nothing(index_elements=["id"]).returning(told)
    from sqlalchemy.dialects.sqlite import insert as sqlite_insert

    return sqlite_insert(table).on_conflict_do_nothing(index_elements=["id"]).returning(told)
