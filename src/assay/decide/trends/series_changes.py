"""How much each series has changed. A series is one measurement of one part.

Change: the median of its last 7 days minus its own median of the days 60 to 21 before, both apart from its peers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assay.decide.trends.compared_days import (
    COMPARED,
    DAYS_SEEN,
    LEAST_OWN,
    LEAST_RECENT,
    OWN,
    RECENT,
    list_compared_days,
)
from assay.decide.trends.day_columns import DayColumns
from assay.decide.trends.day_queries import run
from assay.decide.trends.peer_courses import make_courses
from assay.decide.trends.recent_middles import LATER, count_values, write_counts, write_middles

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TABLES = """
CREATE OR REPLACE TEMP TABLE changes (anchor INT, place UBIGINT, measure UBIGINT, segment INT, side TINYINT,
  change DOUBLE, change_before DOUBLE, change_two DOUBLE);
CREATE OR REPLACE TEMP TABLE resting (anchor INT, place UBIGINT, measure UBIGINT, segment INT, side TINYINT)
"""
"""`side`: 1 for an upper limit, -1 for a lower one, 0 for both or none."""
_JUDGED = """
CREATE OR REPLACE TEMP TABLE judged AS
WITH apart AS (
  SELECT r.anchor, r.place, r.measure, p.segment, side, {apart}
  FROM ({read}) r JOIN (FROM placed WHERE block = $block) p ON p.anchor = r.anchor AND p.place = r.place
    JOIN courses c ON c.anchor = r.anchor AND c.pattern = p.pattern AND c.measure = r.measure
), enough AS (
  SELECT *, least({values}) = greatest({values}) AS rests FROM apart
  WHERE {own_count} >= $least_own AND {recent_count} >= $least_recent
)
SELECT anchor, place, measure, segment, side, rests, CASE WHEN NOT rests THEN list_median([{own}]) END AS own, {later}
FROM enough
"""
"""One plan for all anchors, as the plan costs more than the answer where there are few series."""
_READ = "SELECT {anchor} AS anchor, s.place, s.measure, coalesce({sides}) AS side, {values} FROM {source}"
_KEYS = "anchor, place, measure, segment, side"
_CHANGES = "INSERT INTO changes SELECT {keys}, {changes} FROM {middles}"
_RESTS = "INSERT INTO resting SELECT anchor, place, measure, segment, side FROM judged WHERE rests"
_PEERS_AT_REST = """
INSERT INTO changes
SELECT anchor, place, measure, segment, side, 0, 0, 0 FROM resting
SEMI JOIN (SELECT DISTINCT anchor, measure FROM changes) USING (anchor, measure)
"""
_RESTING = "DELETE FROM resting WHERE (anchor, measure) IN (SELECT DISTINCT (anchor, measure) FROM changes)"
"""What rests is a peer of what moves."""


def measure_changes(
    database: DuckDBPyConnection, anchors: Sequence[int], columns: Sequence[DayColumns], blocks: int
) -> None:
    """Make `changes` as of days from the first blocks, and `resting`: series of what never moves.

    The days are folded, and the table `middles` has theirs.
    """
    database.execute(_TABLES)
    make_courses(database, anchors, columns, blocks)
    asked: dict[str, object] = {"least_own": LEAST_OWN, "least_recent": LEAST_RECENT}
    for one in columns:
        for block in range(blocks):
            read = [query for anchor in anchors if (query := _write_read(one, block, anchor))]
            for step in (_write_query(read), _write_changes(), _RESTS) if read else ():
                run(database, step, asked | {"block": block})
    for step in (_PEERS_AT_REST, _RESTING):
        run(database, step, asked)


def _write_read(columns: DayColumns, block: int, anchor: int) -> str:
    """Return the query that reads the values of a block as of a day; "" if they cannot suffice."""
    days = list_compared_days(anchor)
    source, sheets = columns.write_source(block, days)
    recent = [days[at] for at in reversed(RECENT[0]) if days[at] in sheets]
    if not recent or not any(days[at] in sheets for at in OWN):
        return ""
    sides = ", ".join(f"{sheets[day]}.s{day}" for day in recent)
    values = (f"{sheets[day]}.v{day}" if day in sheets else "NULL::DOUBLE" for day in days)
    named = ", ".join(f"{value} AS v{at}" for at, value in enumerate(values))
    return _READ.format(anchor=anchor, sides=sides, values=named, source=source)


def _write_query(read: Sequence[str]) -> str:
    """Return the query that judges what was read."""
    parts = {
        "read": " UNION ALL ".join(read),
        "apart": ", ".join(f"v{at} - m{at} AS v{at}" for at in COMPARED),
        "values": _list_values(COMPARED),
        "own": _list_values(OWN),
        "own_count": count_values(OWN),
        "recent_count": count_values(RECENT[0]),
        "later": _list_values(LATER),
    }
    return _JUDGED.format(**parts)


def _write_changes() -> str:
    """Return the query that adds what moves: the rest of the days is compared for these series alone."""
    moving = write_middles(f"({write_counts('(FROM judged WHERE NOT rests)')})", f"{_KEYS}, own")
    changes = ", ".join(f"nearest(low_{seen}, high_{seen}, own) - own" for seen in range(DAYS_SEEN))
    return _CHANGES.format(keys=_KEYS, changes=changes, middles=moving)


def _list_values(places: Iterable[int]) -> str:
    return ", ".join(f"v{at}" for at in places)
