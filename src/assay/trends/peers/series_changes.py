"""How much each series has changed. A series is one measurement of one part.

Change: the median of its last 7 days minus its own median of the days 60 to 21 before, both apart from its peers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assay.trends.days.compared_days import (
    DAYS_SEEN,
    LEAST_OWN,
    LEAST_RECENT,
    list_compared_days,
    list_own_days,
    list_recent_days,
)
from assay.trends.days.day_columns import DayColumns
from assay.trends.days.day_queries import run
from assay.trends.peers.peer_courses import make_courses

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TABLES = """
CREATE OR REPLACE TEMP TABLE changes (anchor INT, place UBIGINT, measure UBIGINT, segment INT, side TINYINT,
  change DOUBLE, change_before DOUBLE, change_two DOUBLE);
CREATE OR REPLACE TEMP TABLE resting (place UBIGINT, measure UBIGINT, segment INT, side TINYINT)
"""
"""`side`: 1 for an upper limit, -1 for a lower one, 0 for both or none."""
_JUDGED = """
CREATE OR REPLACE TEMP TABLE judged AS
WITH apart AS (
  SELECT s.place, s.measure, p.segment, coalesce({sides}) AS side, {apart}
  FROM {source} JOIN placed p ON p.place = s.place JOIN courses c ON c.pattern = p.pattern AND c.measure = s.measure
), enough AS (
  SELECT *, least({values}) = greatest({values}) AS rests FROM apart
  WHERE list_count([{own}]) >= $least_own AND list_count([{recent_0}]) >= $least_recent
), middles AS (
  SELECT place, measure, segment, side, rests, CASE WHEN NOT rests THEN list_median([{own}]) END AS own, {sorted}
  FROM enough
)
SELECT place, measure, segment, side, rests, {changes} FROM middles
"""
_SORTED = "CASE WHEN NOT rests THEN list_sort([{recent}], 'ASC', 'NULLS LAST') END AS sorted_{ago}"
_CHANGE = """
nearest([sorted_{ago}[(list_count(sorted_{ago}) + 1) // 2], sorted_{ago}[list_count(sorted_{ago}) // 2 + 1]], own) - own
"""
_KEEP = (
    """
INSERT INTO changes
SELECT $anchor, place, measure, segment, side, change_0, change_1, change_2 FROM judged WHERE NOT rests
""",
    "INSERT INTO resting SELECT place, measure, segment, side FROM judged WHERE rests",
)
_PEERS_AT_REST = """
INSERT INTO changes
SELECT $anchor, place, measure, segment, side, 0, 0, 0 FROM resting
SEMI JOIN (SELECT DISTINCT measure FROM changes) USING (measure)
"""
_RESTING = "DELETE FROM resting WHERE measure IN (SELECT DISTINCT measure FROM changes)"
"""What rests is a peer of what moves."""


def measure_changes(database: DuckDBPyConnection, anchor: int, columns: Sequence[DayColumns], blocks: int) -> None:
    """Make `changes` as of a day from the first blocks, and `resting`: series of what never moves.

    The days are folded, and the table `middles` has theirs.
    """
    database.execute(_TABLES)
    days = list_compared_days(anchor)
    make_courses(database, anchor, days, [f"{one.schema}.series" for one in columns])
    asked: dict[str, object] = {"anchor": anchor, "least_own": LEAST_OWN, "least_recent": LEAST_RECENT}
    for one in columns:
        for block in range(blocks):
            source, found = one.write_source(block, days)
            if not {*found} & {*list_own_days(anchor)} or not {*found} & {*list_recent_days(anchor)}:
                continue
            for step in (_write_query(anchor, source, found), *_KEEP):
                run(database, step, asked)
    for step in (_PEERS_AT_REST, _RESTING):
        run(database, step, asked)


def _write_query(anchor: int, source: str, days: Sequence[int]) -> str:
    """Return the query that judges a block. `days`: those with values."""
    parts = {
        "source": source,
        "sides": ", ".join(f"t{day}.side" for day in reversed(days) if day in list_recent_days(anchor)),
        "apart": ", ".join(f"t{day}.value - m{day} AS v{day}" for day in days),
        "values": ", ".join(f"v{day}" for day in days),
        "own": _list_values(days, list_own_days(anchor)),
        "recent_0": _list_values(days, list_recent_days(anchor)),
        "sorted": ", ".join(
            _SORTED.format(ago=ago, recent=_list_values(days, list_recent_days(anchor, ago)))
            for ago in range(DAYS_SEEN)
        ),
        "changes": ", ".join(f"{_CHANGE.format(ago=ago)} AS change_{ago}" for ago in range(DAYS_SEEN)),
    }
    return _JUDGED.format(**parts)


def _list_values(days: Iterable[int], window: range) -> str:
    return ", ".join(f"v{day}" for day in days if day in window) or "NULL::DOUBLE"
