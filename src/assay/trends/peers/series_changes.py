"""How much each series has changed. A series is one measurement of one part.

From each day's value the median of its peers on that day is subtracted, so seasons and steps by new firmware go.
Change: the median of its last 7 days minus its own median of the days 60 to 21 before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

RECENT_DAYS, OWN_FROM, OWN_TO = 7, 60, 21
RATE_DAYS = 14
"""The rate is of two windows of the recent length, so many days apart."""
LEAST_RECENT, LEAST_OWN = 4, 14
"""Days with values that a series needs in each window."""
NODES_IN_BLOCK = 200
NODES_FOR_MIDDLE = 100
"""The median of a day is that of about so many nodes of each SKU and firmware."""
SAMPLED_NODES = 1000
"""Past weeks only set a threshold, so the series of about so many nodes tell enough."""
DRAWS = 1 << 20
"""A series is drawn by the first 20 of the 64 bits of its name's hash."""
_TABLES = (
    """
CREATE TEMP TABLE names (series UBIGINT, node VARCHAR, subject VARCHAR, name VARCHAR, unit VARCHAR, segment BIGINT,
  at_least DOUBLE, at_most DOUBLE)
""",
    """
CREATE TEMP TABLE changes (series UBIGINT, anchor INT, change DOUBLE, change_before DOUBLE, change_two DOUBLE)
""",
)
_SEGMENTS = """
CREATE TEMP TABLE segments AS
WITH ordered AS (
  SELECT *, lag(serial) OVER w AS serial_before, lag(rack) OVER w AS rack_before,
    lag(position) OVER w AS position_before, lag(sku) OVER w AS sku_before, lag(firmware) OVER w AS firmware_before
  FROM holders WINDOW w AS (PARTITION BY node, subject ORDER BY since_s)
), marked AS (
  SELECT *, serial_before IS NULL OR serial <> serial_before OR rack <> rack_before OR position <> position_before
    OR (sku = sku_before AND firmware = firmware_before) AS begins
  FROM ordered
)
SELECT node, subject, serial, sku, firmware, rack, position, since_s, coalesce(until_s, 'infinity'::DOUBLE) AS until_s,
  sum(begins::INT) OVER (PARTITION BY node, subject ORDER BY since_s) AS segment
FROM marked
"""
"""A series goes on through new firmware. It begins anew with another part, at another place, and after a repair."""
_SHARES = """
CREATE TEMP TABLE shares AS
SELECT sku, firmware, ceil($scale * $wanted / count(DISTINCT node))::BIGINT AS share FROM segments GROUP BY ALL
"""
_MIDDLES = """
CREATE TEMP TABLE middles AS
SELECT hash(name, unit, coalesce(s.sku, ''), coalesce(s.firmware, '')) AS kind, (time_s // 86400)::INT AS day,
  median(value) AS middle
FROM measurements m LEFT JOIN segments s
  ON s.node = m.node AND s.subject = m.subject AND m.time_s >= s.since_s AND m.time_s < s.until_s
LEFT JOIN shares USING (sku, firmware)
WHERE isfinite(value) AND time_s >= $first AND (hash(m.node) >> 44)::BIGINT < coalesce(share, $others)
GROUP BY ALL
"""
_MOVING_KINDS = """
CREATE TEMP TABLE moving_kinds AS SELECT kind FROM middles GROUP BY kind HAVING min(middle) <> max(middle)
"""
_NAMES = """
INSERT INTO names
SELECT hash(m.node, m.subject, m.name, m.unit, coalesce(s.segment, 0)) AS series, m.node, m.subject, m.name, m.unit,
  coalesce(s.segment, 0), arg_max(m.at_least, m.time_s), arg_max(m.at_most, m.time_s)
FROM measurements m LEFT JOIN segments s
  ON s.node = m.node AND s.subject = m.subject AND m.time_s >= s.since_s AND m.time_s < s.until_s
WHERE isfinite(m.value) AND m.time_s >= ($today - $recent + 1) * 86400.0
GROUP BY ALL
"""
_ROWS = """
CREATE OR REPLACE TEMP TABLE block AS
SELECT hash(m.node, m.subject, m.name, m.unit, coalesce(s.segment, 0)) AS series, (m.time_s // 86400)::INT AS day,
  hash(m.name, m.unit, coalesce(s.sku, ''), coalesce(s.firmware, '')) AS kind, m.value
FROM measurements m LEFT JOIN segments s
  ON s.node = m.node AND s.subject = m.subject AND m.time_s >= s.since_s AND m.time_s < s.until_s
WHERE m.node >= $low AND m.node <= $high AND isfinite(m.value) AND m.time_s >= $first
"""
_STEADY = """
CREATE OR REPLACE TEMP TABLE steady AS
SELECT series FROM (
  SELECT series, any_value(kind) AS kind, min(value) AS low, max(value) AS high FROM block GROUP BY series
) ANTI JOIN moving_kinds USING (kind) WHERE low = high
"""
_MOVING = """
CREATE OR REPLACE TEMP TABLE moving AS
SELECT series, day, value - middle AS value
FROM (
  SELECT series, day, max(kind) AS kind, of_day(value) AS value FROM block ANTI JOIN steady USING (series)
  GROUP BY series, day
) JOIN middles USING (kind, day)
"""
_CHANGES = """
INSERT INTO changes
SELECT series, $anchor, nearest(recent, own) - own, nearest(day_before, own) - own, nearest(two_before, own) - own
FROM (SELECT series,
  quantile_disc(value, [0.5, 0.55]) FILTER (day > $anchor - $recent) AS recent,
  quantile_disc(value, [0.5, 0.55]) FILTER (day > $anchor - 1 - $recent AND day <= $anchor - 1) AS day_before,
  quantile_disc(value, [0.5, 0.55]) FILTER (day > $anchor - 2 - $recent AND day <= $anchor - 2) AS two_before,
  median(value) FILTER (day <= $anchor - $own_to) AS own
FROM moving WHERE day > $anchor - $own_from AND day <= $anchor AND (series >> 44)::INT < $draws
GROUP BY series
HAVING count(*) FILTER (day > $anchor - $recent) >= $least_recent
  AND count(*) FILTER (day <= $anchor - $own_to) >= $least_own)
UNION ALL
SELECT series, $anchor, 0, 0, 0 FROM (
  SELECT series, bit_or(1::UBIGINT << ($anchor - day)) AS days FROM block SEMI JOIN steady USING (series)
  WHERE day > $anchor - $own_from AND day <= $anchor AND (series >> 44)::INT < $draws
  GROUP BY series
)
WHERE bit_count(days & ((1::UBIGINT << $recent) - 1)) >= $least_recent AND bit_count(days >> $own_to) >= $least_own
"""
"""What never changes is a peer too, and costs no median."""
_MACROS = """
CREATE TEMP MACRO of_day(value) AS
  CASE WHEN count(*) > 2 THEN (sum(value) - max(value) - min(value)) / (count(*) - 2) ELSE sum(value) / count(*) END;
CREATE TEMP MACRO nearest(middles, own) AS
  CASE WHEN abs(middles[1] - own) <= abs(middles[2] - own) THEN middles[1] ELSE middles[2] END
"""
"""`of_day`: the mean without the largest and the smallest value. `nearest`: of the two middle values of an even number
the one nearer to `own`, so that half of the days, which may be wild, is not enough."""


def measure_changes(database: DuckDBPyConnection, today: int, weeks: Sequence[int]) -> None:
    """Fill the tables `segments`, `names` and `changes`: of all series at `today`, of a sample at past `weeks` (days).

    Nodes are read in blocks.
    """
    database.execute(_MACROS)
    database.execute(_SEGMENTS)
    for table in _TABLES:
        database.execute(table)
    nodes = [row[0] for row in database.execute("SELECT DISTINCT node FROM measurements ORDER BY node").fetchall()]
    first = (min([today, *weeks]) - OWN_FROM) * 86_400.0
    database.execute(_SHARES, {"scale": DRAWS, "wanted": NODES_FOR_MIDDLE})
    others = DRAWS * NODES_FOR_MIDDLE // max(1, len(nodes))
    database.execute(_MIDDLES, {"first": first, "others": others})
    database.execute(_MOVING_KINDS)
    database.execute(_NAMES, {"today": today, "recent": RECENT_DAYS})
    windows = {"recent": RECENT_DAYS, "own_to": OWN_TO, "own_from": OWN_FROM}
    windows |= {"least_recent": LEAST_RECENT, "least_own": LEAST_OWN}
    for start in range(0, len(nodes), NODES_IN_BLOCK):
        block = nodes[start : start + NODES_IN_BLOCK]
        database.execute(_ROWS, {"low": block[0], "high": block[-1], "first": first})
        for step in (_STEADY, _MOVING):
            database.execute(step)
        for anchor in (today, *weeks):
            share = 1.0 if anchor == today else min(1.0, SAMPLED_NODES / len(nodes))
            database.execute(_CHANGES, {"anchor": anchor, "draws": int(share * DRAWS), **windows})
