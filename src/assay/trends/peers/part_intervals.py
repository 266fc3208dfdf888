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
WITH ordered AS (
  SELECT *, lag(serial) OVER w AS serial_before, lag(rack) OVER w AS rack_before,
    lag(position) OVER w AS position_before, lag(sku) OVER w AS sku_before, lag(firmware) OVER w AS firmware_before
  FROM holders WINDOW w AS (PARTITION BY node, subject ORDER BY since_s)
), marked AS (
  SELECT *, serial_before IS NULL OR serial <> serial_before OR rack <> rack_before OR position <> position_before
    OR (sku = sku_before AND firmware = firmware_before) AS begins
  FROM ordered
)
SELECT * EXCLUDE (serial_before, rack_before, position_before, sku_before, firmware_before, begins),
  sum(begins::INT) OVER (PARTITION BY node, subject ORDER BY since_s)::INT AS segment, hash(node, subject) AS place,
  hash(sku, firmware) AS alike, coalesce(ceil(since_s / 86400)::INT, $first) AS first_day,
  coalesce(floor(until_s / 86400)::INT - 1, $last) AS last_day
FROM marked ORDER BY node, subject, since_s
"""
"""`segment`: a series goes on through new firmware. It begins anew with another part, at another place, and after a
repair. `alike`: parts of the same kind and firmware."""


def make_intervals(database: DuckDBPyConnection) -> None:
    """Make the table `intervals` from `holders`."""
    database.execute(_INTERVALS, {"first": FIRST_DAY, "last": LAST_DAY})
