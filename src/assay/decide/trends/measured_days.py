"""The measurements of a fleet as arrays: for each measurement, a row of days for each part.

All is read once. Of a large fleet, past weeks are those of some nodes, and of the others only the days that judge today
are read. Lost readings are a measurement too: which share of its usual measurements a part gave on a day.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.decide.trends.change_warnings import LOST_READINGS
from assay.decide.trends.days import HISTORY_DAYS, LOOK_BACK_WEEKS, list_compared_days, make_dates, quote_text
from assay.model.facts import frozen

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]
SAMPLED_NODES, SAMPLED_VALUES = 1000, 300_000
"""Past weeks are those of 500 to 1,000 nodes where there are more, unless a day of all has fewer values than these."""
DRAWS_BITS = 20
"""A node is drawn by the first 20 of the 64 bits of its name's hash."""
VALUES_IN_MEMORY = 100_000
"""The days of a fleet with more values on each are folded into a file, which lasts as long as the question."""
VALUES_AT_ONCE = 3_000_000
_SIZE = """
SELECT count(DISTINCT node), count(*) / greatest(1, count(DISTINCT day)) FROM measurements
WHERE list_contains($dates, date)
"""
_PLACES = """
CREATE OR REPLACE TEMP TABLE places AS
SELECT (row_number() OVER (ORDER BY node, subject) - 1)::INT AS place, node, subject, hash(node, subject) AS key,
  (hash(node) >> 44)::BIGINT < $draws AS drawn
FROM (SELECT DISTINCT node, subject FROM measurements WHERE list_contains($dates, date))
"""
_MEASURES = """
CREATE OR REPLACE TEMP TABLE measures AS
SELECT (row_number() OVER (ORDER BY name, unit) - 1)::INT AS measure, name, unit, hash(name, unit) AS key
FROM (SELECT DISTINCT name, unit FROM measurements WHERE list_contains($dates, date))
"""
_FOLD = """
INSERT INTO folded.days
SELECT measure, place, day, value FROM measurements m
JOIN places p ON p.key = hash(m.node, m.subject) JOIN measures u ON u.key = hash(m.name, m.unit)
WHERE list_contains($dates, date) AND (drawn OR NOT $only_drawn) ORDER BY measure
"""
_LIMITS = """
CREATE OR REPLACE TEMP TABLE limits AS
SELECT measure, place, arg_max(at_least, time_s) AS at_least, arg_max(at_most, time_s) AS at_most FROM measurements m
JOIN places p ON p.key = hash(m.node, m.subject) JOIN measures u ON u.key = hash(m.name, m.unit)
WHERE list_contains($dates, date) AND (at_least IS NOT NULL OR at_most IS NOT NULL) GROUP BY ALL
"""
_INTERVALS = """
SELECT p.place, segment, dense_rank() OVER (ORDER BY alike), first_day, last_day
FROM intervals i JOIN places p ON p.key = i.place
WHERE first_day <= $last AND last_day >= $first AND first_day <= last_day
"""


@frozen
class Parts:
    """The parts, in the order of their nodes. `segment`, `alike`: part × measured day, -1 where nobody or two held it.

    `segment`: a series begins anew with another one. `alike`: parts of the same kind and firmware. `drawn`: whether
    past weeks are those of the part.
    """

    names: list[tuple[str, str]]
    node_of: Numbers
    drawn: NDArray[np.bool_]
    segment: NDArray[np.int16]
    alike: NDArray[np.int16]
    nodes: int

    def take_drawn(self) -> Parts:
        """Return the drawn parts alone."""
        names = [name for name, is_drawn in zip(self.names, self.drawn, strict=True) if is_drawn]
        grids = self.segment[self.drawn], self.alike[self.drawn]
        return Parts(names, self.node_of[self.drawn], self.drawn[self.drawn], *grids, self.nodes)

    def count_drawn_nodes(self) -> int:
        """Return of how many nodes the drawn parts are."""
        return len(np.unique(self.node_of[self.drawn]))


@frozen
class Grid:
    """Values of some parts on some days, NaN where there is none, and what `Parts` says of these."""

    days: Numbers
    values: Floats
    segment: NDArray[np.int16]
    alike: NDArray[np.int16]

    def find(self, day: int) -> int:
        """Return the column of the last day up to a day."""
        return max(0, int(np.searchsorted(self.days, day, side="right")) - 1)

    def window(self, day: int, first: int, last: int) -> slice:
        """Return the columns of the days from `first` to `last` days before a day."""
        low, high = np.searchsorted(self.days, (day - first, day - last + 1))
        return slice(int(low), int(high))

    def holds(self, day: int, columns: slice) -> NDArray[np.bool_]:
        """Return where the part is the one of a day."""
        today = self.segment[:, self.find(day)][:, None]
        held: NDArray[np.bool_] = (self.segment[:, columns] == today) & (today >= 0)
        return held


@frozen
class Measured:
    """A measurement. `rows`: the parts, by number. `recent`: all of them as today needs them; `past`: the drawn ones.

    `is_drawn`: which of the rows these are. `at_least`, `at_most`: NaN without a limit.
    """

    name: str
    unit: str
    rows: Numbers
    recent: Grid
    past: Grid
    is_drawn: NDArray[np.bool_]
    at_least: Floats
    at_most: Floats

    def take_drawn(self, number: NDArray[np.int64]) -> Measured:
        """Return the drawn parts alone, by their `number` among the drawn."""
        drawn = self.is_drawn
        limits = self.at_least[drawn], self.at_most[drawn]
        rows = number[self.rows[drawn]].astype(np.int32)
        return Measured(self.name, self.unit, rows, self.past, self.past, drawn[drawn], *limits)


@contextmanager
def read_measured(database: DuckDBPyConnection, today: int) -> Iterator[tuple[Parts, Iterator[Measured]]]:
    """Have the parts, and the measurements one after the other. The tables `measurements` and `intervals` are there."""
    nodes, values = database.execute(_SIZE, {"dates": make_dates(range(today - 4, today + 1))}).fetchall()[0]
    halvings = max(0, int(np.ceil(np.log2(max(1.0, min(nodes / SAMPLED_NODES, values / SAMPLED_VALUES))))))
    is_large, days = values > VALUES_IN_MEMORY, range(today - HISTORY_DAYS - LOOK_BACK_WEEKS * 7, today + 1)
    measured = sorted({row[0] for row in database.execute("SELECT day FROM history_days").fetchall()} & {*days})
    sparse = sorted({*measured} & {*list_compared_days(today)}) if halvings else measured
    looked = make_dates([*measured[-14:], *measured[::-14]] if is_large else measured)
    database.execute(_PLACES, {"dates": looked, "draws": (1 << DRAWS_BITS) >> halvings})
    database.execute(_MEASURES, {"dates": looked})
    with tempfile.TemporaryDirectory() as folder:
        where = str(Path(folder) / "folded.duckdb") if is_large else ":memory:"
        database.execute(f"ATTACH {quote_text(where)} AS folded")
        try:
            database.execute("CREATE TABLE folded.days (measure INT, place INT, day INT, value DOUBLE)")
            _fold(database, sparse, values, only_drawn=False)
            _fold(database, sorted({*measured} - {*sparse}), values / 2**halvings, only_drawn=True)
            database.execute(_LIMITS, {"dates": make_dates(measured[-2:])})
            all_days = np.array(measured, np.int32)
            parts = _read_parts(database, all_days, nodes)
            yield parts, _list_measured(database, parts, np.array(sparse, np.int32), all_days)
        finally:
            database.execute("DETACH folded")


def _fold(database: DuckDBPyConnection, days: Sequence[int], values: float, *, only_drawn: bool) -> None:
    at_once = max(1, int(VALUES_AT_ONCE // max(1.0, values)))
    for start in range(0, len(days), at_once):
        asked = {"dates": make_dates(days[start : start + at_once]), "only_drawn": only_drawn}
        database.execute(_FOLD, asked)


def _read_parts(database: DuckDBPyConnection, days: Numbers, nodes: int) -> Parts:
    rows = database.execute("SELECT node, subject, drawn FROM places ORDER BY place").fetchall()
    names = [(node, subject) for node, subject, _ in rows]
    numbers = {node: number for number, node in enumerate(dict.fromkeys(node for node, _ in names))}
    segment, alike = (np.zeros((len(names), len(days)), np.int16) for _ in range(2))
    window = {"first": int(days[0]), "last": int(days[-1])} if len(days) else {"first": 0, "last": 0}
    held = database.execute(_INTERVALS, window).fetchall()
    for place in {row[0] for row in held}:
        segment[place], alike[place] = -1, -1
    for place, which, kind, first, last in held:
        low, high = np.searchsorted(days, (max(first, window["first"]), min(last, window["last"]) + 1))
        segment[place, low:high], alike[place, low:high] = which, kind
    node_of = np.array([numbers[node] for node, _ in names], np.int32)
    return Parts(names, node_of, np.array([row[2] for row in rows], bool), segment, alike, nodes)


def _list_measured(
    database: DuckDBPyConnection, parts: Parts, recent: Numbers, measured: Numbers
) -> Iterator[Measured]:
    """Yield each measurement, then that of lost readings."""
    counts = np.zeros((len(parts.names), len(measured)), np.int16)
    for number, name, unit in database.execute("SELECT measure, name, unit FROM measures ORDER BY 1").fetchall():
        rows, values = _read_values(database, number, measured)
        if not len(rows):
            continue
        counts[rows] += np.isfinite(values)
        limits = dict[int, tuple[float | None, float | None]]()
        asked = "SELECT place, at_least, at_most FROM limits WHERE measure = $measure"
        for place, at_least, at_most in database.execute(asked, {"measure": number}).fetchall():
            limits[place] = at_least, at_most
        usual = next(iter(limits.values()), (None, None))
        known = np.array([limits.get(int(row), usual) for row in rows], dtype=float)
        yield _make_measured(parts, (name, unit), rows, values, (recent, measured), known)
    rows = np.arange(len(parts.names), dtype=np.int32)
    none = np.full((len(rows), 2), np.nan)
    none[:, 0] = -np.inf  # fewer is worse
    yield _make_measured(parts, (LOST_READINGS, ""), rows, _count_readings(parts, counts), (recent, measured), none)


def _read_values(database: DuckDBPyConnection, measure: int, measured: Numbers) -> tuple[Numbers, Floats]:
    """Return the parts of a measurement, and the median of each on each day."""
    asked = "SELECT place, day, value FROM folded.days WHERE measure = $measure"
    read: dict[str, Any] = database.execute(asked, {"measure": measure}).fetchnumpy()
    value = np.ma.filled(read["value"], np.nan)
    value[np.isinf(value)] = np.nan
    rows, row = np.unique(np.ma.getdata(read["place"]), return_inverse=True)
    key = row * len(measured) + np.searchsorted(measured, np.ma.getdata(read["day"]))
    values = np.full(len(rows) * len(measured), np.nan)
    if len(key) and np.bincount(key).max() > 1:
        order = np.lexsort((value, key))  # what is not finite comes last in each day
        key, value = key[order], value[order]
        first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
        count = np.add.reduceat(np.isfinite(value).astype(int), first)
        low, high = first + np.maximum(count - 1, 0) // 2, first + np.maximum(count // 2, 0)
        values[key[first]] = (value[low] + value[np.minimum(high, first + np.maximum(count - 1, 0))]) / 2
    else:
        values[key] = value
    return rows.astype(np.int32), values.reshape(len(rows), len(measured))


def _count_readings(parts: Parts, counts: NDArray[np.int16]) -> Floats:
    """Return the share of its usual measurements that a part gave on each day; NaN where its whole node gave none."""
    if not counts.size:
        return counts.astype(float)
    first = np.flatnonzero(np.r_[True, parts.node_of[1:] != parts.node_of[:-1]])
    gave = np.maximum.reduceat(counts, first, axis=0)[parts.node_of] > 0
    has_begun = np.maximum.accumulate(counts, axis=1) > 0
    usual = np.median(np.where(counts > 0, counts, counts.max(axis=1, keepdims=True)), axis=1)
    return np.where(gave & has_begun, counts / np.maximum(1, usual)[:, None], np.nan)


def _make_measured(
    parts: Parts, name: tuple[str, str], rows: Numbers, values: Floats, days: tuple[Numbers, Numbers], limits: Floats
) -> Measured:
    recent, measured = days
    drawn = parts.drawn[rows]

    def make_grid(chosen: Numbers, kept: NDArray[np.bool_]) -> Grid:
        columns = np.searchsorted(measured, chosen)
        cells = np.ix_(rows[kept], columns)
        shown = np.where(parts.segment[cells] >= 0, values[np.ix_(kept, columns)], np.nan)
        return Grid(chosen, shown, parts.segment[cells], parts.alike[cells])

    past = make_grid(measured, drawn)
    whole = past if drawn.all() and len(recent) == len(measured) else make_grid(recent, np.ones(len(rows), bool))
    return Measured(*name, rows, whole, past, drawn, limits[:, 0], limits[:, 1])
