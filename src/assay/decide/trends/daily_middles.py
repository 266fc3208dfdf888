"""The median of each day over parts of the same kind and firmware: what a season, or new firmware, does to all."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from assay.decide.trends.day_queries import make_dates, run
from assay.decide.trends.part_intervals import DRAWS, FIRST_DAY, LAST_DAY

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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
INSERT INTO {table}
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


def measure_middles(database: DuckDBPyConnection, table: str, source: str, days: Collection[int]) -> None:
    """Add the middles of days to a table (kind, day, middle). `source`: the view of the measurements."""
    if days:
        run(database, _MIDDLES.format(table=table, source=source), {"dates": make_dates(days)})
