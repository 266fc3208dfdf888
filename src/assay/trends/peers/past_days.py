"""What the days before today say of each series: its own middle, its last days, and its changes in past weeks.

Nodes are read in blocks. What never changes is a peer too, and costs no median.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from assay.trends.peers.daily_middles import measure_middles
from assay.trends.peers.day_queries import make_dates, run
from assay.trends.peers.part_intervals import DRAWS, FIRST_DAY, LAST_DAY

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

RECENT_DAYS, OWN_FROM, OWN_TO = 7, 60, 21
LEAST_RECENT, LEAST_OWN = 4, 14
"""Days with values that a series needs in each window."""
ROWS_IN_BLOCK = 8_000_000
"""Values that are read at once. Smaller blocks cost time: each opens the files of all days, and reads what lies around
its nodes. Larger ones cost memory."""
SAMPLED_NODES = 1000
"""Past weeks only set a threshold and show how the rule fared, so about so many nodes tell enough."""
KEPT_TABLES = {
    "kept_moving": "series UBIGINT, place UBIGINT, measure UBIGINT, segment INT, side TINYINT, last DOUBLE[], "
    "own DOUBLE, change_before DOUBLE, change_two DOUBLE",
    "kept_steady": "series UBIGINT, place UBIGINT, measure UBIGINT, segment INT, side TINYINT, days TINYINT",
    "places": "place UBIGINT, node VARCHAR, subject VARCHAR",
    "sampled": "draws INT",
    "measures": "measure UBIGINT, name VARCHAR, unit VARCHAR",
}
"""`last`: the last days' values without today's, as far from the middle of the peers as they were, the smallest first.
`side`: 1 for an upper limit, -1 for a lower one, 0 for both or none. `sampled`: by which draws the nodes of past weeks
were chosen."""
CHANGES = (
    "anchor INT, place UBIGINT, measure UBIGINT, segment INT, side TINYINT, change DOUBLE, "
    "change_before DOUBLE, change_two DOUBLE"
)
_NODES = """
SELECT node, (hash(node) >> 44)::INT AS draw, count(*) / len($named_dates) AS values
FROM measurements WHERE list_contains($named_dates, date) GROUP BY node ORDER BY node
"""
_BLOCK = """
CREATE OR REPLACE TEMP TABLE block AS
SELECT series, day, value FROM measurements
WHERE node >= $low AND node <= $high AND isfinite(value) AND list_contains($dates, date)
UNION ALL
SELECT series, day, value FROM measurements
WHERE node >= $low AND node <= $high AND isfinite(value) AND list_contains($other_dates, date)
  AND (hash(node) >> 44)::INT < $draws
"""
"""The days between the windows, and older ones, are only read of the nodes whose past weeks count."""
_SEEN = """
CREATE OR REPLACE TEMP TABLE seen AS
SELECT series, min(value) AS low, max(value) AS high, count(*) AS values,
  coalesce(bit_or(1::UBIGINT << (($today - day) % 64)::UBIGINT) FILTER (day > $today - 64), 0::UBIGINT) AS days,
  coalesce(bit_or(1::UBIGINT << (($today - day) % 64)::UBIGINT) FILTER (day <= $today - 64), 0::UBIGINT) AS days_before
FROM block GROUP BY series
"""
_HAS_SEVERAL = "SELECT count(*) > 0 FROM seen WHERE values > bit_count(days) + bit_count(days_before)"
_FOLD = "CREATE OR REPLACE TEMP TABLE block AS SELECT series, day, of_day(value) AS value FROM block GROUP BY ALL"
_NAMED = """
CREATE OR REPLACE TEMP TABLE named AS
SELECT series, any_value(node) AS node, any_value(subject) AS subject, any_value(name) AS name, any_value(unit) AS unit,
  arg_max(side_of(at_least, at_most), day) AS side
FROM measurements WHERE node >= $low AND node <= $high AND isfinite(value) AND list_contains($named_dates, date)
GROUP BY series
"""
_HELD = """
CREATE OR REPLACE TEMP TABLE held AS
WITH joined AS (
  SELECT n.series, hash(n.node, n.subject) AS place, hash(n.name, n.unit) AS measure, n.side,
    coalesce(i.segment, 0) AS segment, hash(hash(n.name, n.unit), coalesce(i.alike, hash('', ''))) AS kind,
    coalesce(i.first_day, $ever) AS first_day, coalesce(i.last_day, $never) AS last_day,
    (hash(n.node) >> 44)::INT < $draws AS is_sampled, low <> high AS varies,
    days::HUGEINT + (days_before::HUGEINT << 64::HUGEINT) AS days
  FROM named n JOIN seen USING (series)
    LEFT JOIN (
      FROM intervals WHERE node >= $low AND node <= $high AND first_day < $today AND last_day >= $first
        AND first_day <= last_day
    ) i ON i.place = hash(n.node, n.subject)
)
SELECT joined.*, hash(series, segment) AS id,
  bool_or(varies OR moving_kinds.kind IS NOT NULL) OVER (PARTITION BY series) AS moves
FROM joined LEFT JOIN moving_kinds USING (kind)
"""
_MOVING = """
CREATE OR REPLACE TEMP TABLE moving AS
SELECT h.id, h.is_sampled, b.day, b.value - m.middle AS value
FROM block b JOIN (SELECT * FROM held WHERE moves) h
    ON b.series = h.series AND b.day BETWEEN h.first_day AND h.last_day
  JOIN middles m ON m.kind = h.kind AND m.day = b.day
"""
_STEADY = """
CREATE OR REPLACE TEMP TABLE steady AS
SELECT id, any_value(series) AS series, any_value(place) AS place, any_value(measure) AS measure,
  any_value(segment) AS segment, any_value(side) AS side, any_value(is_sampled) AS is_sampled,
  bit_or(days & bits($today - last_day, $today - first_day)) AS days
FROM held WHERE NOT moves GROUP BY id
"""
_SERIES = """
CREATE OR REPLACE TEMP TABLE series_of_block AS
SELECT DISTINCT id, series, place, measure, segment, side FROM held WHERE moves
"""
_KEEP_MOVING = """
INSERT INTO kept_moving
SELECT series, place, measure, segment, side, last, own, nearest(day_before, own) - own, nearest(two_before, own) - own
FROM (
  SELECT id, list_sort(list(value) FILTER (day > $today - $recent)) AS last,
    quantile_disc(value, [0.5, 0.55]) FILTER (day >= $today - $recent) AS day_before,
    quantile_disc(value, [0.5, 0.55]) FILTER (day >= $today - $recent - 1 AND day < $today - 1) AS two_before,
    median(value) FILTER (is_own($today, day, $own_from, $own_to)) AS own
  FROM moving WHERE day > $today - $own_from GROUP BY id
  HAVING count(*) FILTER (day > $today - $recent) >= $least_recent - 1
    AND count(*) FILTER (is_own($today, day, $own_from, $own_to)) >= $least_own
) JOIN series_of_block USING (id)
"""
_KEEP_STEADY = """
INSERT INTO kept_steady
SELECT series, place, measure, segment, side, bit_count(days & bits(1, $recent - 1))::TINYINT AS days
FROM steady
WHERE bit_count(days & bits(1, $recent - 1)) >= $least_recent - 1
  AND bit_count(days & bits($own_to, $own_from - 1)) >= $least_own
"""
_KEEP_NAMES = """
INSERT INTO places SELECT DISTINCT hash(node, subject), node, subject FROM named;
INSERT INTO measures
SELECT measure, name, unit FROM (SELECT DISTINCT hash(name, unit) AS measure, name, unit FROM named)
  ANTI JOIN measures USING (measure)
"""
_WEEK_MOVING = """
INSERT INTO changes
SELECT $anchor, place, measure, segment, side, nearest(recent, own) - own, nearest(day_before, own) - own,
  nearest(two_before, own) - own
FROM (
  SELECT id,
    quantile_disc(value, [0.5, 0.55]) FILTER (day > $anchor - $recent) AS recent,
    quantile_disc(value, [0.5, 0.55]) FILTER (day >= $anchor - $recent AND day < $anchor) AS day_before,
    quantile_disc(value, [0.5, 0.55]) FILTER (day >= $anchor - $recent - 1 AND day < $anchor - 1) AS two_before,
    median(value) FILTER (is_own($anchor, day, $own_from, $own_to)) AS own
  FROM moving WHERE is_sampled AND day > $anchor - $own_from AND day <= $anchor GROUP BY id
  HAVING count(*) FILTER (day > $anchor - $recent) >= $least_recent
    AND count(*) FILTER (is_own($anchor, day, $own_from, $own_to)) >= $least_own
) JOIN series_of_block USING (id)
"""
_WEEK_STEADY = """
INSERT INTO changes
SELECT $anchor, place, measure, segment, side, 0, 0, 0 FROM steady
WHERE is_sampled AND bit_count(days & bits($today - $anchor, $today - $anchor + $recent - 1)) >= $least_recent
  AND bit_count(days & bits($today - $anchor + $own_to, $today - $anchor + $own_from - 1)) >= $least_own
"""


class _Node(NamedTuple):
    """A node, the number by which it is drawn, and how many values it has on a day."""

    name: str
    draw: int
    values: float


def read_past_days(database: DuckDBPyConnection, today: int, weeks: Sequence[int]) -> None:
    """Fill `KEPT_TABLES` and `changes` from the days before `today`; `changes` are of past `weeks` (days)."""
    for table, columns in KEPT_TABLES.items():
        database.execute(f"CREATE TEMP TABLE {table} ({columns})")
    database.execute(f"CREATE OR REPLACE TEMP TABLE changes ({CHANGES})")
    dates = _choose_dates(today, weeks)
    nodes = [_Node._make(row) for row in database.execute(_NODES, {"named_dates": dates["named_dates"]}).fetchall()]
    first = min([today, *weeks]) - OWN_FROM + 1
    measure_middles(database, first, today - 1, len(nodes))
    database.execute(
        "CREATE TEMP TABLE moving_kinds AS SELECT kind FROM middles GROUP BY kind HAVING min(middle) <> max(middle)"
    )
    draws = DRAWS * SAMPLED_NODES // max(SAMPLED_NODES, len(nodes))
    database.execute("INSERT INTO sampled VALUES ($draws)", {"draws": draws})
    asked = {"today": today, "first": first, "draws": draws, **dates}
    days = len(dates["dates"]), len(dates["dates"]) + len(dates["other_dates"])
    rows = ((node.name, node.values * days[node.draw < draws]) for node in nodes)
    for low, high in cut_blocks(rows, ROWS_IN_BLOCK):
        _read_block(database, {**asked, "low": low, "high": high})
        _keep_block(database, today, weeks)


def cut_blocks(nodes: Iterable[tuple[str, float]], most: float) -> Iterator[tuple[str, str]]:
    """Yield the first and the last node of each block. `nodes`: in order, with their rows. `most`: rows in a block.

    A node is never cut in two.
    """
    low, high, filled = "", "", 0.0
    for name, rows in nodes:
        if low and filled + rows > most:
            yield low, high
            low, filled = "", 0.0
        low, high, filled = low or name, name, filled + rows
    if low:
        yield low, high


def _choose_dates(today: int, weeks: Sequence[int]) -> dict[str, list[date]]:
    """Return the dates that are read of each node, those of the nodes whose past weeks count, and those of names.

    What has the values of 3 days of the last 6 has one of the last 4.
    """
    recent = range(today - RECENT_DAYS - 1, today)
    own = range(today - OWN_FROM + 1, today - OWN_TO + 1)
    every = range(min(weeks, default=today) - OWN_FROM + 1, today)
    return {
        "dates": make_dates([*own, *recent]),
        "other_dates": make_dates(day for day in every if weeks and day not in {*own, *recent}),
        "named_dates": make_dates(range(today - RECENT_DAYS + LEAST_RECENT - 1, today)),
    }


def _read_block(database: DuckDBPyConnection, asked: dict[str, object]) -> None:
    """Make the tables of a block of nodes: `held` has its series, `moving` their days, `steady` what never changes."""
    own: dict[str, object] = {"ever": FIRST_DAY, "never": LAST_DAY}
    run(database, _BLOCK, asked)
    run(database, _SEEN, asked)
    if database.execute(_HAS_SEVERAL).fetchall()[0][0]:
        database.execute(_FOLD)
    for step in (_NAMED, _HELD, _MOVING, _STEADY, _SERIES):
        run(database, step, own | asked)


def _keep_block(database: DuckDBPyConnection, today: int, weeks: Sequence[int]) -> None:
    windows: dict[str, object] = {"recent": RECENT_DAYS, "own_to": OWN_TO, "own_from": OWN_FROM, "today": today}
    windows |= {"least_recent": LEAST_RECENT, "least_own": LEAST_OWN}
    for step in (_KEEP_MOVING, _KEEP_STEADY, _KEEP_NAMES):
        run(database, step, windows)
    for anchor in weeks:
        for step in (_WEEK_MOVING, _WEEK_STEADY):
            run(database, step, {**windows, "anchor": anchor})
