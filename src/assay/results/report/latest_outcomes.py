"""Where every check stands, asked of the tables: what the Allure report and the overview are made of."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from assay.model.errors import AssayError
from assay.model.outcome import FailureArtefact, Measurement
from assay.results.report.latest_outcomes_schema import ON_TRIAL_PASSING, PASSING, fold_run, open_latest_tables
from assay.results.store.reader import StoredRun
from assay.results.store.schema import transaction


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A run that was told of: its place in the order of telling, its id, when it was (Unix seconds), its specs."""

    n: int
    run: str
    at: float
    spec: str


@dataclass(frozen=True, slots=True)
class AbnormalOutcome:
    """One check and subject that does not stand well, as `stands` says (tables.FAILING and its neighbours)."""

    check: str
    subject: str
    stands: int
    reason: str
    known: str
    measured: float
    run: str
    fault: str
    measurements: tuple[Measurement, ...] = ()
    artefacts: tuple[FailureArtefact, ...] = ()


@dataclass(frozen=True, slots=True)
class StatusCount:
    """How many checks of an area stand in one way on a holder, and how long judging them took."""

    area: str
    stands: int
    count: int
    micros: int


@dataclass(frozen=True, slots=True)
class HolderStatus:
    """A node, rack or fabric with what was judged on it and its parts. `measured` is the newest (Unix seconds)."""

    name: str
    scope: str
    measured: float
    run: str
    phases: tuple[str, ...]
    counted: tuple[StatusCount, ...]
    amiss: list[AbnormalOutcome] = field(default_factory=list)

    def count(self, *stands: int) -> int:
        """Return how many checks stand in one of these ways; none given: all."""
        return sum(one.count for one in self.counted if not stands or one.stands in stands)


_HOLDERS = """
SELECT s.holder, s.scope, c.area, o.stands, count(*), sum(o.micros), max(o.measured), max(o.run)
FROM subject s JOIN state o ON o.subject = s.id JOIN check_ c ON c.id = o.check_
GROUP BY s.holder, c.area, o.stands ORDER BY s.holder
"""
_AMISS = f"""
SELECT s.holder, o.subject, o.check_, c.name, s.name, o.stands, coalesce(r.text, ''), coalesce(k.text, ''),
  o.measured, t.run, c.fault,
  EXISTS (SELECT 1 FROM measurement m WHERE m.subject = o.subject AND m.check_ = o.check_),
  EXISTS (SELECT 1 FROM artefact a WHERE a.subject = o.subject AND a.check_ = o.check_)
FROM state o JOIN subject s ON s.id = o.subject JOIN check_ c ON c.id = o.check_ JOIN told t ON t.n = o.run
LEFT JOIN text r ON r.id = o.reason LEFT JOIN text k ON k.id = o.known
WHERE o.stands NOT IN ({PASSING}, {ON_TRIAL_PASSING}) ORDER BY s.holder, c.name, s.name
"""
_MEASUREMENTS = "SELECT name, value, unit, at_least, at_most, source FROM measurement WHERE subject = ? AND check_ = ?"
_ARTEFACTS = "SELECT name, digest, bytes FROM artefact WHERE subject = ? AND check_ = ?"


class LatestOutcomes:
    """Where every check stands now, over all runs that were laid over each other in `connection`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    @classmethod
    def open(cls, path: Path) -> LatestOutcomes:
        """Open the tables at `path`, which are made where there are none."""
        return cls(open_latest_tables(path))

    def __enter__(self) -> LatestOutcomes:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def add_run(self, path: Path) -> None:
        """Lay the run at `path` over what stands. Raises Trouble, and changes nothing, for what cannot be read."""
        with StoredRun.open(path) as stored:
            try:
                fold_run(self.connection, stored)
            except sqlite3.DatabaseError as error:
                raise AssayError(f"is no run that can be read: {error}", where=str(path)) from None

    def list_reported_runs(self) -> list[ReportedRun]:
        """Return the runs that were told of, oldest first."""
        return [ReportedRun(*row) for row in self.connection.execute("SELECT n, run, at, spec FROM told ORDER BY run")]

    def delete_undeclared(self, checks: Collection[str], holders: Collection[str]) -> None:
        """Drop what stands of checks that are declared no more, and of nodes, racks and fabrics that are gone."""
        for table, name, kept in (("check_", "name", checks), ("subject", "holder", holders)):
            gone = [(n,) for n, held in self.connection.execute(f"SELECT id, {name} FROM {table}") if held not in kept]
            with transaction(self.connection) as connection:
                for where in ("state", "past", "measurement", "artefact"):
                    column = "check_" if table == "check_" else "subject"
                    connection.executemany(f"DELETE FROM {where} WHERE {column} = ?", gone)
                connection.executemany(f"DELETE FROM {table} WHERE id = ?", gone)

    def read_holders(self) -> Iterator[HolderStatus]:
        """Yield every node, rack and fabric with what stands of it, by name."""
        amiss = groupby(self.connection.execute(_AMISS), itemgetter(0))
        waiting = next(amiss, None)
        runs = {one.n: one.run for one in self.list_reported_runs()}
        phases = self._phases()
        for name, rows in groupby(self.connection.execute(_HOLDERS), itemgetter(0)):
            held = list(rows)
            counted = tuple(StatusCount(*row[2:6]) for row in held)
            seen = {phase: None for row in held for phase in phases[row[2]]}
            whole = HolderStatus(
                name, held[0][1], max(r[6] for r in held), runs[max(r[7] for r in held)], (*seen,), counted
            )
            if waiting and waiting[0] == name:
                whole.amiss.extend(self._amiss(row[1:]) for row in waiting[1])
                waiting = next(amiss, None)
            yield whole

    def _amiss(self, row: tuple[Any, ...]) -> AbnormalOutcome:
        *key, check, subject, stands, reason, known, measured, run, fault, has_numbers, has_kept = row
        numbers = self.connection.execute(_MEASUREMENTS, key) if has_numbers else ()
        kept = self.connection.execute(_ARTEFACTS, key) if has_kept else ()
        return AbnormalOutcome(
            check, subject, stands, reason, known, measured, run, fault,
            tuple(Measurement(*one) for one in numbers), tuple(FailureArtefact(*one) for one in kept),
        )  # fmt: skip

    def _phases(self) -> dict[str, tuple[str, ...]]:
        """Return the phases of an area's checks."""
        found: dict[str, dict[str, None]] = {}
        for area, phases in self.connection.execute("SELECT area, phases FROM check_ ORDER BY id"):
            found.setdefault(area, {}).update(dict.fromkeys(json.loads(phases)))
        return {area: tuple(phases) for area, phases in found.items()}
