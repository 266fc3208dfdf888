"""Compares today, and days of past weeks, with the days before: what changed, and what was said then.

The median over parts of the same kind and firmware is taken off each day: it is what a season, or new firmware, does to
all of them. Past weeks are judged on some of the nodes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assay.decide.trends.change_scores import score_changes
from assay.decide.trends.day_columns import DayColumns
from assay.decide.trends.days import (
    HORIZON_DAYS,
    LEAST_RECENT,
    RECENT_DAYS,
    list_compared_days,
    make_dates,
    quote_text,
    run,
)
from assay.decide.trends.fleet_tables import DRAWS, FIRST_DAY, LAST_DAY
from assay.decide.trends.raw_counters import RawCounter
from assay.decide.trends.series import measure_changes, read_values

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class DayQuestion(NamedTuple):
    """What is asked: how today compares, and the days of past `weeks`, and which measurements are counters."""

    today: int
    weeks: Sequence[int]
    counters: Sequence[RawCounter]


NODES_FOR_MIDDLE = 128
"""The median of a day is that of about so many nodes of each SKU and firmware: 64 to 128 where there are more."""
_DRAWN = """
CREATE OR REPLACE TEMP TABLE drawn AS
WITH shares AS (
  SELECT alike, draws_of(count(DISTINCT node), $wanted) AS share FROM intervals WHERE first_day <= $today GROUP BY alike
)
SELECT node, place, first_day, last_day, alike FROM intervals JOIN shares USING (alike)
WHERE (hash(node) >> 44)::BIGINT < share AND first_day <= last_day AND first_day <= $today
UNION ALL
SELECT node, place, $ever, $never, hash('', '') FROM places ANTI JOIN intervals USING (place)
WHERE (hash(node) >> 44)::BIGINT < draws_of((SELECT nodes FROM fleet_size), $wanted)
"""
"""Of places of which nobody knows who held them, all parts are alike."""
_MACRO = """
CREATE OR REPLACE TEMP MACRO draws_of(nodes, wanted) AS
  $draws >> greatest(0, ceil(log2(greatest(1, nodes) / wanted)))::INT
"""
"""By powers of two, so that the same nodes are drawn from day to day."""
_MIDDLES = """
INSERT INTO middles
SELECT hash(measure, alike) AS kind, day, median(value) AS middle
FROM (
  SELECT hash(name, unit) AS measure, hash(node, subject) AS place, day, value FROM {source}
  WHERE list_contains($dates, date) AND node IN (SELECT node FROM drawn) AND isfinite(value)
) JOIN drawn USING (place) WHERE day >= first_day AND day <= last_day GROUP BY ALL
"""


def draw_nodes(database: DuckDBPyConnection, today: int) -> None:
    """Make the table `drawn`: whose values make the middles, from when to when."""
    database.execute(_MACRO.replace("$draws", str(DRAWS)))
    asked: dict[str, object] = {"today": today, "wanted": NODES_FOR_MIDDLE, "ever": FIRST_DAY, "never": LAST_DAY}
    run(database, _DRAWN, asked)


def measure_middles(database: DuckDBPyConnection, sources: Iterable[str], days: Collection[int]) -> None:
    """Make the table `middles` of days, from these views of measurements; the table `drawn` is there."""
    database.execute("CREATE OR REPLACE TEMP TABLE middles (kind UBIGINT, day INT, middle DOUBLE)")
    for source in sources:
        run(database, _MIDDLES.format(source=source), {"dates": make_dates(days)})


LEAST_KEPT = 6.0
"""Lower scores of past weeks are not kept: no threshold is below that."""
BEYOND_DAYS, BEYOND_OF = 3, 5
"""A limit is crossed on the third day beyond it within five."""
_HIGH = """
CREATE OR REPLACE TEMP TABLE named AS
WITH found AS (
  SELECT p.node, p.subject, m.name, m.unit, h.* EXCLUDE (alike), s.measure, change - peers_change AS apart,
    peers, z, worse, worse_before, worse_two, s.anchor AS day
  FROM scores s JOIN held_at h USING (anchor, place, segment) JOIN places p USING (place)
    JOIN measures m USING (measure)
  WHERE greatest(worse, worse_before, worse_two) >= $least
), racks AS (SELECT DISTINCT anchor, measure, rack FROM found WHERE rack <> ''), moved AS (
  SELECT anchor, measure, rack FROM scores JOIN held_at USING (anchor, place, segment)
    SEMI JOIN racks USING (anchor, measure, rack)
  GROUP BY ALL HAVING count(*) > 4 AND median(worse) >= $least / 2
)
SELECT found.*, moved.rack IS NOT NULL AS is_of_rack FROM found LEFT JOIN moved USING (anchor, measure, rack)
"""
"""`is_of_rack`: its whole rack moved."""
_PAST = """
CREATE OR REPLACE TEMP TABLE past_scores AS
WITH later AS (
  SELECT n.anchor, n.place, n.measure, n.segment, count(DISTINCT m.day) AS days_later
  FROM measurements m JOIN valued n USING (node, subject, name, unit) LEFT JOIN intervals i
    ON i.node = m.node AND i.subject = m.subject AND m.day BETWEEN i.first_day AND i.last_day
  WHERE m.node IN ({nodes}) AND coalesce(i.segment, 0) = n.segment AND isfinite(m.value)
    AND list_contains($dates, m.date) AND m.day > n.anchor AND m.day <= n.anchor + $horizon
  GROUP BY ALL
)
SELECT v.*, coalesce(days_later, 0) AS days_later
FROM valued v LEFT JOIN later USING (anchor, place, measure, segment)
ORDER BY anchor, worse DESC, node, subject, name
"""
"""Nodes are named in the text, as DuckDB then passes over what the files say of others."""
_BEYOND = """
CREATE OR REPLACE TEMP TABLE past_beyond AS
SELECT node, subject, name, unit, list(DISTINCT day ORDER BY day) AS days
FROM plain_measurements
WHERE list_contains($dates, date) AND (hash(node) >> 44)::INT < (SELECT draws FROM fleet_size)
  AND (value > at_most OR value < at_least)
GROUP BY ALL HAVING count(DISTINCT day) >= $beyond ORDER BY ALL
"""
"""The growth of a counter has no limit that it could cross."""


def score_past_days(
    database: DuckDBPyConnection, asked: DayQuestion, columns: Sequence[DayColumns], blocks: int
) -> None:
    """Make `past_scores`: the high scores of past days, from the first blocks, and how many days have values later."""
    measure_changes(database, asked.weeks, columns, blocks)
    score_changes(database)
    run(database, _HIGH, {"least": LEAST_KEPT})
    read_values(database)
    later = range(min(asked.weeks, default=asked.today) + 1, asked.today)
    nodes = [row[0] for row in database.execute("SELECT DISTINCT node FROM valued ORDER BY node").fetchall()]
    query = _PAST.format(nodes=", ".join(map(quote_text, nodes or [""])))
    run(database, query, {"dates": make_dates(later), "horizon": HORIZON_DAYS})


def list_days_beyond(database: DuckDBPyConnection, asked: DayQuestion) -> None:
    """Make `past_beyond`: on which days series were beyond their limits since past weeks, if on three or more."""
    days = range(min(asked.weeks, default=asked.today) - BEYOND_OF, asked.today)
    run(database, _BEYOND, {"dates": make_dates(days), "beyond": BEYOND_DAYS})


def find_crossing(days: Sequence[int], after: int) -> int | None:
    """Return the first day after another on which a series is beyond its limit for the third time within five days."""
    last = BEYOND_DAYS - 1
    crossings = (days[at + last] for at in range(len(days) - last) if days[at + last] - days[at] < BEYOND_OF)
    return next((day for day in crossings if day > after), None)


SAMPLED_NODES = 1000
"""Past weeks only set a threshold and show how the rule fared, so at most so many nodes tell enough: half as many at
least, by powers of two, so that they are the same from day to day."""
SERIES_IN_BLOCK = 250_000
"""More cost memory, fewer cost time: each block opens the columns of all days."""
_SIZE = """
SELECT count(DISTINCT node), count(*) / greatest(1, count(DISTINCT day)) FROM measurements
WHERE list_contains($dates, date)
"""
_FLEET_SIZE = "CREATE OR REPLACE TEMP TABLE fleet_size AS SELECT $nodes AS nodes, $draws AS draws"
VALUES_IN_MEMORY = 100_000
"""The days of a fleet with more values on each are folded into a file, which lasts as long as the question."""


class _FleetSize(NamedTuple):
    """Nodes, and values on a day, of the last days."""

    nodes: int
    values: float

    @property
    def thinning(self) -> int:
        """One node in 2^thinning is looked at in past weeks."""
        return _count_halvings(self.nodes, SAMPLED_NODES)

    @property
    def bits(self) -> int:
        """Into 2^bits blocks the series are split."""
        return _count_halvings(self.values, SERIES_IN_BLOCK)


@contextmanager
def compare_days(database: DuckDBPyConnection, asked: DayQuestion) -> Iterator[None]:
    """Have the scores of today, and `past_scores` and `past_beyond` of past weeks; the names of series end with it."""
    size = _measure_size(database, asked.today)
    with _attach_folded(database, size.values):
        _read_days(database, asked, _list_columns(database, asked.counters, size), size)
        yield


@contextmanager
def _attach_folded(database: DuckDBPyConnection, values: float) -> Iterator[None]:
    """Have a place for folded days. `values`: how many a day has."""
    with tempfile.TemporaryDirectory() as folder:
        where = ":memory:" if values <= VALUES_IN_MEMORY else str(Path(folder) / "folded.duckdb")
        database.execute(f"ATTACH {quote_text(where)} AS folded")
        try:
            yield
        finally:
            database.execute("DETACH folded")


def _list_columns(database: DuckDBPyConnection, counters: Sequence[RawCounter], size: _FleetSize) -> list[DayColumns]:
    """Return the columns of what counts, and of all others."""
    measured = [row[0] for row in database.execute("SELECT day FROM history_days").fetchall()]
    columns = []
    for kind in ("plain", "counted") if counters else ("plain",):
        database.execute(f"CREATE SCHEMA folded.{kind}")
        bits = max(size.bits, size.thinning)  # fewer would mix the nodes of past weeks with others
        columns.append(DayColumns(database, f"folded.{kind}", f"{kind}_measurements", measured, bits, size.values))
    return columns


def _measure_size(database: DuckDBPyConnection, today: int) -> _FleetSize:
    dates = make_dates(range(today - RECENT_DAYS + LEAST_RECENT - 1, today))
    size = _FleetSize._make(database.execute(_SIZE, {"dates": dates}).fetchall()[0])
    run(database, _FLEET_SIZE, {"nodes": size.nodes, "draws": DRAWS >> size.thinning})
    return size


def _read_days(
    database: DuckDBPyConnection, asked: DayQuestion, columns: Sequence[DayColumns], size: _FleetSize
) -> None:
    """Fold the days, then judge past weeks on the first blocks, and today on all."""
    blocks = columns[0].blocks
    sampled = blocks >> size.thinning
    past = {day for week in asked.weeks for day in list_compared_days(week)}
    days = {*list_compared_days(asked.today)}
    for column in columns:
        column.fold(days | (past if sampled == blocks else set()), blocks)
        column.fold(past, sampled)
    for table in ("places", "measures"):
        union = " UNION ".join(f"FROM {column.schema}.{table}" for column in columns)
        database.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {union}")
    draw_nodes(database, asked.today)
    measure_middles(database, [column.source for column in columns], past | days)
    score_past_days(database, asked, columns, sampled)
    list_days_beyond(database, asked)
    measure_changes(database, [asked.today], columns, blocks)
    score_changes(database)


def _count_halvings(size: float, most: int) -> int:
    """Return how often a size is halved until it is at most so much."""
    halvings = 0
    while size > most << halvings:
        halvings += 1
    return halvings
