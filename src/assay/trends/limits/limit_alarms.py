"""The alarms of limits: when a limit fired, what followed, and which failures it would have foreseen.

An alarm begins on the first day beyond the limit; days beyond it within a week of each other are one alarm. It is
right if the same part fails within 30 days, not on the same day. It is wrong if the node served all that time, and
nothing failed. Nobody can tell where the time is not over, or where the node was out of service, as somebody may have
acted. A failure of the class that the check itself means does not count: the limit made it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from assay.model.backtest_report import LimitRecord, LimitSide
from assay.trends.limits.limit_tables import HORIZON_DAYS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NODES_IN_BLOCK = 500
QUIET_DAYS = 7
_TABLES = """
CREATE OR REPLACE TABLE keys (id INTEGER, check_ VARCHAR, name VARCHAR, unit VARCHAR, spec VARCHAR);
CREATE OR REPLACE TABLE bounds (id INTEGER, side VARCHAR, revision INTEGER, bound DOUBLE);
CREATE OR REPLACE TABLE alarms (id INTEGER, side VARCHAR, revision INTEGER, node VARCHAR, subject VARCHAR, day INTEGER);
"""
_NODES = "SELECT DISTINCT node FROM measured ORDER BY node"
_ALARMS = """
INSERT INTO alarms
WITH fired AS (
  SELECT id, side, revision, node, subject, day
  FROM readings JOIN keys USING (check_, name, unit, spec) JOIN bounds USING (id)
  WHERE node >= $low AND node <= $high AND distance(side, bound, value) < 0 GROUP BY ALL
)
SELECT id, side, revision, node, subject, day FROM fired
QUALIFY coalesce(day - lag(day) OVER (PARTITION BY id, side, revision, subject ORDER BY day) > $quiet, true)
"""
_EXPOSED = """
CREATE OR REPLACE TABLE exposed AS
SELECT DISTINCT r.id, f.failure
FROM (SELECT DISTINCT id, node, subject
      FROM readings SEMI JOIN failures USING (node) JOIN keys USING (check_, name, unit, spec)) r
JOIN failures f ON f.node = r.node AND f.place = split_part(r.subject, '/', 3)
JOIN own_faults o ON o.id = r.id WHERE f.fault <> o.fault
"""
_OWN_FAULTS = """
CREATE OR REPLACE TABLE own_faults AS
SELECT DISTINCT id, coalesce(m.fault, '') AS fault FROM keys LEFT JOIN meanings m USING (check_)
"""
_MACRO = """
CREATE OR REPLACE MACRO distance(side, bound, value) AS
  CASE side WHEN 'at_most' THEN bound - value WHEN 'at_least' THEN value - bound ELSE -abs(value - bound) END
"""
"""How far a value stays inside a bound; negative beyond it."""
_RECORDS = """
WITH failed AS (
  SELECT a.id, side, revision, a.node, subject, a.day, min(f.day) AS failed_day, list(f.failure) AS failures
  FROM alarms a JOIN own_faults o ON o.id = a.id
  JOIN failures f ON f.node = a.node AND f.place = split_part(subject, '/', 3) AND f.fault <> o.fault
    AND f.day > a.day AND f.day <= a.day + $horizon
  GROUP BY ALL
), out AS (
  SELECT DISTINCT a.* FROM alarms a JOIN absences b
    ON b.node = a.node AND b.first_day <= a.day + $horizon AND b.last_day >= a.day
), ended AS (
  SELECT a.*, failed_day, failures, out.id IS NOT NULL OR a.day + $horizon > $today AS is_open
  FROM alarms a LEFT JOIN failed USING (id, side, revision, node, subject, day)
  LEFT JOIN out USING (id, side, revision, node, subject, day)
)
SELECT id, side, revision, count(*), count(failed_day), count_if(failed_day IS NULL AND NOT is_open),
  count_if(failed_day IS NULL AND is_open), len(list_distinct(flatten(list(failures)))), median(failed_day - day)
FROM ended GROUP BY id, side, revision
"""
_EXPOSURE = "SELECT id, count(DISTINCT failure) FROM exposed GROUP BY id"


class LimitKey(NamedTuple):
    """A measurement of a check on the nodes of a spec. Several keys may share an id: then they share their limits."""

    id: int
    check: str
    name: str
    unit: str
    spec: str


class JudgedBound(NamedTuple):
    """A value of a limit to judge. `revision` tells several values of the same limit apart."""

    id: int
    side: LimitSide
    revision: int
    value: float


Records = dict[tuple[int, LimitSide, int], LimitRecord]
"""By id, side and revision."""


def declare_bounds(database: DuckDBPyConnection, keys: Iterable[LimitKey], bounds: Iterable[JudgedBound]) -> None:
    """Make the tables of the bounds to judge, see `open_limit_tables`."""
    database.execute(_TABLES)
    database.execute(_MACRO)
    for table, rows in (("keys", list(keys)), ("bounds", list(bounds))):
        appender = database.appender(table)
        appender.append_rows(rows)
        appender.flush()
    database.execute(_OWN_FAULTS)


def count_alarms(database: DuckDBPyConnection, today: int) -> Records:
    """Return what the declared bounds showed. Nodes are read in blocks, as a limit may fire on every day."""
    nodes = [row[0] for row in database.execute(_NODES).fetchall()]
    for start in range(0, len(nodes), NODES_IN_BLOCK):
        block = nodes[start : start + NODES_IN_BLOCK]
        database.execute(_ALARMS, {"low": block[0], "high": block[-1], "quiet": QUIET_DAYS})
    database.execute(_EXPOSED)
    return _read_records(database, today)


def _read_records(database: DuckDBPyConnection, today: int) -> Records:
    failures = dict(database.execute(_EXPOSURE).fetchall())
    rows = database.execute(_RECORDS, {"horizon": HORIZON_DAYS, "today": today}).fetchall()
    fired = {(row[0], row[1], row[2]): row[3:] for row in rows}
    bounds = database.execute("SELECT id, side, revision FROM bounds").fetchall()
    quiet = (0, 0, 0, 0, 0, None)
    return {key: LimitRecord(failures.get(key[0], 0), *fired.get(key, quiet)) for key in bounds}
