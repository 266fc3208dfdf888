"""The limits that history has: of each measurement of a check, at one line of a spec, on one side.

Specs that share the line of a limit are judged together, as a change of the line changes all of them. The newest value
of a limit is the one that is judged.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from assay.model.backtest_report import LimitSide
from assay.trends.limits.limit_alarms import JudgedBound, LimitKey

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PRESENT = 0
"""The revision of the limits as they are."""
_NEWEST = """
WITH newest AS (
  SELECT check_, name, spec, max(run_at) AS run_at, count(*) AS readings, approx_count_distinct(subject) AS parts,
    arg_max(struct_pack(unit := unit, low := at_least, high := at_most, source := source), run_at) AS found
  FROM readings GROUP BY check_, name, spec
)
SELECT dense_rank() OVER (ORDER BY check_, name, found.unit,
    CASE WHEN found.source = '' THEN spec ELSE found.source END) AS id,
  check_, name, found.unit, spec, found.low, found.high, found.source, readings, parts
FROM newest ORDER BY id, run_at DESC, spec
"""


class KnownLimit(NamedTuple):
    """A limit, with the number of readings, and about how many parts they are of.

    `source`: file and line of its value, "" where the check's code has it. `specs`: the nodes' specs.
    """

    id: int
    check: str
    name: str
    unit: str
    side: LimitSide
    value: float
    source: str
    specs: tuple[str, ...]
    readings: int
    parts: int

    @property
    def key(self) -> tuple[int, LimitSide]:
        """What tells it apart."""
        return self.id, self.side

    @property
    def keys(self) -> list[LimitKey]:
        """The measurements that it bounds."""
        return [LimitKey(self.id, self.check, self.name, self.unit, spec) for spec in self.specs]

    def bound(self, revision: int = PRESENT, value: float | None = None) -> JudgedBound:
        """Return the bound to judge: the present value, or another one."""
        return JudgedBound(self.id, self.side, revision, self.value if value is None else value)


def list_known_limits(database: DuckDBPyConnection) -> list[KnownLimit]:
    """Return the limits, by check and measurement."""
    rows = database.execute(_NEWEST).fetchall()
    limits = list[KnownLimit]()
    for ident, group in groupby(rows, key=itemgetter(0)):
        some = list(group)
        _, check, name, unit, _, low, high, source, *_ = some[0]
        sizes = tuple(sorted(row[4] for row in some)), sum(row[8] for row in some), sum(row[9] for row in some)
        limits += [
            KnownLimit(ident, check, name, unit, side, value, source, *sizes) for side, value in _list_sides(low, high)
        ]
    return limits


def _list_sides(low: float | None, high: float | None) -> list[tuple[LimitSide, float]]:
    if low is not None and low == high:
        return [("equals", low)]
    sides: list[tuple[LimitSide, float | None]] = [("at_least", low), ("at_most", high)]
    return [(side, value) for side, value in sides if value is not None]
