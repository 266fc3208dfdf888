"""What the rule saw in past weeks, on some of the nodes: its high scores, and the limits that were crossed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from assay.trends.peers.change_scores import score_changes
from assay.trends.peers.day_queries import DAY_0, run
from assay.trends.peers.series_values import read_values

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LEAST_KEPT = 6.0
"""Lower scores of past weeks are not kept: no threshold is below that."""
HORIZON_DAYS = 30
"""A warning is right if a limit is crossed, or the part fails, within so many days."""
BEYOND_DAYS, BEYOND_OF = 3, 5
"""A limit is crossed on the third day beyond it within five."""
_HIGH = """
CREATE OR REPLACE TEMP TABLE named AS
SELECT p.node, p.subject, m.name, m.unit, h.* EXCLUDE (alike), s.measure, change - peers_change AS apart,
  peers, z, worse, worse_before, worse_two
FROM scores s JOIN held_at h USING (anchor, place, segment) JOIN places p USING (place) JOIN measures m USING (measure)
WHERE greatest(worse, worse_before, worse_two) >= $least
"""
_KEEP = """
CREATE TEMP TABLE kept_past AS
WITH racks AS (SELECT DISTINCT anchor, measure, rack FROM valued WHERE rack <> ''), moved AS (
  SELECT anchor, measure, rack FROM scores JOIN held_at USING (anchor, place, segment)
    SEMI JOIN racks USING (anchor, measure, rack)
  GROUP BY ALL HAVING count(*) > 4 AND median(worse) >= $least / 2
)
SELECT v.*, moved.rack IS NOT NULL AS is_of_rack
FROM valued v LEFT JOIN moved USING (anchor, measure, rack) ORDER BY anchor, v.worse DESC, node, subject, name
"""
"""`is_of_rack`: its whole rack moved."""
_BEYOND = """
CREATE TEMP TABLE kept_beyond AS
SELECT node, subject, name, unit, list(DISTINCT day ORDER BY day) AS days
FROM measurements
WHERE date >= $first AND date < $today AND (hash(node) >> 44)::INT < (SELECT draws FROM sampled)
  AND (value > at_most OR value < at_least)
GROUP BY ALL HAVING count(DISTINCT day) >= $beyond ORDER BY ALL
"""
KEPT_TABLES = ("kept_past", "kept_beyond")


def keep_past_weeks(database: DuckDBPyConnection, today: int, weeks: Sequence[int]) -> None:
    """Make `kept_past` and `kept_beyond` of the changes of past `weeks` (days)."""
    score_changes(database)
    run(database, _HIGH, {"least": LEAST_KEPT})
    read_values(database, today - 1, HORIZON_DAYS)
    run(database, _KEEP, {"least": LEAST_KEPT})
    first, last = min(weeks, default=today) - BEYOND_OF, today
    dates = {"first": DAY_0 + timedelta(days=first), "today": DAY_0 + timedelta(days=last)}
    run(database, _BEYOND, {**dates, "beyond": BEYOND_DAYS})


def find_crossing(days: Sequence[int], after: int) -> int | None:
    """Return the first day after another on which a series is beyond its limit for the third time within five days."""
    crossings = (days[at + BEYOND_DAYS - 1] for at in range(len(days) - BEYOND_DAYS + 1)
                 if days[at + BEYOND_DAYS - 1] - days[at] < BEYOND_OF)  # fmt: skip
    return next((day for day in crossings if day > after), None)
