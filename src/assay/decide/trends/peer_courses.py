"""What the peers of each series read on each day: the course that its own values are compared with.

From each day's value the median of its peers on that day is subtracted, so seasons and steps by new firmware go. On
days that belong to nobody, or to an earlier part, there is nothing to compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.decide.trends.compared_days import COMPARED, OWN_FROM, OWN_TO, list_compared_days
from assay.decide.trends.day_columns import DayColumns
from assay.decide.trends.day_queries import run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PLACED = """
CREATE OR REPLACE TEMP TABLE placed AS
WITH anchors AS (SELECT unnest($anchors)::INT AS anchor), held AS (
  SELECT anchor, place, max(segment) AS segment, any_value((hash(node) >> $shift)::INT) AS block
  FROM intervals JOIN anchors ON first_day <= anchor - $own_to
  WHERE first_day <= last_day AND (hash(node) >> $shift)::INT < $blocks GROUP BY anchor, place
), cut AS (
  SELECT anchor, place, segment, block, alike, greatest(first_day, anchor - $longest) AS first_day,
    least(last_day, anchor) AS last_day
  FROM intervals JOIN held USING (place, segment)
)
SELECT anchor, place, any_value(segment) AS segment, any_value(block) AS block,
  hash(sum(hash(first_day, last_day, alike))) AS pattern
FROM cut WHERE first_day <= last_day GROUP BY anchor, place
UNION ALL
SELECT anchor, place, 0, (hash(node) >> $shift)::INT, 0::UBIGINT
FROM places CROSS JOIN anchors ANTI JOIN intervals USING (place) WHERE (hash(node) >> $shift)::INT < $blocks
ORDER BY block
"""
"""Only one part of a place can have been there for both windows. Of a place of which nobody knows who held it, the part
is thought to be the same. `pattern`: places with the same one have the same peers on the same days. In order of blocks,
so that a block reads its own places."""
_COURSES = """
CREATE OR REPLACE TEMP TABLE courses AS
WITH compared AS (SELECT unnest($anchors) AS anchor, unnest($nths) AS nth, unnest($days) AS day), patterns AS (
  SELECT anchor, pattern, min(place) AS place FROM placed GROUP BY anchor, pattern
), alikes AS (
  SELECT anchor, pattern, nth, day, arg_min(coalesce(i.alike, hash('', '')), coalesce(first_day, 0)) AS alike
  FROM patterns JOIN placed USING (anchor, pattern, place) LEFT JOIN intervals i USING (place, segment)
    JOIN compared USING (anchor)
  WHERE i.alike IS NULL OR day BETWEEN first_day AND last_day GROUP BY anchor, pattern, nth, day
), used AS ({used}), collected AS (
  SELECT anchor, pattern, measure, map(list(nth), list(middle)) AS course
  FROM used JOIN alikes USING (anchor, pattern) JOIN middles ON kind = hash(measure, alike) AND middles.day = alikes.day
  GROUP BY anchor, pattern, measure
)
SELECT anchor, pattern, measure, {columns} FROM collected
"""
"""One place of a pattern tells who was alike on which day. A map costs less to plan than a column for each day."""
_USED = "SELECT DISTINCT anchor, pattern, measure FROM {table} JOIN placed USING (place) WHERE {table}.block < $blocks"


def make_courses(
    database: DuckDBPyConnection, anchors: Sequence[int], columns: Sequence[DayColumns], blocks: int
) -> None:
    """Make `placed` (anchor, place, segment, block, pattern) and `courses` (anchor, pattern, measure, `m0`, …).

    The tables `places`, `intervals` and `middles` are there.
    """
    asked: dict[str, object] = {"anchors": [*anchors], "blocks": blocks, "shift": columns[0].shift}
    run(database, _PLACED, asked | {"own_to": OWN_TO, "longest": OWN_FROM})
    days = [(anchor, at, day) for anchor in anchors for at, day in enumerate(list_compared_days(anchor))]
    asked |= {name: [row[at] for row in days] for at, name in enumerate(("anchors", "nths", "days"))}
    middles = ", ".join(f"course[{at}] AS m{at}" for at in COMPARED)
    used = " UNION ".join(_USED.format(table=f"{one.schema}.series") for one in columns)
    run(database, _COURSES.replace("{used}", used).replace("{columns}", middles), asked)
