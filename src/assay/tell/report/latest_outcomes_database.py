"""The tables of the latest outcomes, and how a run is merged into them in SQL.

They hold the outcome of the newest evidence for each check and subject, and the changes of the last 30 days.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.schema import transaction
from assay.model.outcome import VERDICTS, read_whole
from assay.validate.results.stale_evidence import read_fresh_hours

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
