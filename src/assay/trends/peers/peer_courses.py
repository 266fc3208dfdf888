"""What the peers of each series read on each day: the course that its own values are compared with.

From each day's value the median of its peers on that day is subtracted, so seasons and steps by new firmware go. On
days that belong to nobody, or to an earlier part, there is nothing to compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.trends.days.compared_days import COMPARED_AGO, OWN_TO
from assay.trends.days.day_columns import DayColumns
from assay.trends.days.day_queries import run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PLACED = """
CREATE OR REPLACE TEMP TABLE placed AS
WITH anchors AS (SELECT unnest($anchors)::INT AS anchor), held AS (
  SELECT anchor, place, max(segment) AS segment FROM intervals JOIN anchors ON first_day <= anchor - $own_to
  WHERE first_day <= last_day AND (hash(node) >> $shift)::INT < $blocks GROUP BY anchor, place
), cut AS (
  SELECT anchor, place, segment, alike, greatest(first_day, anchor - $longest) AS first_day,
    least(last_day, anchor) AS last_day
  FROM intervals JOIN held USING (place, segment)
), spans AS (
  SELECT anchor, place, any_value(segment) AS segment,
    list({'first_day': first_day, 'last_day': last_day, 'alike': alike} ORDER BY first_day) AS spans
  FROM cut WHERE first_day <= last_day GROUP BY anchor, place
)
SELECT anchor, place, segment, hash(spans) AS pattern, spans FROM spans
UNION ALL
SELECT anchor, place, 0, 0::UBIGINT, [{'first_day': anchor - $longest, 'last_day': anchor, 'alike': hash('', '')}]
FROM places CROSS JOIN anchors ANTI JOIN intervals USING (place) WHERE (hash(node) >> $shift)::INT < $blocks
"""
"""Only one part of a place can have been there for both windows. Of a place of which nobody knows who held it, the part
is thought to be the same. `pattern`: places with the same one have the same peers on the same days."""
_COURSES = """
CREATE OR REPLACE TEMP TABLE courses AS
WITH patterns AS (SELECT anchor, pattern, any_value(spans) AS spans FROM placed GROUP BY anchor, pattern), alikes AS (
  SELECT anchor, pattern, ago, any_value(span.alike) AS alike
  FROM (SELECT anchor, pattern, unnest(spans) AS span FROM patterns) JOIN (SELECT unnest($ago) AS ago)
    ON anchor - ago BETWEEN span.first_day AND span.last_day
  GROUP BY anchor, pattern, ago
), used AS ({used}), collected AS (
  SELECT anchor, pattern, measure, map(list(ago), list(middle)) AS course
  FROM used JOIN alikes USING (anchor, pattern) JOIN middles ON kind = hash(measure, alike) AND day = anchor - ago
  GROUP BY anchor, pattern, measure
)
SELECT anchor, pattern, measure, {columns} FROM collected
"""
"""A map costs less to plan than a column of its own for each day."""
_USED = "SELECT DISTINCT anchor, pattern, measure FROM {table} JOIN placed USING (place) WHERE block < $blocks"


def make_courses(
    database: DuckDBPyConnection, anchors: Sequence[int], columns: Sequence[DayColumns], blocks: int
) -> None:
    """Make `placed` (anchor, place, segment, pattern) and `courses` (anchor, pattern, measure, `m7` for 7 days before).

    The tables `places`, `intervals` and `middles` are there.
    """
    asked: dict[str, object] = {"anchors": [*anchors], "blocks": blocks, "shift": columns[0].shift}
    asked |= {"own_to": OWN_TO, "longest": COMPARED_AGO[0], "ago": COMPARED_AGO}
    run(database, _PLACED, asked)
    middles = ", ".join(f"course[{ago}] AS m{ago}" for ago in COMPARED_AGO)
    used = " UNION ".join(_USED.format(table=f"{one.schema}.series") for one in columns)
    run(database, _COURSES.replace("{used}", used).replace("{columns}", middles), asked)
