"""The latest outcomes of all checks, which the overview and the Allure report are made of."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.schema import transaction
from assay.model.outcome import FailureArtefact, Measurement
from assay.tell.report.latest_outcomes_database import ON_TRIAL_PASSING, PASSING, fold_run, open_latest_tables


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A merged run: its number in the order of merging, its id, its time (Unix seconds), and its specs."""

    n: int
    run: str
    at: float
    spec: str


@dataclass(frozen=True, slots=True)
class AbnormalOutcome:
    """A check and subject that does not pass. `status` is FAILING or another status; `measured` is in Unix seconds."""

    check: str
    subject: str
    status: int
    reason: str
    known: str
    measured: float
    run: str
    fault: str
    measurements: tuple[Measurement, ...] = ()
    artefacts: tuple[FailureArtefact, ...] = ()


class AreaCounts(NamedTuple):
    """The checks of an area on a holder: the number with each status."""

    area: str
    counts: tuple[tuple[int, int], ...]


class StatusShape(NamedTuple):
    """What most holders of a kind share: the counts of each area, those of all areas by status, and the phases."""

    areas: tuple[AreaCounts, ...]
    totals: Mapping[int, int]
    phases: tuple[str, ...]


@dataclass(frozen=True)
class HolderStatus:
    """A node, rack or fabric, with the status of all checks on it and its parts.

    `measured` is the time of its newest evidence (Unix seconds). `micros`: how long the checks of each area took. Of
    the passes, `stale` are on evidence that was older than the policy allows when the newest run began; they say
    nothing.
    """

    name: str
    scope: str
    measured: float
    run: str
    shape: StatusShape
    micros: tuple[int, ...]
    abnormal: list[AbnormalOutcome] = field(default_factory=list)
    stale: int = 0

    def count(self, *statuses: int) -> int:
        """Return the number of checks with one of these statuses (none: with any)."""
        totals = self.shape.totals
        return sum([totals.get(status, 0) for status in statuses]) if statuses else sum(totals.values())


_HOLDERS = """
CREATE TEMP TABLE IF NOT EXISTS holder_status AS
SELECT s.holder, s.scope, c.area, o.stands, count(*), sum(o.micros), max(o.measured), max(o.run)
FROM subject s JOIN state o ON o.subject = s.id JOIN check_ c ON c.id = o.check_
GROUP BY s.holder, c.area, o.stands ORDER BY s.holder, c.area, o.stands
"""
"""Read several times for one report: kept until the outcomes change, in the order of its rows."""
MOST_SHAPES = 1024
_FORGET_HOLDERS = "DROP TABLE IF EXISTS temp.holder_status"
_STALE = f"""
SELECT s.holder, count(*) FROM check_ c JOIN state o ON o.check_ = c.id JOIN subject s ON s.id = o.subject
WHERE o.stands = {PASSING} AND o.measured < (SELECT max(at) FROM told) - c.fresh_hours * 3600 GROUP BY s.holder
"""
_ABNORMAL = f"""
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
    """The latest outcome of every check and subject over all merged runs."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    @classmethod
    def open(cls, path: Path) -> LatestOutcomes:
        """Open the tables at `path`, which are created where there are none."""
        return cls(open_latest_tables(path))

    def __enter__(self) -> LatestOutcomes:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def add_run(self, path: Path) -> None:
        """Merge the run at `path`. Raises AssayError, and changes nothing, for a file that cannot be read."""
        with StoredRun.open_whole(path) as stored:
            self.connection.execute(_FORGET_HOLDERS)
            fold_run(self.connection, stored)

    def list_reported_runs(self) -> list[ReportedRun]:
        """Return the merged runs, oldest first."""
        return [ReportedRun(*row) for row in self.connection.execute("SELECT n, run, at, spec FROM told ORDER BY run")]

    def delete_undeclared(self, checks: Collection[str], holders: Collection[str]) -> None:
        """Delete outcomes of checks, nodes, racks and fabrics that are no longer declared."""
        self.connection.execute(_FORGET_HOLDERS)
        for table, name, declared in (("check_", "name", checks), ("subject", "holder", holders)):
            rows = self.connection.execute(f"SELECT id, {name} FROM {table}")
            gone = [(key,) for key, value in rows if value not in declared]
            with transaction(self.connection) as connection:
                for where in ("state", "past", "measurement", "artefact"):
                    column = "check_" if table == "check_" else "subject"
                    connection.executemany(f"DELETE FROM {where} WHERE {column} = ?", gone)
                connection.executemany(f"DELETE FROM {table} WHERE id = ?", gone)

    def read_holders(self) -> Iterator[HolderStatus]:
        """Yield the status of every node, rack and fabric, by name."""
        abnormal = groupby(self.connection.execute(_ABNORMAL), itemgetter(0))
        next_abnormal = next(abnormal, None)
        runs = {run.n: run.run for run in self.list_reported_runs()}
        phases_of, stale = self._phases_by_area(), dict(self.connection.execute(_STALE))
        shapes: dict[tuple[tuple[str, int, int], ...], StatusShape] = {}
        self.connection.execute(_HOLDERS)
        for name, group in groupby(self.connection.execute("SELECT * FROM holder_status"), itemgetter(0)):
            rows = list(group)
            key = tuple([row[2:5] for row in rows])
            if (shape := shapes.get(key)) is None:
                if len(shapes) == MOST_SHAPES:
                    shapes.clear()
                shape = shapes[key] = _make_shape(key, phases_of)
            measured, newest_run = max([row[6] for row in rows]), runs[max([row[7] for row in rows])]
            micros = _sum_by_area(rows) if len(shape.areas) < len(rows) else tuple([row[5] for row in rows])
            holder = HolderStatus(name, rows[0][1], measured, newest_run, shape, micros, stale=stale.get(name, 0))
            if next_abnormal and next_abnormal[0] == name:
                holder.abnormal.extend(self._make_abnormal(row[1:]) for row in next_abnormal[1])
                next_abnormal = next(abnormal, None)
            yield holder

    def _make_abnormal(self, row: tuple[Any, ...]) -> AbnormalOutcome:
        *key, check, subject, status, reason, known, measured, run, fault, has_measurements, has_artefacts = row
        measurements = self.connection.execute(_MEASUREMENTS, key) if has_measurements else ()
        artefacts = self.connection.execute(_ARTEFACTS, key) if has_artefacts else ()
        values = tuple(Measurement(*values) for values in measurements)
        files = tuple(FailureArtefact(*values) for values in artefacts)
        return AbnormalOutcome(check, subject, status, reason, known, measured, run, fault, values, files)

    def _phases_by_area(self) -> dict[str, tuple[str, ...]]:
        phases_of: dict[str, dict[str, None]] = {}
        for area, phases in self.connection.execute("SELECT area, phases FROM check_ ORDER BY id"):
            phases_of.setdefault(area, {}).update(dict.fromkeys(json.loads(phases)))
        return {area: tuple(phases) for area, phases in phases_of.items()}


def _make_shape(rows: Sequence[tuple[str, int, int]], phases_of: Mapping[str, Iterable[str]]) -> StatusShape:
    by_area = groupby(rows, itemgetter(0))
    areas = tuple(AreaCounts(area, tuple(row[1:] for row in of_area)) for area, of_area in by_area)
    totals = Counter[int]()
    for _, status, count in rows:
        totals[status] += count
    return StatusShape(areas, totals, tuple(dict.fromkeys(chain.from_iterable(phases_of[one.area] for one in areas))))


def _sum_by_area(rows: Iterable[tuple[Any, ...]]) -> tuple[int, ...]:
    return tuple(sum(row[5] for row in of_area) for _, of_area in groupby(rows, itemgetter(2)))
