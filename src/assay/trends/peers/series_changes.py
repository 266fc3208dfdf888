"""How much each series has changed. A series is one measurement of one part.

From each day's value the median of its peers on that day is subtracted, so seasons and steps by new firmware go.
Change: the median of its last 7 days minus its own median of the days 60 to 21 before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trends.peers.daily_middles import measure_middles
from assay.trends.peers.day_queries import make_dates, run
from assay.trends.peers.past_days import CHANGES, LEAST_RECENT

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TODAYS = """
CREATE OR REPLACE TEMP TABLE todays AS
SELECT series, of_day(value) AS value, arg_max(side_of(at_least, at_most), time_s) AS side
FROM measurements WHERE list_contains($dates, date) AND isfinite(value) GROUP BY series
"""
_HELD_TODAY = """
CREATE OR REPLACE TEMP TABLE held_today AS
SELECT place, segment, alike FROM intervals WHERE $today BETWEEN first_day AND last_day
UNION ALL
SELECT place, 0, hash('', '') FROM places ANTI JOIN intervals USING (place)
"""
_CHANGES = """
INSERT INTO changes
WITH days AS (
  SELECT k.*, t.side AS side_today,
    t.value - middle AS today, len(last) + (t.value - middle IS NOT NULL)::INT AS days
  FROM kept_moving k LEFT JOIN todays t USING (series) LEFT JOIN held_today USING (place, segment)
    LEFT JOIN middles ON t.series IS NOT NULL AND kind = hash(measure, alike)
)
SELECT $today, place, measure, segment, coalesce(side_today, side),
  nearest([place_in(last, today, (days + 1) // 2), place_in(last, today, days // 2 + 1)], own) - own,
  change_before, change_two
FROM days WHERE days >= $least
"""
_STEADY = """
CREATE OR REPLACE TEMP TABLE unmoved AS
SELECT k.* EXCLUDE (series, days, side), coalesce(t.side, k.side) AS side
FROM kept_steady k LEFT JOIN todays t USING (series) LEFT JOIN held_today h USING (place, segment)
WHERE days + (t.series IS NOT NULL AND h.alike IS NOT NULL)::INT >= $least
"""
_PEERS_AT_REST = """
INSERT INTO changes
SELECT $today, place, measure, segment, side, 0, 0, 0 FROM unmoved
SEMI JOIN (SELECT DISTINCT measure FROM kept_moving) USING (measure)
"""
_RESTING = """
CREATE OR REPLACE TEMP TABLE resting AS
SELECT measure, place, segment FROM unmoved ANTI JOIN (SELECT DISTINCT measure FROM kept_moving) USING (measure)
"""
"""What rests is a peer of what moves. One value of four days or more moves no middle, so today's does not count."""


def add_today(database: DuckDBPyConnection, today: int) -> None:
    """Make `changes` of today from the kept tables and today's values, and `resting`: series of what never moves."""
    nodes = database.execute("SELECT count(DISTINCT node) FROM places").fetchall()[0][0]
    measure_middles(database, today, today, nodes)
    database.execute(f"CREATE OR REPLACE TEMP TABLE changes ({CHANGES})")
    for step in (_TODAYS, _HELD_TODAY, _CHANGES, _STEADY, _PEERS_AT_REST, _RESTING):
        run(database, step, {"today": today, "least": LEAST_RECENT, "dates": make_dates([today])})
