"""What the rule saw in past weeks, on some of the nodes: its high scores, and the limits that were crossed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from assay.decide.trends.change_scores import score_changes
from assay.decide.trends.compared_days import HORIZON_DAYS
from assay.decide.trends.day_cache import find_missing, note_keys
from assay.decide.trends.day_columns import DayColumns
from assay.decide.trends.day_queries import make_dates, quote_text, run
from assay.decide.trends.series_changes import measure_changes
from assay.decide.trends.series_values import read_values

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LEAST_KEPT = 6.0
"""Lower scores of past weeks are not kept: no threshold is below that."""
BEYOND_DAYS, BEYOND_OF = 3, 5
"""A limit is crossed on the third day beyond it within five."""
_HIGH = """
CREATE OR REPLACE TEMP TABLE high AS
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
_PARTS = """node VARCHAR, subject VARCHAR, name VARCHAR, unit VARCHAR, anchor INT, place UBIGINT, segment INT,
  serial VARCHAR, rack VARCHAR, position VARCHAR, pdu VARCHAR, switch VARCHAR, batch VARCHAR, sku VARCHAR,
  firmware VARCHAR, driver VARCHAR, measure UBIGINT, apart DOUBLE, peers BIGINT, z DOUBLE, worse DOUBLE,
  worse_before DOUBLE, worse_two DOUBLE, day INT, is_of_rack BOOL"""
_VALUED = f"{_PARTS}, at_least DOUBLE, at_most DOUBLE, own DOUBLE, earlier DOUBLE, recent DOUBLE, peers_change DOUBLE"
_LATER_COLUMNS = "day INT, anchor INT, place UBIGINT, measure UBIGINT, segment INT"
_PAIRS = HORIZON_DAYS + 1
_LATER = """
INSERT INTO kept.later
SELECT n.anchor * $pairs + m.day - n.anchor AS day, n.anchor, n.place, n.measure, n.segment
FROM measurements m JOIN kept.high n USING (node, subject, name, unit) LEFT JOIN intervals i
  ON i.node = m.node AND i.subject = m.subject AND m.day BETWEEN i.first_day AND i.last_day
WHERE m.node IN ({nodes}) AND coalesce(i.segment, 0) = n.segment AND isfinite(m.value)
  AND list_contains($dates, m.date) AND m.day > n.anchor
  AND list_contains($missing, n.anchor * $pairs + m.day - n.anchor)
GROUP BY ALL
"""
"""Here `day` stands for a past day and a later one, see `_number`."""
_ALL_PAST = """
CREATE OR REPLACE TEMP TABLE kept_past AS
SELECT p.*, coalesce(days_later, 0) AS days_later
FROM kept.past p LEFT JOIN (SELECT * EXCLUDE (day), count(*) AS days_later FROM kept.later GROUP BY ALL)
  USING (anchor, place, measure, segment)
ORDER BY anchor, worse DESC, node, subject, name
"""
_BEYOND = """
INSERT INTO kept.beyond
SELECT DISTINCT node, subject, name, unit, day FROM plain_measurements
WHERE list_contains($dates, date) AND (hash(node) >> 44)::INT < (SELECT draws FROM fleet_size)
  AND (value > at_most OR value < at_least)
"""
_ALL_BEYOND = """
CREATE OR REPLACE TEMP TABLE kept_beyond AS
SELECT node, subject, name, unit, list(DISTINCT day ORDER BY day) AS days
FROM kept.beyond GROUP BY ALL HAVING count(DISTINCT day) >= $beyond ORDER BY ALL
"""
"""The growth of a counter has no limit that it could cross."""


def keep_high_scores(
    database: DuckDBPyConnection, columns: Sequence[DayColumns], blocks: int, keys: Mapping[int, str]
) -> None:
    """Have `kept.high` of the past days of these keys, from the first blocks."""
    missing = find_missing(database, "high", _PARTS, keys)
    if missing:
        measure_changes(database, missing, columns, blocks)
        score_changes(database)
        run(database, _HIGH, {"least": LEAST_KEPT})
        database.execute("INSERT INTO kept.high BY NAME FROM high")
        note_keys(database, "high", {anchor: keys[anchor] for anchor in missing})


def keep_values(database: DuckDBPyConnection, keys: Mapping[int, str], later: Mapping[tuple[int, int], str]) -> None:
    """Make `kept_past`: the high scores of past days, with their values and how many days have some later.

    `keys`: of the past days. `later`: of each of them with each later day that counts.
    """
    missing = find_missing(database, "past", _VALUED, keys)
    if missing:
        query = "CREATE OR REPLACE TEMP TABLE named AS FROM kept.high WHERE list_contains($missing, day)"
        run(database, query, {"missing": missing})
        read_values(database)
        database.execute("INSERT INTO kept.past BY NAME FROM valued")
        note_keys(database, "past", {day: keys[day] for day in missing})
    _keep_later(database, later)
    database.execute(_ALL_PAST)


def _keep_later(database: DuckDBPyConnection, later: Mapping[tuple[int, int], str]) -> None:
    """Have `kept.later`: on which later days the series of `kept.high` have values of the same part."""
    keys, days = {}, {}
    for (anchor, day), key in later.items():
        number = _number(anchor, day)
        keys[number], days[number] = key, day
    missing = find_missing(database, "later", _LATER_COLUMNS, keys)
    nodes = [row[0] for row in database.execute("SELECT DISTINCT node FROM kept.high ORDER BY node").fetchall()]
    if missing and nodes:
        dates = make_dates({days[number] for number in missing})
        asked: dict[str, object] = {"dates": dates, "missing": missing, "pairs": _PAIRS}
        run(database, _LATER.format(nodes=", ".join(map(quote_text, nodes))), asked)
    note_keys(database, "later", {number: keys[number] for number in missing})


def _number(anchor: int, day: int) -> int:
    """Return a number of its own for a past day and one of the 30 days after it."""
    return anchor * _PAIRS + day - anchor


def keep_days_beyond(database: DuckDBPyConnection, keys: Mapping[int, str]) -> None:
    """Make `kept_beyond`: on which of these days series were beyond their limits, if on three or more."""
    columns = "node VARCHAR, subject VARCHAR, name VARCHAR, unit VARCHAR, day INT"
    missing = find_missing(database, "beyond", columns, keys)
    _read_beyond(database, missing)
    note_keys(database, "beyond", {day: keys[day] for day in missing})
    run(database, _ALL_BEYOND, {"beyond": BEYOND_DAYS})


def find_crossing(days: Sequence[int], after: int) -> int | None:
    """Return the first day after another on which a series is beyond its limit for the third time within five days."""
    crossings = (days[at + BEYOND_DAYS - 1] for at in range(len(days) - BEYOND_DAYS + 1)
                 if days[at + BEYOND_DAYS - 1] - days[at] < BEYOND_OF)  # fmt: skip
    return next((day for day in crossings if day > after), None)


def _read_beyond(database: DuckDBPyConnection, days: Collection[int]) -> None:
    if days:
        run(database, _BEYOND, {"dates": make_dates(days)})
