"""Measurements as columns: sheets of days, with a value for each series in the order of the list of series.

A day is read once and folded; to compare days is then to put columns beside each other. Series are split into blocks by
their node, so that the memory of a comparison is bounded. The first blocks hold the nodes of which past weeks are read.
A sheet is a table of a day and block.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.decide.trends.days import make_dates, run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

VALUES_AT_ONCE = 3_000_000
"""Values that are folded at once: more cost memory, fewer read a day several times."""
_TABLES = """
CREATE TABLE {schema}.series (block INT, number INT, place UBIGINT, measure UBIGINT);
CREATE TABLE {schema}.raws (raw UBIGINT, block INT, number INT);
CREATE TABLE {schema}.places (place UBIGINT, node VARCHAR, subject VARCHAR);
CREATE TABLE {schema}.measures (measure UBIGINT, name VARCHAR, unit VARCHAR)
"""
"""`series`: in the order of `number` in each block. `raws`: which series a row of measurements belongs to; several may
belong to one, as a node that changed pools has other subjects."""
_NUMBERED = """
CREATE OR REPLACE TEMP TABLE numbered AS
SELECT day, block, number, value, side_of(at_least, at_most) AS side
FROM {source} LEFT JOIN {schema}.raws USING (raw)
WHERE list_contains($dates, date) AND isfinite(value) AND (hash(node) >> $shift)::INT BETWEEN $low AND $high
ORDER BY day, block, number
"""
_FOLDED = """
CREATE OR REPLACE TEMP TABLE numbered AS
SELECT day, block, number, of_day(value) AS value, arg_max(side_of(at_least, at_most), time_s) AS side
FROM {source} JOIN {schema}.raws USING (raw)
WHERE list_contains($dates, date) AND isfinite(value) AND (hash(node) >> $shift)::INT BETWEEN $low AND $high
GROUP BY day, block, number ORDER BY day, block, number
"""
"""Only where series have several values on a day: it costs as much as all else."""
_HAS_UNKNOWN = "SELECT count(*) > 0 FROM numbered WHERE number IS NULL"
_UNKNOWN = """
CREATE OR REPLACE TEMP TABLE unknown AS
SELECT DISTINCT raw FROM {source} ANTI JOIN {schema}.raws USING (raw)
WHERE list_contains($dates, date) AND isfinite(value) AND (hash(node) >> $shift)::INT BETWEEN $low AND $high
"""
_NAMED = """
CREATE OR REPLACE TEMP TABLE named_raws AS
SELECT *, (hash(node) >> $shift)::INT AS block, hash(node, subject) AS place, hash(name, unit) AS measure
FROM (
  SELECT raw, any_value(node) AS node, any_value(subject) AS subject, any_value(name) AS name, any_value(unit) AS unit
  FROM {source} SEMI JOIN unknown USING (raw) WHERE list_contains($dates, date) GROUP BY raw
)
"""
_LIST = (
    """
INSERT INTO {schema}.series
WITH used AS (SELECT block, count(*)::INT AS used FROM {schema}.series GROUP BY block)
SELECT block, (coalesce(used, 0) + row_number() OVER (PARTITION BY block ORDER BY measure, place) - 1)::INT AS number,
  place, measure
FROM (SELECT DISTINCT block, place, measure FROM named_raws) ANTI JOIN {schema}.series USING (block, place, measure)
  LEFT JOIN used USING (block)
ORDER BY block, number
""",
    """
INSERT INTO {schema}.places
SELECT DISTINCT place, node, subject FROM named_raws ANTI JOIN {schema}.places USING (place)
""",
    """
INSERT INTO {schema}.measures
SELECT DISTINCT measure, name, unit FROM named_raws ANTI JOIN {schema}.measures USING (measure)
""",
    """
INSERT INTO {schema}.raws SELECT raw, block, number FROM named_raws JOIN {schema}.series USING (block, place, measure)
""",
)
"""Series of the same measurement stand together: they are much alike, so their days take little room.
A row is known only when all else about it is written."""
_HAS_SEVERAL = """
SELECT coalesce(bool_or(number = number_before AND block = block_before AND day = day_before), false)
FROM (
  SELECT *, lag(number) OVER () AS number_before, lag(block) OVER () AS block_before, lag(day) OVER () AS day_before
  FROM numbered
)
"""
_SIZES = """
SELECT day, block, max(number) + 1, count(*) <= max(number) FROM numbered GROUP BY day, block ORDER BY day, block
"""
_WHOLE = """
CREATE TABLE {sheet} AS
SELECT value AS v{day}, side AS s{day} FROM numbered WHERE day = {day} AND block = {block}
"""
_WITH_GAPS = """
CREATE TABLE {sheet} AS
SELECT value AS v{day}, side AS s{day}
FROM range({size}) AS wanted(number) LEFT JOIN (FROM numbered WHERE day = {day} AND block = {block}) USING (number)
ORDER BY number
"""
"""A table keeps the order of its rows."""
_SERIES = "(SELECT place, measure FROM {schema}.series WHERE block = {block}) s"


@dataclass(slots=True)
class DayColumns:
    """The columns of the view `source`, in the tables of `schema`, which is new.

    `measured`: the days with values. `bits`: there are 2^bits blocks. `values`: how many there are on a day.
    """

    database: DuckDBPyConnection
    schema: str
    source: str
    measured: Collection[int]
    bits: int
    values: float
    folded: dict[tuple[int, int], bool] = field(default_factory=dict)
    """The days and blocks that are folded, and whether each has values: a sheet."""

    def __post_init__(self) -> None:
        """Make the tables."""
        self.database.execute(_TABLES.format(schema=self.schema))

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return 1 << self.bits

    @property
    def shift(self) -> int:
        """By how many bits the hash of a node is shifted to give its block."""
        return 64 - self.bits

    def fold(self, days: Iterable[int], blocks: int) -> None:
        """Fold those of the days that are missing in the first blocks."""
        known = sorted({*days} & {*self.measured})
        missing = [day for day in known if any((day, block) not in self.folded for block in range(blocks))]
        for some, low, high in self._cut(missing, blocks):
            self._fold(some, low, high)

    def write_source(self, block: int, days: Iterable[int]) -> tuple[str, set[int]]:
        """Return the columns of a block as a FROM clause, its series as `s`, and those of the days that have values.

        Day 20440 has its values in `v20440`, and their sides in `s20440`.
        """
        measured = {day for day in days if self.folded.get((day, block))}
        tables = [_SERIES.format(schema=self.schema, block=block)]
        tables += [self._name(day, block) for day in sorted(measured)]
        return " POSITIONAL JOIN ".join(tables), measured

    def _cut(self, days: Sequence[int], blocks: int) -> Iterator[tuple[Sequence[int], int, int]]:
        """Yield days and the first and the last of the blocks that are folded at once."""
        of_a_day = max(1.0, self.values * blocks / self.blocks)
        at_once = max(1, int(VALUES_AT_ONCE // of_a_day))
        step = max(1, int(blocks * VALUES_AT_ONCE * 2 // of_a_day))
        for start in range(0, len(days), at_once):
            for low in range(0, blocks, step):
                yield days[start : start + at_once], low, min(low + step, blocks) - 1

    def _fold(self, days: Sequence[int], low: int, high: int) -> None:
        asked: dict[str, object] = {"dates": make_dates(days), "low": low, "high": high, "shift": self.shift}
        self._run(_NUMBERED, asked)
        if self._ask(_HAS_UNKNOWN)[0][0]:
            for step in (_UNKNOWN, _NAMED, *_LIST, _NUMBERED):
                self._run(step, asked)
        if self._ask(_HAS_SEVERAL)[0][0]:
            self._run(_FOLDED, asked)
        at = [(day, block) for day in days for block in range(low, high + 1)]
        self.folded |= dict.fromkeys(at, False)
        for day, block, size, has_gaps in self._ask(_SIZES):
            query = _WITH_GAPS if has_gaps else _WHOLE
            self.database.execute(query.format(sheet=self._name(day, block), size=size, block=block, day=day))
            self.folded[day, block] = True
        self.database.execute("DROP TABLE numbered")

    def _name(self, day: int, block: int) -> str:
        return f"{self.schema}.sheet_{day}_{block}"

    def _run(self, query: str, values: Mapping[str, object]) -> None:
        run(self.database, query.format(schema=self.schema, source=self.source), {**values})

    def _ask(self, query: str) -> list[Any]:
        return self.database.execute(query.format(schema=self.schema)).fetchall()
