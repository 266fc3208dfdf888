"""What the peers of each series read on each day: the course that its own values are compared with.

From each day's value the median of its peers on that day is subtracted, so seasons and steps by new firmware go. On
days that belong to nobody, or to an earlier part, there is nothing to compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assay.trends.days.compared_days import OWN_TO
from assay.trends.days.day_queries import run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PLACED = """
CREATE OR REPLACE TEMP TABLE placed AS
WITH held AS (
  SELECT place, segment, greatest(first_day, $first) AS first_day, least(last_day, $anchor) AS last_day, alike
  FROM intervals SEMI JOIN (
    SELECT place, max(segment) AS segment FROM intervals
    WHERE first_day <= $anchor - $own_to AND first_day <= last_day GROUP BY place
  ) USING (place, segment)
), spans AS (
  SELECT place, any_value(segment) AS segment,
    list({'first_day': first_day, 'last_day': last_day, 'alike': alike} ORDER BY first_day) AS spans
  FROM held WHERE first_day <= last_day GROUP BY place
)
SELECT place, segment, hash(spans) AS pattern, spans FROM spans
UNION ALL
SELECT place, 0, 0::UBIGINT, [{'first_day': $first, 'last_day': $anchor, 'alike': hash('', '')}]
FROM places ANTI JOIN intervals USING (place)
"""
"""Only one part of a place can have been there for both windows. Of a place of which nobody knows who held it, the part
is thought to be the same. `pattern`: places with the same one have the same peers on the same days."""
_COURSES = """
CREATE OR REPLACE TEMP TABLE courses AS
WITH patterns AS (SELECT pattern, any_value(spans) AS spans FROM placed GROUP BY pattern), alikes AS (
  SELECT pattern, day, span.alike AS alike
  FROM (SELECT pattern, unnest(spans) AS span FROM patterns) JOIN (SELECT unnest($days) AS day)
    ON day BETWEEN span.first_day AND span.last_day
), used AS ({used})
SELECT used.pattern, used.measure, {columns}
FROM used JOIN alikes USING (pattern) JOIN middles ON kind = hash(used.measure, alike) AND middles.day = alikes.day
GROUP BY ALL
"""
_USED = "SELECT DISTINCT pattern, measure FROM {table} JOIN placed USING (place)"


def make_courses(database: DuckDBPyConnection, anchor: int, days: Sequence[int], series: Iterable[str]) -> None:
    """Make `placed` (place, segment, pattern) and `courses` (pattern, measure, `m20440` for a day) as of a day.

    `series`: the tables of series. The tables `places`, `intervals` and `middles` are there.
    """
    asked: dict[str, object] = {"anchor": anchor, "first": min(days), "own_to": OWN_TO, "days": list(days)}
    run(database, _PLACED, asked)
    columns = ", ".join(f"any_value(middle) FILTER (middles.day = {day}) AS m{day}" for day in days)
    used = " UNION ".join(_USED.format(table=table) for table in series)
    run(database, _COURSES.replace("{used}", used).replace("{columns}", columns), asked)
