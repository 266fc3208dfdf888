"""Lays a run over what stood before it: the outcome of the newer evidence stands, all in SQL."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Any
from urllib.parse import quote

from assay.harness.overview.tables import FAILING, KEPT_S, KNOWN, ON_TRIAL, TRIED_WELL, UNKNOWN, WELL
from assay.harness.store.read import Stored
from assay.harness.store.tables import transaction
from assay.model.outcome import VERDICTS

Row = tuple[Any, ...]

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
FROM state o JOIN temp.of_subject s ON s.new = o.subject JOIN temp.of_check_ c ON c.new = o.check_
JOIN run.{{0}} m ON m.subject = s.old AND m.check_ = c.old {{1}}
WHERE o.run = :n AND o.stands NOT IN ({WELL}, {TRIED_WELL})
"""
_MEASUREMENTS = (
    "INSERT OR IGNORE INTO measurement "
    "SELECT o.subject, o.check_, m.n, g.name, m.value, g.unit, g.at_least, g.at_most, g.source"
    + _AMISS.format("measurement", "JOIN run.gauge g ON g.id = m.gauge")
)
_ARTEFACTS = "INSERT OR IGNORE INTO artefact SELECT o.subject, o.check_, m.name, m.digest, m.bytes" + _AMISS.format(
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
    ask = connection.execute
    checks = ask("SELECT id, name, fault, phases FROM run.check_").fetchall()
    _pairs(connection, "check_", checks, [(name, area(name), fault, phases) for _, name, fault, phases in checks])
    subjects = ask("SELECT id, name, node FROM run.subject").fetchall()
    split = [(name, name.split("/")[0], holder(name, node)) for _, name, node in subjects]
    _pairs(connection, "subject", subjects, split)
    told = ask("SELECT id, text FROM run.text").fetchall()
    _pairs(connection, "text", told, [(text,) for _, text in told])
    times = [(id_, datetime.fromisoformat(at).timestamp()) for id_, at in ask("SELECT id, at FROM run.document") if at]
    _map(connection, "document", times)


def _pairs(connection: sqlite3.Connection, table: str, rows: list[Row], here: list[Row]) -> None:
    """Bring shared rows up to date; the first column is what they are known by."""
    key, *more = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")][1:]
    places = ", ".join("?" * (1 + len(more)))
    renewed = f"UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in more)}" if more else "NOTHING"
    names = ", ".join((key, *more))
    insert = f"INSERT INTO main.{table} ({names}) VALUES ({places}) ON CONFLICT DO {renewed}"  # noqa: S608 — our names
    connection.executemany(insert, here)
    known = dict(connection.execute(f"SELECT {key}, id FROM main.{table}"))  # noqa: S608 — our names
    _map(connection, table, [(row[0], known[row[1]]) for row in rows])


def _map(connection: sqlite3.Connection, table: str, pairs: list[tuple[int, float]]) -> None:
    connection.execute(f"DROP TABLE IF EXISTS temp.of_{table}")
    connection.execute(f"CREATE TABLE temp.of_{table} (old INTEGER PRIMARY KEY, new NUMERIC NOT NULL)")
    connection.executemany(f"INSERT INTO temp.of_{table} VALUES (?, ?)", pairs)  # noqa: S608 — our names
    connection.execute(f"CREATE INDEX temp.by_new_{table} ON of_{table} (new)")
