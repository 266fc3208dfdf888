"""The tables of the latest outcomes, and how a run is merged into them in SQL.

They hold the outcome of the newest evidence for each check and subject, and the changes of the last 30 days.

The latest outcomes of all checks, which the overview and the Allure report are made of.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.schema import transaction
from assay.model.outcome import VERDICTS, FailureArtefact, Measurement, read_whole
from assay.validate.results.stale import read_fresh_hours

LATEST_VERSION = 2
PASSING, FAILING, UNKNOWN, SKIPPED, KNOWN, ON_TRIAL, ON_TRIAL_PASSING = range(7)
"""The status of a check on a subject. The first four are the verdicts; the others count against nobody, since a known
issue or stage `observe` excuses them."""

MAX_CHANGE_AGE_S = 30 * 86400
"""Older changes are deleted; the latest outcomes are not."""

LATEST_SCHEMA = f"""
CREATE TABLE told (n INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, at REAL NOT NULL, spec TEXT NOT NULL);
CREATE TABLE check_ (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, area TEXT NOT NULL, fault TEXT NOT NULL,
  phases TEXT NOT NULL, fresh_hours REAL);
CREATE TABLE subject (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, scope TEXT NOT NULL, holder TEXT NOT NULL);
CREATE INDEX of_holder ON subject (holder);
CREATE TABLE text (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE state (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, stands INTEGER NOT NULL, reason INTEGER,
  known INTEGER, measured REAL NOT NULL, run INTEGER NOT NULL, first INTEGER NOT NULL, micros INTEGER NOT NULL,
  PRIMARY KEY (subject, check_)) WITHOUT ROWID;
CREATE INDEX amiss ON state (stands, run) WHERE stands NOT IN ({PASSING}, {ON_TRIAL_PASSING});
CREATE TABLE past (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, run INTEGER NOT NULL, stood INTEGER NOT NULL,
  PRIMARY KEY (subject, check_, run)) WITHOUT ROWID;
CREATE TRIGGER changed AFTER UPDATE OF stands ON state WHEN old.stands != new.stands
  BEGIN INSERT OR IGNORE INTO past VALUES (new.subject, new.check_, new.run, old.stands); END;
CREATE TABLE measurement (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, n INTEGER NOT NULL, name TEXT NOT NULL,
  value REAL NOT NULL, unit TEXT NOT NULL, at_least REAL, at_most REAL, source TEXT NOT NULL,
  PRIMARY KEY (subject, check_, n)) WITHOUT ROWID;
CREATE TABLE artefact (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL,
  bytes INTEGER NOT NULL, PRIMARY KEY (subject, check_, name)) WITHOUT ROWID;
CREATE TABLE trend (run INTEGER NOT NULL, pool TEXT NOT NULL, well INTEGER NOT NULL, decided INTEGER NOT NULL,
  holders INTEGER NOT NULL, ill INTEGER NOT NULL, PRIMARY KEY (run, pool)) WITHOUT ROWID;
PRAGMA user_version = {LATEST_VERSION};
"""


def open_latest_tables(path: Path) -> sqlite3.Connection:
    """Return a connection to the tables at `path`. A damaged file is replaced, and filled again from the runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _connect(path)
    except sqlite3.DatabaseError:
        path.unlink()
        return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    where = f"file:{quote(str(path.resolve()))}"
    connection = sqlite3.connect(where, uri=True, isolation_level=None, timeout=60)
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -131072")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        connection.executescript(f"BEGIN IMMEDIATE;{LATEST_SCHEMA}COMMIT;")
    elif version != LATEST_VERSION:
        connection.close()
        raise sqlite3.DatabaseError(f"version {version}")
    return connection


_CHECKS = """
INSERT INTO main.check_ (name, area, fault, phases, fresh_hours) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET fault = excluded.fault, phases = excluded.phases,
  fresh_hours = coalesce(excluded.fresh_hours, fresh_hours)
"""
_SUBJECTS = """
INSERT INTO main.subject (name, scope, holder)
SELECT name, substr(name, 1, instr(name, '/') - 1), holder(name, node) FROM run.subject
WHERE name NOT IN (SELECT name FROM main.subject)
"""
_STATUS = f"""CASE
  WHEN o.verdict IN ({VERDICTS.index("fail")}, {VERDICTS.index("error")}) AND o.known IS NOT NULL THEN {KNOWN}
  WHEN o.observed AND o.verdict = {VERDICTS.index("pass")} THEN {ON_TRIAL_PASSING}
  WHEN o.observed THEN {ON_TRIAL}
  ELSE o.verdict END"""
_MERGE_OUTCOMES = f"""
INSERT INTO state
SELECT s.new, c.new, {_STATUS}, r.new, k.new, coalesce(d.new, :at), :n, :n, o.micros
FROM run.outcome o JOIN temp.of_subject s ON s.old = o.subject JOIN temp.of_check_ c ON c.old = o.check_
LEFT JOIN temp.of_text r ON r.old = o.reason LEFT JOIN temp.of_text k ON k.old = o.known
LEFT JOIN temp.of_document d ON d.old = o.document
WHERE true ON CONFLICT DO UPDATE SET stands = excluded.stands, reason = excluded.reason, known = excluded.known,
  measured = excluded.measured, run = excluded.run, micros = excluded.micros
WHERE excluded.measured > measured
  OR (excluded.measured = measured AND :name >= (SELECT t.run FROM told t WHERE t.n = state.run))
"""
_DELETE_OLD = """
DELETE FROM {0} WHERE EXISTS (SELECT 1 FROM state o
  WHERE o.subject = {0}.subject AND o.check_ = {0}.check_ AND o.run = :n)
"""
_OF_ABNORMAL = f"""
FROM run.outcome o JOIN temp.of_subject s ON s.old = o.subject JOIN temp.of_check_ c ON c.old = o.check_
JOIN state x ON x.subject = s.new AND x.check_ = c.new AND x.run = :n
JOIN run.{{0}} m ON m.subject = o.subject AND m.check_ = o.check_ {{1}}
WHERE o.verdict != {VERDICTS.index("pass")}
"""
_MEASUREMENTS = (
    "INSERT OR IGNORE INTO measurement "
    "SELECT x.subject, x.check_, m.n, g.name, m.value, g.unit, g.at_least, g.at_most, g.source"
    + _OF_ABNORMAL.format("measurement", "JOIN run.gauge g ON g.id = m.gauge")
)
_ARTEFACTS = (
    "INSERT OR IGNORE INTO artefact SELECT x.subject, x.check_, m.name, m.digest, m.bytes"
    + _OF_ABNORMAL.format("artefact", "")
)
_TREND = f"""
INSERT INTO trend SELECT :n, pool, sum(well), sum(well + ill), count(*), sum(ill > 0) FROM (
  SELECT s.scope AS pool, sum(o.stands = {PASSING}) AS well, sum(o.stands IN ({FAILING}, {UNKNOWN})) AS ill
  FROM subject s JOIN state o ON o.subject = s.id GROUP BY s.holder, s.scope) GROUP BY pool
"""


def fold_run(connection: sqlite3.Connection, stored: StoredRun) -> None:
    """Merge a run into the tables. A run that was merged before changes nothing."""
    run = stored.run
    if connection.execute("SELECT 1 FROM told WHERE run = ?", (run.id,)).fetchone():
        return
    at = datetime.fromisoformat(run.at).timestamp()
    spec = f"{run.spec_commit[:12] or 'no commit'}{'+changes' if run.dirty else ''}"
    connection.execute("ATTACH ? AS run", (f"file:{quote(str(stored.path.resolve()))}?mode=ro",))
    try:
        with transaction(connection):
            n = connection.execute("INSERT INTO told (run, at, spec) VALUES (?, ?, ?)", (run.id, at, spec)).lastrowid
            _map_shared_rows(connection, read_fresh_hours(stored))
            values = {"n": n, "at": at, "name": run.id}
            deletions = _DELETE_OLD.format("measurement"), _DELETE_OLD.format("artefact")
            for statement in (_MERGE_OUTCOMES, *deletions, _MEASUREMENTS, _ARTEFACTS, _TREND):
                connection.execute(statement, values)
            old_changes = "DELETE FROM past WHERE run IN (SELECT n FROM told WHERE at < ?)"
            connection.execute(old_changes, (at - MAX_CHANGE_AGE_S,))
    finally:
        connection.execute("DETACH run")


def find_holder(subject: str, node: str) -> str:
    """Return the holder of a subject: its node, or the rack or fabric that it names (`h100-a/rack-r01`)."""
    return node or read_whole(subject)


def suite_area(check: str) -> str:
    """Return the suite module of a check, `production/gpu` of `suites/production/test_gpu.py::test_gpu_temperature`."""
    folder, _, module = check.partition("::")[0].removeprefix("suites/").removesuffix(".py").rpartition("/")
    return f"{folder}/{module.removeprefix('test_')}".removeprefix("/")


def _map_shared_rows(connection: sqlite3.Connection, fresh_hours: Mapping[str, float]) -> None:
    """Map the ids of the run's shared rows to ours; rows that are new are added."""
    connection.create_function("holder", 2, find_holder, deterministic=True)
    checks = connection.execute("SELECT name, fault, phases FROM run.check_").fetchall()
    rows = [(name, suite_area(name), fault, phases, fresh_hours.get(name)) for name, fault, phases in checks]
    connection.executemany(_CHECKS, rows)
    connection.execute(_SUBJECTS)
    connection.execute("INSERT OR IGNORE INTO main.text (text) SELECT text FROM run.text")
    for table, key in (("check_", "name"), ("subject", "name"), ("text", "text")):
        _create_mapping(connection, table)
        pairs = f"SELECT r.id, m.id FROM run.{table} r JOIN main.{table} m ON m.{key} = r.{key}"
        connection.execute(f"INSERT INTO temp.of_{table} {pairs}")
    _create_mapping(connection, "document")
    times = connection.execute("SELECT id, at FROM run.document WHERE at != ''").fetchall()
    seconds = [(number, datetime.fromisoformat(at).timestamp()) for number, at in times]
    connection.executemany("INSERT INTO temp.of_document VALUES (?, ?)", seconds)


def _create_mapping(connection: sqlite3.Connection, table: str) -> None:
    connection.execute(f"DROP TABLE IF EXISTS temp.of_{table}")
    connection.execute(f"CREATE TABLE temp.of_{table} (old INTEGER PRIMARY KEY, new NUMERIC NOT NULL)")


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
_READ_MEASUREMENTS = (
    "SELECT name, value, unit, at_least, at_most, source FROM measurement WHERE subject = ? AND check_ = ?"
)
_READ_ARTEFACTS = "SELECT name, digest, bytes FROM artefact WHERE subject = ? AND check_ = ?"


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
        measurements = self.connection.execute(_READ_MEASUREMENTS, key) if has_measurements else ()
        artefacts = self.connection.execute(_READ_ARTEFACTS, key) if has_artefacts else ()
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
