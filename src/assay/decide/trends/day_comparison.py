"""Compares today, and days of past weeks, with the days before: what changed, and what was said then.

The median of each day over parts of the same kind and firmware: what a season, or new firmware, does to all.

What the rule saw in past weeks, on some of the nodes: its high scores, and the limits that were crossed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assay.decide.trends.change_scores import score_changes
from assay.decide.trends.day_cache import (
    choose_bits,
    digest,
    find_missing,
    make_later_keys,
    make_middle_keys,
    make_week_keys,
    note_keys,
    open_kept,
    read_history_keys,
)
from assay.decide.trends.day_columns import DayColumns
from assay.decide.trends.days import (
    HORIZON_DAYS,
    LEAST_RECENT,
    OWN_FROM,
    RECENT_DAYS,
    list_compared_days,
    list_kept_days,
    make_dates,
    quote_text,
    run,
)
from assay.decide.trends.fleet_tables import DRAWS, FIRST_DAY, LAST_DAY
from assay.decide.trends.raw_counters import RawCounter
from assay.decide.trends.series import measure_changes, read_values

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


LEAST_KEPT = 6.0
"""Lower scores of past weeks are not kept: no threshold is below that."""
BEYOND_DAYS, BEYOND_OF = 3, 5
"""A limit is crossed on the third day beyond it within five."""
_HIGH = """
CREATE OR REPLACE TEMP TABLE high AS
WITH found AS (
  SELECT p.node, p.subject, m.name, m.unit, h.* EXCLUDE (alike), s.measure, change - peers_change AS apart,
    peers, z, worse, worse_before, worse_two, s.anchor AS day
  FROM scores s JOIN held_at h USING (anchor, place, segment) JOIN places p USING (place)
    JOIN measures m USING (measure)
  WHERE greatest(worse, worse_before, worse_two) >= $least
), racks AS (SELECT DISTINCT anchor, measure, rack FROM found WHERE rack <> ''), moved AS (
  SELECT anchor, measure, rack FROM scores JOIN held_at USING (anchor, place, segment)
    SEMI JOIN racks USING (anchor, measure, rack)
  GROUP BY ALL HAVING count(*) > 4 AND median(worse) >= $least / 2
)
SELECT found.*, moved.rack IS NOT NULL AS is_of_rack FROM found LEFT JOIN moved USING (anchor, measure, rack)
"""
"""`is_of_rack`: its whole rack moved."""
_PARTS = """node VARCHAR, subject VARCHAR, name VARCHAR, unit VARCHAR, anchor INT, place UBIGINT, segment INT,
  serial VARCHAR, rack VARCHAR, position VARCHAR, pdu VARCHAR, switch VARCHAR, batch VARCHAR, sku VARCHAR,
  firmware VARCHAR, driver VARCHAR, measure UBIGINT, apart DOUBLE, peers BIGINT, z DOUBLE, worse DOUBLE,
  worse_before DOUBLE, worse_two DOUBLE, day INT, is_of_rack BOOL"""
_VALUED = f"{_PARTS}, at_least DOUBLE, at_most DOUBLE, own DOUBLE, earlier DOUBLE, recent DOUBLE, peers_change DOUBLE"
_LATER_COLUMNS = "day INT, anchor INT, place UBIGINT, measure UBIGINT, segment INT"
_PAIRS = HORIZON_DAYS + 1
_LATER = """
INSERT INTO kept.later
SELECT n.anchor * $pairs + m.day - n.anchor AS day, n.anchor, n.place, n.measure, n.segment
FROM measurements m JOIN kept.high n USING (node, subject, name, unit) LEFT JOIN intervals i
  ON i.node = m.node AND i.subject = m.subject AND m.day BETWEEN i.first_day AND i.last_day
WHERE m.node IN ({nodes}) AND coalesce(i.segment, 0) = n.segment AND isfinite(m.value)
  AND list_contains($dates, m.date) AND m.day > n.anchor
  AND list_contains($missing, n.anchor * $pairs + m.day - n.anchor)
GROUP BY ALL
"""
"""Here `day` stands for a past day and a later one, see `_number`."""
_ALL_PAST = """
CREATE OR REPLACE TEMP TABLE kept_past AS
SELECT p.*, coalesce(days_later, 0) AS days_later
FROM kept.past p LEFT JOIN (SELECT * EXCLUDE (day), count(*) AS days_later FROM kept.later GROUP BY ALL)
  USING (anchor, place, measure, segment)
ORDER BY anchor, worse DESC, node, subject, name
"""
_BEYOND = """
INSERT INTO kept.beyond
SELECT DISTINCT node, subject, name, unit, day FROM plain_measurements
WHERE list_contains($dates, date) AND (hash(node) >> 44)::INT < (SELECT draws FROM fleet_size)
  AND (value > at_most OR value < at_least)
"""
_ALL_BEYOND = """
CREATE OR REPLACE TEMP TABLE kept_beyond AS
SELECT node, subject, name, unit, list(DISTINCT day ORDER BY day) AS days
FROM kept.beyond GROUP BY ALL HAVING count(DISTINCT day) >= $beyond ORDER BY ALL
"""
"""The growth of a counter has no limit that it could cross."""


def keep_high_scores(
    database: DuckDBPyConnection, columns: Sequence[DayColumns], blocks: int, keys: Mapping[int, str]
) -> None:
    """Have `kept.high` of the past days of these keys, from the first blocks."""
    missing = find_missing(database, "high", _PARTS, keys)
    if missing:
        measure_changes(database, missing, columns, blocks)
        score_changes(database)
        run(database, _HIGH, {"least": LEAST_KEPT})
        database.execute("INSERT INTO kept.high BY NAME FROM high")
        note_keys(database, "high", {anchor: keys[anchor] for anchor in missing})


def keep_values(database: DuckDBPyConnection, keys: Mapping[int, str], later: Mapping[tuple[int, int], str]) -> None:
    """Make `kept_past`: the high scores of past days, with their values and how many days have some later.

    `keys`: of the past days. `later`: of each of them with each later day that counts.
    """
    missing = find_missing(database, "past", _VALUED, keys)
    if missing:
        query = "CREATE OR REPLACE TEMP TABLE named AS FROM kept.high WHERE list_contains($missing, day)"
        run(database, query, {"missing": missing})
        read_values(database)
        database.execute("INSERT INTO kept.past BY NAME FROM valued")
        note_keys(database, "past", {day: keys[day] for day in missing})
    _keep_later(database, later)
    database.execute(_ALL_PAST)


def _keep_later(database: DuckDBPyConnection, later: Mapping[tuple[int, int], str]) -> None:
    """Have `kept.later`: on which later days the series of `kept.high` have values of the same part."""
    keys, days = {}, {}
    for (anchor, day), key in later.items():
        number = _number(anchor, day)
        keys[number], days[number] = key, day
    missing = find_missing(database, "later", _LATER_COLUMNS, keys)
    nodes = [row[0] for row in database.execute("SELECT DISTINCT node FROM kept.high ORDER BY node").fetchall()]
    if missing and nodes:
        dates = make_dates({days[number] for number in missing})
        asked: dict[str, object] = {"dates": dates, "missing": missing, "pairs": _PAIRS}
        run(database, _LATER.format(nodes=", ".join(map(quote_text, nodes))), asked)
    note_keys(database, "later", {number: keys[number] for number in missing})


def _number(anchor: int, day: int) -> int:
    """Return a number of its own for a past day and one of the 30 days after it."""
    return anchor * _PAIRS + day - anchor


def keep_days_beyond(database: DuckDBPyConnection, keys: Mapping[int, str]) -> None:
    """Make `kept_beyond`: on which of these days series were beyond their limits, if on three or more."""
    columns = "node VARCHAR, subject VARCHAR, name VARCHAR, unit VARCHAR, day INT"
    missing = find_missing(database, "beyond", columns, keys)
    _read_beyond(database, missing)
    note_keys(database, "beyond", {day: keys[day] for day in missing})
    run(database, _ALL_BEYOND, {"beyond": BEYOND_DAYS})


def find_crossing(days: Sequence[int], after: int) -> int | None:
    """Return the first day after another on which a series is beyond its limit for the third time within five days."""
    crossings = (days[at + BEYOND_DAYS - 1] for at in range(len(days) - BEYOND_DAYS + 1)
                 if days[at + BEYOND_DAYS - 1] - days[at] < BEYOND_OF)  # fmt: skip
    return next((day for day in crossings if day > after), None)


def _read_beyond(database: DuckDBPyConnection, days: Collection[int]) -> None:
    if days:
        run(database, _BEYOND, {"dates": make_dates(days)})


SAMPLED_NODES = 1000
"""Past weeks only set a threshold and show how the rule fared, so at most so many nodes tell enough: half as many at
least, by powers of two, so that they are the same from day to day."""
SERIES_IN_BLOCK = 250_000
"""More cost memory, fewer cost time: each block opens the columns of all days."""
_SIZE = """
SELECT count(DISTINCT node), count(*) / greatest(1, count(DISTINCT day)) FROM measurements
WHERE list_contains($dates, date)
"""
_FLEET_SIZE = "CREATE OR REPLACE TEMP TABLE fleet_size AS SELECT $nodes AS nodes, $draws AS draws"
_MIDDLE_COLUMNS = "kind UBIGINT, day INT, middle DOUBLE"
_COUNTED_MIDDLES = f"CREATE OR REPLACE TEMP TABLE counted_middles ({_MIDDLE_COLUMNS})"


class DayQuestion(NamedTuple):
    """What is asked: how today compares, and the days of past `weeks`, and which measurements are counters."""

    today: int
    weeks: Sequence[int]
    counters: Sequence[RawCounter]


class _FleetSize(NamedTuple):
    """Nodes, and values on a day, of the last days."""

    nodes: int
    values: float

    @property
    def thinning(self) -> int:
        """One node in 2^thinning is looked at in past weeks."""
        return _count_halvings(self.nodes, SAMPLED_NODES)

    @property
    def bits(self) -> int:
        """Into 2^bits blocks the series are split."""
        return _count_halvings(self.values, SERIES_IN_BLOCK)


@contextmanager
def compare_days(database: DuckDBPyConnection, asked: DayQuestion, kept: Path | None = None) -> Iterator[None]:
    """Have the scores of today, and `kept_past` and `kept_beyond` of past weeks; the names of series end with it.

    `kept`: the file that keeps what days say. Raises AssayError while another process has it, or duckdb.Error where it
    is damaged.
    """
    size = _measure_size(database, asked.today)
    with open_kept(database, kept, size.values), _attach_counters(database, asked.counters):
        bits = choose_bits(database, size.bits, size.thinning)
        _read_days(database, asked, _list_columns(database, asked.counters, bits, size.values), size)
        database.execute("DROP VIEW middles")  # its tables go
        yield


def _list_columns(
    database: DuckDBPyConnection, counters: Sequence[RawCounter], bits: int, values: float
) -> list[DayColumns]:
    """Return the columns of what counts, and of all others."""
    history = read_history_keys(database)
    if not counters:
        return [DayColumns(database, "kept", "plain_measurements", history, bits, values)]
    names = sorted((one.name, one.unit) for one in counters)
    plain = {day: digest(key, names) for day, key in history.items()}
    grown = dict.fromkeys(history, "")
    return [
        DayColumns(database, "kept", "plain_measurements", plain, bits, values),
        DayColumns(database, "grown", "counted_measurements", grown, bits, values),
    ]


def _measure_size(database: DuckDBPyConnection, today: int) -> _FleetSize:
    dates = make_dates(range(today - RECENT_DAYS + LEAST_RECENT - 1, today))
    size = _FleetSize._make(database.execute(_SIZE, {"dates": dates}).fetchall()[0])
    run(database, _FLEET_SIZE, {"nodes": size.nodes, "draws": DRAWS >> size.thinning})
    return size


@contextmanager
def _attach_counters(database: DuckDBPyConnection, counters: Sequence[RawCounter]) -> Iterator[None]:
    """Have a place for the growth of counters, which is measured anew each time."""
    if counters:
        database.execute("ATTACH ':memory:' AS grown")
    try:
        yield
    finally:
        if counters:
            database.execute("DETACH grown")


def _read_days(
    database: DuckDBPyConnection, asked: DayQuestion, columns: Sequence[DayColumns], size: _FleetSize
) -> None:
    """Fold what is missing, then judge past weeks on the first blocks, and today on all."""
    today, history, blocks = asked.today, columns[0].keys, columns[0].blocks
    sampled = blocks >> size.thinning
    past = {day for week in asked.weeks for day in list_compared_days(week)}
    for one in columns:
        one.fold({*list_kept_days(today)} | (past if sampled == blocks else set()), blocks)
        one.fold(past, sampled)
        one.drop_days(min({today, *past}) - OWN_FROM)
    for table in ("places", "measures"):
        union = " UNION ".join(f"FROM {one.schema}.{table}" for one in columns)
        database.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {union}")
    middles = _keep_middles(database, today, history, {*past, *list_compared_days(today)}, bool(asked.counters))
    # the growth of a counter on one day depends on others
    more = digest(size.thinning, *asked.counters, *(sorted(history.items()) if asked.counters else ()))
    keys = make_week_keys(database, history, middles, asked.weeks, more)
    keep_high_scores(database, columns, sampled, keys)
    keep_values(database, keys, make_later_keys(database, history, keys, today))
    beyond = range(min(asked.weeks, default=today) - BEYOND_OF, today)
    keep_days_beyond(database, {day: digest(size.thinning, history[day]) for day in beyond if day in history})
    measure_changes(database, [today], columns, blocks)
    score_changes(database)


def _keep_middles(
    database: DuckDBPyConnection, today: int, history: Mapping[int, str], days: Iterable[int], has_counters: bool
) -> dict[int, str]:
    """Make `middles` of days, and return what they depend on."""
    draw_nodes(database, today)
    keys = make_middle_keys(database, history, days)
    missing = find_missing(database, "middles", _MIDDLE_COLUMNS, keys)
    measure_middles(database, "kept.middles", "plain_measurements", missing)
    note_keys(database, "middles", {day: keys[day] for day in missing})
    database.execute(_COUNTED_MIDDLES)
    if has_counters:
        measure_middles(database, "counted_middles", "counted_measurements", keys)
    database.execute("CREATE OR REPLACE TEMP VIEW middles AS FROM kept.middles UNION ALL FROM counted_middles")
    return keys


def _count_halvings(size: float, most: int) -> int:
    """Return how often a size is halved until it is at most so much."""
    halvings = 0
    while size > most << halvings:
        halvings += 1
    return halvings
