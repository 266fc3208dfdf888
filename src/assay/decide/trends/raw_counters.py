"""Counters: what only grows between resets is judged by its growth in a day.

A counter falls when its device restarts, is exchanged, or has no more bits. A fall says nothing about growth, and
neither does a counter that stands at the end of its bits. Where growth is rare, that of a week counts. Compared is
log(1 + growth / scale), as the noise of a busy part is larger than that of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from assay.decide.trends.days import quote_text, run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NODES_TO_TELL, NODES_AT_ONCE = 200, 200
LEAST_RISES, RISES_PER_FALL = 10, 5
"""What a measurement shows that is taken for a counter; a gauge falls about as often as it rises."""
OFTEN = 0.9
RARE_DAYS = 7
RARE_SCALE = 10
"""Below this share of days with growth, the growth of the last week counts, and ten times the usual one is the scale:
its noise is that of few events, while the noise of a busy counter is a share of its growth."""
BIT_ENDS = tuple(float(2**bits - 1) for bits in (4, 8, 16, 32, 64))
"""Where counters stop: those of InfiniBand ports have 4, 8, 16, 32 or 64 bits."""
OF_A_DAY = "/d"
"""Ends the unit of a growth."""
_READ = """
CREATE OR REPLACE TEMP TABLE counter_days AS
WITH counts AS (
  SELECT series, name, unit, m.day, arg_max(value, time_s) AS value, coalesce(i.segment, 0) AS segment,
    bool_or(at_least IS NOT NULL OR at_most IS NOT NULL) AS is_limited
  FROM measurements m LEFT JOIN intervals i
    ON i.node = m.node AND i.subject = m.subject AND m.day BETWEEN i.first_day AND i.last_day
  WHERE isfinite(value) AND list_contains($nodes, m.node) AND m.day <= $until
    AND (len($names) = 0 OR list_contains($names, name))
  GROUP BY ALL
), looked AS (
  SELECT *, lag(value) OVER w AS before, lead(value) OVER w AS next
  FROM counts WINDOW w AS (PARTITION BY series, segment ORDER BY day)
)
SELECT * EXCLUDE (before, next), lag(value) OVER w AS read_before, day - lag(day) OVER w AS days
FROM looked WHERE next IS NULL OR before IS NULL OR next < before
  OR value BETWEEN least(before, next) AND greatest(before, next)
WINDOW w AS (PARTITION BY series, segment ORDER BY day)
"""
"""Without wild values, which lie outside of the one before and the one after, where these do not fall."""
_TELL = """
SELECT name, unit, bool_or(is_limited), count(*) FILTER (value > read_before), count(*) FILTER (value < read_before),
  count(days), coalesce(median((value - read_before) / days) FILTER (value > read_before), 0)
FROM counter_days GROUP BY name, unit ORDER BY name, unit
"""
_GROW = """
INSERT INTO counted
WITH grown AS (
  SELECT series, segment, day, scale, is_weekly, days,
    CASE WHEN value > read_before OR (value = read_before AND NOT list_contains($ends, value))
         THEN value - read_before END AS growth
  FROM counter_days JOIN counters USING (name, unit)
), rates AS (
  SELECT series, day, scale, CASE WHEN is_weekly
    THEN sum(growth) OVER w / sum(CASE WHEN growth IS NOT NULL THEN days END) OVER w ELSE growth / days END AS rate
  FROM grown WINDOW w AS (PARTITION BY series, segment ORDER BY day RANGE BETWEEN $before PRECEDING AND CURRENT ROW)
)
SELECT series, day, ln(1 + rate / scale) FROM rates WHERE rate IS NOT NULL
"""
_SERIES = """
CREATE OR REPLACE TEMP TABLE counted_series AS
SELECT series, any_value(node) AS node, any_value(subject) AS subject, any_value(name) AS name,
  any_value(unit) AS unit, any_value(scale) AS scale,
  CASE WHEN any_value(at_most) IS NULL AND any_value(at_least) IS NOT NULL THEN '-inf'::DOUBLE END AS at_least,
  CASE WHEN any_value(at_most) IS NOT NULL OR any_value(at_least) IS NULL THEN 'inf'::DOUBLE END AS at_most
FROM measurements JOIN counters USING (name, unit) GROUP BY series
"""
"""A limit of the counter is none of its growth, and only tells the side on which it is worse: else more is worse."""
_PLAIN = """
CREATE OR REPLACE TEMP VIEW plain_measurements AS
SELECT time_s, day, date, node, subject, name, value, unit, at_least, at_most, series, raw, NULL::DOUBLE AS scale
FROM memory.main.measurements WHERE {others}
"""
_COUNTED = """
CREATE OR REPLACE TEMP VIEW counted_measurements AS
SELECT day * 86400.0 + 43200 AS time_s, day, DATE '1970-01-01' + day AS date, node, subject, name, value,
  unit || {per} AS unit, at_least, at_most, series, series AS raw, scale
FROM counted JOIN counted_series USING (series)
"""


@dataclass(frozen=True, slots=True)
class RawCounter:
    """A measurement that counts. `usual`: its growth on a day with growth. `share`: of days with growth."""

    name: str
    unit: str
    usual: float
    share: float

    @property
    def is_weekly(self) -> bool:
        """Whether growth is so rare that a week's counts."""
        return self.share < OFTEN

    @property
    def scale(self) -> float:
        """Up to which growth in a day the distance is nearly in proportion to it, and beyond to its logarithm."""
        usual = (self.usual or 1.0) * max(self.share, 1 / RARE_DAYS)
        return usual * RARE_SCALE if self.is_weekly else usual


def judge_counters(
    database: DuckDBPyConnection, today: int, declared: Sequence[str], recognise: bool
) -> list[RawCounter]:
    """Let the view `measurements` show the growth of counters, and return these. The table `intervals` is there.

    It has the rows of `plain_measurements`, and of `counted_measurements` if there are counters.

    `declared`: names, or patterns of names. `recognise`: look for others in the values of the days before today.
    """
    counters = list(_tell_counters(database, today, declared, recognise)) if declared or recognise else []
    if counters:
        _count(database, counters, today)
    listed = ", ".join(f"({quote_text(counter.name)}, {quote_text(counter.unit)})" for counter in counters)
    others = f"(name, unit) NOT IN ({listed})" if counters else "true"
    database.execute(_PLAIN.format(others=others))
    if counters:
        database.execute(_COUNTED.format(per=quote_text(OF_A_DAY)))
    both = " UNION ALL FROM counted_measurements" if counters else ""
    database.execute(f"CREATE OR REPLACE TEMP VIEW measurements AS FROM plain_measurements{both}")
    return counters


def _tell_counters(
    database: DuckDBPyConnection, today: int, declared: Sequence[str], recognise: bool
) -> Iterator[RawCounter]:
    nodes = _list_nodes(database, "measurements")
    some = nodes[:: max(1, len(nodes) // NODES_TO_TELL)]
    run(database, _READ, {"nodes": some, "until": today - 1, "names": []})
    for name, unit, is_limited, rises, falls, steps, usual in database.execute(_TELL).fetchall():
        is_declared = any(fnmatchcase(name, pattern) for pattern in declared)
        if is_declared or (recognise and is_counter(rises, falls, is_limited)):
            yield RawCounter(name, unit, usual, rises / steps if steps else 0.0)


def is_counter(rises: int, falls: int, is_limited: bool) -> bool:
    """Whether what rose and fell so often is a counter.

    What has a limit and never falls is wear, such as that of a drive: its level counts.
    """
    return rises >= LEAST_RISES and rises >= RISES_PER_FALL * falls and (falls > 0 or not is_limited)


def _count(database: DuckDBPyConnection, counters: Sequence[RawCounter], today: int) -> None:
    """Make the tables `counted` and `counted_series`, a block of nodes at a time."""
    database.execute("CREATE OR REPLACE TEMP TABLE counters (name VARCHAR, unit VARCHAR, scale DOUBLE, is_weekly BOOL)")
    rows = [(counter.name, counter.unit, counter.scale, counter.is_weekly) for counter in counters]
    database.executemany("INSERT INTO counters VALUES (?, ?, ?, ?)", rows)
    database.execute("CREATE OR REPLACE TEMP TABLE counted (series UBIGINT, day INT, value DOUBLE)")
    database.execute(_SERIES)
    nodes = _list_nodes(database, "counted_series")
    names = [counter.name for counter in counters]
    for start in range(0, len(nodes), NODES_AT_ONCE):
        run(database, _READ, {"nodes": nodes[start : start + NODES_AT_ONCE], "until": today, "names": names})
        run(database, _GROW, {"ends": list(BIT_ENDS), "before": RARE_DAYS - 1})


def _list_nodes(database: DuckDBPyConnection, table: str) -> list[str]:
    return [row[0] for row in database.table(table).project("node").distinct().order("node").fetchall()]
