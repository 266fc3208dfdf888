"""The median of each day over parts of the same kind and firmware: what a season, or new firmware, does to all."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from assay.trends.peers.day_queries import DAY_0, run
from assay.trends.peers.part_intervals import DRAWS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NODES_FOR_MIDDLE = 100
"""The median of a day is that of about so many nodes of each SKU and firmware."""
_DRAWN = """
CREATE OR REPLACE TEMP TABLE drawn AS
WITH held AS (SELECT * FROM intervals WHERE first_day <= $last AND last_day >= $first), shares AS (
  SELECT alike, ceil($scale * $wanted / count(DISTINCT node))::BIGINT AS share FROM held GROUP BY alike
)
SELECT node, place, first_day, last_day, alike FROM held JOIN shares USING (alike)
WHERE (hash(node) >> 44)::BIGINT < share
UNION ALL
SELECT node, hash(node, subject), $first, $last, hash('', '')
FROM (
  SELECT DISTINCT node, subject FROM measurements
  WHERE (hash(node) >> 44)::BIGINT < $others AND date > $last_date - 7 AND date <= $last_date
) ANTI JOIN (SELECT * FROM intervals WHERE first_day <= $last) USING (node, subject)
"""
"""Of places of which nobody knows who held them, all parts are alike."""
_MIDDLES = """
CREATE OR REPLACE TEMP TABLE middles AS
WITH read AS MATERIALIZED (
  SELECT hash(name, unit) AS measure, hash(node, subject) AS place, day, value FROM measurements
  WHERE node IN (SELECT unnest($nodes)) AND date >= $first_date AND date <= $last_date AND isfinite(value)
)
SELECT hash(measure, alike) AS kind, day, median(value) AS middle
FROM read JOIN drawn USING (place) WHERE day >= first_day AND day <= last_day GROUP BY ALL
"""


def measure_middles(database: DuckDBPyConnection, first: int, last: int, nodes: int) -> None:
    """Make the table `middles` (kind, day, middle) for the days `first` to `last` of a fleet of so many nodes."""
    days: dict[str, object] = {"first": first, "last": last}
    days |= {"first_date": DAY_0 + timedelta(days=first), "last_date": DAY_0 + timedelta(days=last)}
    days |= {"scale": DRAWS, "wanted": NODES_FOR_MIDDLE, "others": DRAWS * NODES_FOR_MIDDLE // max(1, nodes)}
    run(database, _DRAWN, days)
    drawn = [row[0] for row in database.execute("SELECT DISTINCT node FROM drawn ORDER BY node").fetchall()]
    run(database, _MIDDLES, {**days, "nodes": drawn})
