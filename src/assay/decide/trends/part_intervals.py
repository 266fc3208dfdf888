"""The intervals of holders in whole days, and the nodes by which series are drawn.

The day on which a holder begins or ends belongs to nobody: its values may be of the part before, or of a repair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DRAWS = 1 << 20
"""A node is drawn by the first 20 of the 64 bits of its name's hash."""
SHARED_TRAITS = ("rack", "position", "pdu", "switch", "batch", "sku", "firmware", "driver")
"""What parts may share."""
FIRST_DAY, LAST_DAY = -1_000_000_000, 1_000_000_000
_INTERVALS = """
CREATE OR REPLACE TEMP TABLE intervals AS
WITH hashed AS (
  SELECT *, hash(node, subject) AS place, hash(sku, firmware) AS alike, hash(serial, rack, position) AS held
  FROM holders
), ordered AS (
  SELECT *, lag(held) OVER w AS held_before, lag(alike) OVER w AS alike_before
  FROM hashed WINDOW w AS (PARTITION BY place ORDER BY since_s)
), marked AS (
  SELECT * EXCLUDE (held, held_before, alike_before),
    held_before IS NULL OR held <> held_before OR alike = alike_before AS begins
  FROM ordered
)
SELECT * EXCLUDE (begins), sum(begins::INT) OVER (PARTITION BY place ORDER BY since_s)::INT AS segment,
  coalesce(ceil(since_s / 86400)::INT, $first) AS first_day,
  coalesce(floor(until_s / 86400)::INT - 1, $last) AS last_day
FROM marked
"""
"""`segment`: a series goes on through new firmware. It begins anew with another part, at another place, and after a
repair. `alike`: parts of the same kind and firmware."""


def make_intervals(database: DuckDBPyConnection) -> None:
    """Make the table `intervals` from `holders`."""
    database.execute(_INTERVALS, {"first": FIRST_DAY, "last": LAST_DAY})
