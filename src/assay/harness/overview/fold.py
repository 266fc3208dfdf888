"""Lays a run over what stood before it: the outcome of the newer evidence stands, all in SQL."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from urllib.parse import quote

from assay.harness.overview.tables import FAILING, KEPT_S, KNOWN, ON_TRIAL, TRIED_WELL, UNKNOWN, WELL
from assay.harness.store.read import Stored
from assay.harness.store.tables import transaction
from assay.model.outcome import VERDICTS

_CHECKS = """
INSERT INTO main.check_ (name, area, fault, phases) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET fault = excluded.fault, phases = excluded.phases
"""
_SUBJECTS = """
INSERT INTO main.subject (name, scope, holder)
SELECT name, substr(name, 1, instr(name, '/') - 1), holder(name, node) FROM run.subject
WHERE name NOT IN (SELECT name FROM main.subject)
"""
_STANDS = f"""CASE
  WHEN o.verdict IN ({VERDICTS.index("fail")}, {VERDICTS.index("error")}) AND o.known IS NOT NULL THEN {KNOWN}
  WHEN o.observed AND o.verdict = {VERDICTS.index("pass")} THEN {TRIED_WELL}
  WHEN o.observed THEN {ON_TRIAL}
  ELSE o.verdict END"""
_LAY_OVER = f"""
INSERT INTO state
SELECT s.new, c.new, {_STANDS}, r.new, k.new, coalesce(d.new, :at), :n, :n, o.micros
FROM run.outcome o JOIN temp.of_subject s ON s.old = o.subject JOIN temp.of_check_ c ON c.old = o.check_
LEFT JOIN temp.of_text r ON r.old = o.reason LEFT JOIN temp.of_text k ON k.old = o.known
LEFT JOIN temp.of_document d ON d.old = o.document
WHERE true ON CONFLICT DO UPDATE SET stands = excluded.stands, reason = excluded.reason, known = excluded.known,
  measured = excluded.measured, run = excluded.run, micros = excluded.micros
WHERE excluded.measured > measured
  OR (excluded.measured = measured AND :name >= (SELECT t.run FROM told t WHERE t.n = state.run))
"""  # noqa: S608 — our numbers
_FORGET = """
DELETE FROM {0} WHERE EXISTS (SELECT 1 FROM state o
  WHERE o.subject = {0}.subject AND o.check_ = {0}.check_ AND o.run = :n)
"""
_AMISS = f"""
FROM run.outcome o JOIN temp.of_subject s ON s.old = o.subject JOIN temp.of_check_ c ON c.old = o.check_
JOIN state x ON x.subject = s.new AND x.check_ = c.new AND x.run = :n
JOIN run.{{0}} m ON m.subject = o.subject AND m.check_ = o.check_ {{1}}
WHERE o.verdict != {VERDICTS.index("pass")}
"""
_MEASUREMENTS = (
    "INSERT OR IGNORE INTO measurement "
    "SELECT x.subject, x.check_, m.n, g.name, m.value, g.unit, g.at_least, g.at_most, g.source"
    + _AMISS.format("measurement", "JOIN run.gauge g ON g.id = m.gauge")
)
_ARTEFACTS = "INSERT OR IGNORE INTO artefact SELECT x.subject, x.check_, m.name, m.digest, m.bytes" + _AMISS.format(
    "artefact", ""
)
_TREND = f"""
INSERT INTO trend SELECT :n, pool, sum(well), sum(well + ill), count(*), sum(ill > 0) FROM (
  SELECT s.scope AS pool, sum(o.stands = {WELL}) AS well, sum(o.stands IN ({FAILING}, {UNKNOWN})) AS ill
  FROM subject s JOIN state o ON o.subject = s.id GROUP BY s.holder, s.scope) GROUP BY pool
"""  # noqa: S608 — our numbers


def fold(connection: sqlite3.Connection, stored: Stored) -> None:
    """Lay a run over what stands, once: a run that was told of before changes nothing."""
    run = stored.run
    if connection.execute("SELECT 1 FROM told WHERE run = ?", (run.id,)).fetchone():
        return
    at = datetime.fromisoformat(run.at).timestamp()
    spec = f"{run.spec_commit[:12] or 'no commit'}{'+changes' if run.dirty else ''}"
    connection.execute("ATTACH ? AS run", (f"file:{quote(str(stored.path.resolve()))}?mode=ro",))
    try:
        with transaction(connection):
            n = connection.execute("INSERT INTO told (run, at, spec) VALUES (?, ?, ?)", (run.id, at, spec)).lastrowid
            _number(connection)
            values = {"n": n, "at": at, "name": run.id}
            for statement in (_LAY_OVER, _FORGET.format("measurement"), _FORGET.format("artefact"), _MEASUREMENTS,
                              _ARTEFACTS, _TREND):  # fmt: skip
                connection.execute(statement, values)
            old = "DELETE FROM past WHERE run IN (SELECT n FROM told WHERE at < ?)"
            connection.execute(old, (at - KEPT_S,))
    finally:
        connection.execute("DETACH run")


def holder(subject: str, node: str) -> str:
    """Return what a subject is a part of: its node, or the rack or fabric that it names."""
    return node or "/".join(subject.split("/")[:2])


def area(check: str) -> str:
    """Return the suite module of a check, `production/gpu` of `suites/production/test_gpu.py::test_gpu_temperature`."""
    folder, _, module = check.partition("::")[0].removeprefix("suites/").removesuffix(".py").rpartition("/")
    return f"{folder}/{module.removeprefix('test_')}".removeprefix("/")


def _number(connection: sqlite3.Connection) -> None:
    """Note which number each shared row of the run has here; rows that are new here are added."""
    connection.create_function("holder", 2, holder, deterministic=True)
    checks = connection.execute("SELECT name, fault, phases FROM run.check_").fetchall()
    connection.executemany(_CHECKS, [(name, area(name), fault, phases) for name, fault, phases in checks])
    connection.execute(_SUBJECTS)
    connection.execute("INSERT OR IGNORE INTO main.text (text) SELECT text FROM run.text")
    for table, key in (("check_", "name"), ("subject", "name"), ("text", "text")):
        _map(connection, table)
        pairs = f"SELECT r.id, m.id FROM run.{table} r JOIN main.{table} m ON m.{key} = r.{key}"  # noqa: S608
        connection.execute(f"INSERT INTO temp.of_{table} {pairs}")
    _map(connection, "document")
    times = connection.execute("SELECT id, at FROM run.document WHERE at != ''").fetchall()
    seconds = [(number, datetime.fromisoformat(at).timestamp()) for number, at in times]
    connection.executemany("INSERT INTO temp.of_document VALUES (?, ?)", seconds)


def _map(connection: sqlite3.Connection, table: str) -> None:
    connection.execute(f"DROP TABLE IF EXISTS temp.of_{table}")
    connection.execute(f"CREATE TABLE temp.of_{table} (old INTEGER PRIMARY KEY, new NUMERIC NOT NULL)")
