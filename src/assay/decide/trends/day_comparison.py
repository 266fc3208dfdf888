"""Compares today, and days of past weeks, with the days before: what changed, and what was said then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assay.decide.trends.change_scores import score_changes
from assay.decide.trends.compared_days import LEAST_RECENT, OWN_FROM, RECENT_DAYS, list_compared_days, list_kept_days
from assay.decide.trends.daily_middles import draw_nodes, measure_middles
from assay.decide.trends.day_cache import choose_bits, find_missing, note_keys, open_kept
from assay.decide.trends.day_columns import DayColumns
from assay.decide.trends.day_keys import digest, make_later_keys, make_middle_keys, make_week_keys, read_history_keys
from assay.decide.trends.day_queries import make_dates, run
from assay.decide.trends.part_intervals import DRAWS
from assay.decide.trends.past_weeks import BEYOND_OF, keep_days_beyond, keep_high_scores, keep_values
from assay.decide.trends.raw_counters import RawCounter
from assay.decide.trends.series_changes import measure_changes

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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
_MIDDLES = "kind UBIGINT, day INT, middle DOUBLE"
_COUNTED_MIDDLES = f"CREATE OR REPLACE TEMP TABLE counted_middles ({_MIDDLES})"


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
    missing = find_missing(database, "middles", _MIDDLES, keys)
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
