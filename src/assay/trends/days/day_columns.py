"""Measurements as columns: one table of each day, with a value for each series in the order of the list of series.

A day is read once and folded; to compare days is then to put columns beside each other. Series are split into blocks by
their node, so that the memory of a comparison is bounded. The first blocks hold the nodes of which past weeks are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.trends.days.day_queries import make_dates, run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

VALUES_AT_ONCE = 3_000_000
"""Values that are folded at once: more cost memory, fewer read a day several times."""
_TABLES = """
CREATE TABLE IF NOT EXISTS {schema}.series (block INT, number INT, place UBIGINT, measure UBIGINT);
CREATE TABLE IF NOT EXISTS {schema}.raws (raw UBIGINT, block INT, number INT);
CREATE TABLE IF NOT EXISTS {schema}.places (place UBIGINT, node VARCHAR, subject VARCHAR);
CREATE TABLE IF NOT EXISTS {schema}.measures (measure UBIGINT, name VARCHAR, unit VARCHAR);
CREATE TABLE IF NOT EXISTS {schema}.days (day INT, block INT, key VARCHAR, is_empty BOOL);
"""
"""`series`: in the order of `number` in each block. `raws`: which series a row of measurements belongs to; several may
belong to one, as a node that changed pools has other subjects. `days`: which tables there are, and from what."""
_NUMBERED = """
CREATE OR REPLACE TEMP TABLE numbered AS
SELECT day, block, number, value, side_of(at_least, at_most) AS side
FROM {source} LEFT JOIN {schema}.raws USING (raw)
WHERE list_contains($dates, date) AND isfinite(value) AND (hash(node) >> $shift)::INT BETWEEN $low AND $high
"""
_FOLDED = """
CREATE OR REPLACE TEMP TABLE numbered AS
SELECT day, block, number, of_day(value) AS value, arg_max(side_of(at_least, at_most), time_s) AS side
FROM {source} JOIN {schema}.raws USING (raw)
WHERE list_contains($dates, date) AND isfinite(value) AND (hash(node) >> $shift)::INT BETWEEN $low AND $high
GROUP BY day, block, number
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
_DAY = """
CREATE OR REPLACE TEMP TABLE day_of_block AS
SELECT number, value, side FROM numbered WHERE day = $day AND block = $block ORDER BY number
"""
_COUNTS = """
SELECT count(*), coalesce(max(number), 0), coalesce(bool_and(number = place), true)
FROM (SELECT number, row_number() OVER () - 1 AS place FROM day_of_block)
"""
_HAS_SEVERAL = "SELECT count(*) > count(DISTINCT number) FROM day_of_block"
_WHOLE = "CREATE OR REPLACE TABLE {table} AS SELECT value, side FROM day_of_block"
_WITH_GAPS = """
CREATE OR REPLACE TABLE {table} AS
SELECT value, side FROM range($size) AS wanted(number) LEFT JOIN day_of_block USING (number) ORDER BY number
"""
"""A table keeps the order of its rows."""
_FORGET = "DELETE FROM {schema}.days WHERE list_contains($days, day) AND block BETWEEN $low AND $high"
_NOTE = "INSERT INTO {schema}.days SELECT unnest($days), unnest($blocks), unnest($keys), unnest($empty)"


_SERIES = "(SELECT place, measure FROM {schema}.series WHERE block = {block}) s"
_OLD = "DELETE FROM {schema}.days WHERE day < $before RETURNING day, block"


@dataclass(slots=True)
class DayColumns:
    """The columns of the view `source`, in the tables of `schema`.

    `keys`: what each day was read from; a day of another key is folded again. `bits`: there are 2^bits blocks.
    `values`: how many there are on a day.
    """

    database: DuckDBPyConnection
    schema: str
    source: str
    keys: Mapping[int, str]
    bits: int
    values: float
    filled: dict[tuple[int, int], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make what is missing, and read which days there are."""
        self.database.execute(_TABLES.format(schema=self.schema))
        for day, block, key, is_empty in self.database.execute(f"FROM {self.schema}.days").fetchall():
            if self.keys.get(day) == key:
                self.filled[day, block] = not is_empty

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return 1 << self.bits

    def fold(self, days: Iterable[int], blocks: int) -> None:
        """Fold those of the days that are missing in the first blocks."""
        known = sorted({*days} & self.keys.keys())
        missing = [day for day in known if any((day, block) not in self.filled for block in range(blocks))]
        for some, low, high in self._cut(missing, blocks):
            self._fold(some, low, high)

    def write_source(self, block: int, days: Sequence[int]) -> tuple[str, list[int]]:
        """Return the columns of a block as a FROM clause (`s`, and `t20440` for a day), and the days that it has."""
        found = [day for day in days if self.filled.get((day, block))]
        series = _SERIES.format(schema=self.schema, block=block)
        return " POSITIONAL JOIN ".join([series, *(f"{self._name(day, block)} t{day}" for day in found)]), found

    def drop_days(self, before: int) -> None:
        """Forget the days before a day."""
        for day, block in self._ask(_OLD, {"before": before}):
            self.database.execute(f"DROP TABLE IF EXISTS {self._name(day, block)}")

    def _cut(self, days: Sequence[int], blocks: int) -> Iterator[tuple[Sequence[int], int, int]]:
        """Yield days and the first and the last of the blocks that are folded at once."""
        of_a_day = max(1.0, self.values * blocks / self.blocks)
        at_once = max(1, int(VALUES_AT_ONCE // of_a_day))
        step = max(1, int(blocks * VALUES_AT_ONCE * 2 // of_a_day))
        for start in range(0, len(days), at_once):
            for low in range(0, blocks, step):
                yield days[start : start + at_once], low, min(low + step, blocks) - 1

    def _fold(self, days: Sequence[int], low: int, high: int) -> None:
        asked: dict[str, object] = {"dates": make_dates(days), "low": low, "high": high, "shift": 64 - self.bits}
        self._run(_NUMBERED, asked)
        if self._ask(_HAS_UNKNOWN)[0][0]:
            for step in (_UNKNOWN, _NAMED, *_LIST, _NUMBERED):
                self._run(step, asked)
        self._run(_FORGET, {**asked, "days": [*days]})
        at = [(day, block) for day in days for block in range(low, high + 1)]
        if not all(self._keep(day, block) for day, block in at):
            self._run(_FOLDED, asked)
            for day, block in at:
                self._keep(day, block)
        noted = {"days": [day for day, _ in at], "blocks": [block for _, block in at]}
        told = {"keys": [self.keys[day] for day, _ in at], "empty": [not self.filled[one] for one in at]}
        self._run(_NOTE, noted | told)
        self.database.execute("DROP TABLE numbered")

    def _keep(self, day: int, block: int) -> bool:
        """Make the table of a day and block, if each series has one value at most; return whether it is so."""
        self._run(_DAY, {"day": day, "block": block})
        count, last, is_whole = self._ask(_COUNTS)[0]
        if not is_whole and self._ask(_HAS_SEVERAL)[0][0]:
            return False
        if count:
            query = (_WHOLE if is_whole else _WITH_GAPS).replace("{table}", self._name(day, block))
            self._run(query, {"size": last + 1})
        self.filled[day, block] = count > 0
        return True

    def _name(self, day: int, block: int) -> str:
        return f"{self.schema}.day_{day}_{block}"

    def _run(self, query: str, values: Mapping[str, object]) -> None:
        run(self.database, query.format(schema=self.schema, source=self.source), {**values})

    def _ask(self, query: str, values: Mapping[str, object] | None = None) -> list[Any]:
        return self.database.execute(query.format(schema=self.schema), values).fetchall()
