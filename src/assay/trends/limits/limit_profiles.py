"""How far the measurements of a limit stay from it: counts of days by distance, of all parts and of healthy ones.

Each part counts once a day, with its worst value, on about a thousand nodes. The noise of a limit is the median, over
parts, of the spread (1.4826 × MAD) of these values. Distances are counted in tenths of it, so that blocks of nodes can
be added up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Literal, NamedTuple

from assay.model.backtest_report import LimitRecord, LimitSide
from assay.trends.limits.known_limits import KnownLimit
from assay.trends.limits.limit_alarms import count_alarms, declare_bounds
from assay.trends.limits.limit_tables import HORIZON_DAYS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LimitBehaviour = Literal["always", "in vain", "never", "works"]
NODES_IN_BLOCK, SAMPLED_NODES = 100, 1000
NOISE_DAYS = 30
"""The noise is that of the first block of each spec, in the last days."""
LEAST_VALUES = 5
STEPS_IN_NOISE = 10
PARTS_OF_LIMIT = 1000
"""Without noise, distances are counted in so small parts of the limit's value."""
MOST_STEPS = 1_000_000
_NODES = "SELECT DISTINCT spec, node FROM readings ORDER BY ALL"
_DAYS = """
CREATE OR REPLACE TEMP TABLE days AS
SELECT id, node, subject, day, max(value) AS high, min(value) AS low
FROM readings JOIN keys USING (check_, name, unit, spec)
WHERE node >= $low AND node <= $high AND spec = $spec AND day > $first GROUP BY ALL
"""
_NOISE = """
SELECT id, side, 1.4826 * median(spread) FROM (
  SELECT id, side, mad(CASE side WHEN 'at_most' THEN high ELSE low END) AS spread
  FROM days JOIN bounds USING (id) GROUP BY id, side, subject HAVING count(*) >= $least
) GROUP BY id, side
"""
_TABLES = """
CREATE OR REPLACE TABLE steps (id INTEGER, side VARCHAR, step DOUBLE);
CREATE OR REPLACE TABLE bins (id INTEGER, side VARCHAR, steps BIGINT, days BIGINT, healthy BIGINT);
CREATE OR REPLACE TABLE parts (id INTEGER, parts BIGINT, nodes BIGINT);
"""
_BINS = """
CREATE OR REPLACE TABLE bins AS
SELECT id, side, steps, sum(days)::BIGINT AS days, sum(healthy)::BIGINT AS healthy FROM (
  FROM bins UNION ALL
  SELECT id, side, floor(greatest(least(
      least(distance(side, bound, low), distance(side, bound, high)) / step, $most), -$most))::BIGINT AS steps,
    count(*), count_if(ill.day IS NULL AND d.day <= $today - $horizon)
  FROM days d JOIN bounds USING (id) JOIN steps USING (id, side) LEFT JOIN ill_days ill USING (node, day)
  GROUP BY 1, 2, 3
) GROUP BY ALL
"""
_PARTS = "INSERT INTO parts SELECT id, count(DISTINCT subject), count(DISTINCT node) FROM days GROUP BY id"
_VARYING = """
SELECT DISTINCT k.id FROM readings r JOIN keys k USING (check_, name, unit, spec)
JOIN (SELECT id, max(bound) FILTER (side <> 'at_most') AS low, max(bound) FILTER (side <> 'at_least') AS high
      FROM bounds GROUP BY id) b ON b.id = k.id
WHERE day >= $today AND (r.at_least IS DISTINCT FROM b.low OR r.at_most IS DISTINCT FROM b.high)
"""


@dataclass(frozen=True, slots=True)
class LimitProfile:
    """A limit and its record. `bins`: by steps of `step` from the limit, inside is positive: days, and healthy ones.

    They are of so many `parts` and `nodes`; none of a rare limit that the sample misses. A day is healthy if the node
    did not fail within the 30 days after it. `noise`: None where values do not vary. `varies`: parts have different
    values of this limit.
    """

    limit: KnownLimit
    record: LimitRecord
    parts: int
    nodes: int
    noise: float | None
    step: float
    bins: Sequence[tuple[int, int, int]]
    varies: bool

    @property
    def days(self) -> int:
        """On how many days parts of the sample were measured."""
        return sum(days for _, days, _ in self.bins)

    @property
    def fired_days(self) -> int:
        """On how many of them the limit fired."""
        return sum(days for steps, days, _ in self.bins if steps < 0)

    def find_distance(self, share: float) -> float:
        """Return the distance within which this share of the days lies, negative beyond the limit."""
        return self._find_rank(int(self.days * share), healthy=False)

    def find_healthy_distance(self, rank: int) -> float:
        """Return the distance of the healthy day that so many others are nearer than."""
        return self._find_rank(rank, healthy=True)

    def _find_rank(self, rank: int, *, healthy: bool) -> float:
        seen = 0
        for steps, days, well in self.bins:
            seen += well if healthy else days
            if seen > rank:
                return steps * self.step
        return self.bins[-1][0] * self.step if self.bins else 0.0

    @property
    def healthy_days(self) -> int:
        """How many days were healthy."""
        return sum(healthy for _, _, healthy in self.bins)


def profile_limits(database: DuckDBPyConnection, limits: Sequence[KnownLimit], today: int) -> list[LimitProfile]:
    """Return the profile of each limit, from the tables of `open_limit_tables`."""
    declare_bounds(database, {key for one in limits for key in one.keys}, [one.bound() for one in limits])
    blocks = list(_choose_blocks(database))
    noises = _measure_noise(database, blocks, today)
    steps = {one.key: _choose_step(one, noises.get(one.key)) for one in limits}
    _count_days(database, blocks, steps, today)
    records = count_alarms(database, today)
    sizes, bins = _read_sizes(database), _read_bins(database)
    varying = {row[0] for row in database.execute(_VARYING, {"today": today}).fetchall()}
    return [
        LimitProfile(
            one,
            records[one.bound()[:3]],
            *sizes.get(one.id, (0, 0)),
            noises.get(one.key),
            steps[one.key],
            bins.get(one.key, []),
            one.id in varying,
        )
        for one in limits
    ]


class _NodeBlock(NamedTuple):
    """Nodes of a spec, from the first to the last of their names."""

    spec: str
    low: str
    high: str


def _choose_blocks(database: DuckDBPyConnection) -> Iterator[_NodeBlock]:
    """Yield blocks of nodes, the first one of each spec, and as many others as the sample has room for."""
    nodes = defaultdict[str, list[str]](list)
    for spec, node in database.execute(_NODES).fetchall():
        nodes[spec].append(node)
    apart = max(1, ceil(sum(map(len, nodes.values())) / SAMPLED_NODES)) * NODES_IN_BLOCK
    for spec, names in nodes.items():
        for start in range(0, len(names), apart):
            block = names[start : start + NODES_IN_BLOCK]
            yield _NodeBlock(spec, block[0], block[-1])


def _measure_noise(
    database: DuckDBPyConnection, blocks: Sequence[_NodeBlock], today: int
) -> dict[tuple[int, str], float]:
    """Return the noise of each limit that has one."""
    found: dict[tuple[int, str], float] = {}
    for block in {one.spec: one for one in reversed(blocks)}.values():
        database.execute(_DAYS, {**block._asdict(), "first": today - NOISE_DAYS})
        rows = database.execute(_NOISE, {"least": LEAST_VALUES}).fetchall()
        found |= {(ident, side): noise for ident, side, noise in rows if noise}
    return found


def _choose_step(limit: KnownLimit, noise: float | None) -> float:
    return noise / STEPS_IN_NOISE if noise else (abs(limit.value) or 1.0) / PARTS_OF_LIMIT


def _count_days(
    database: DuckDBPyConnection,
    blocks: Iterable[_NodeBlock],
    steps: Mapping[tuple[int, LimitSide], float],
    today: int,
) -> None:
    """Fill the tables `bins` and `parts`."""
    database.execute(_TABLES)
    database.executemany("INSERT INTO steps VALUES (?, ?, ?)", [(*key, step) for key, step in steps.items()])
    for block in blocks:
        database.execute(_DAYS, {**block._asdict(), "first": 0})
        database.execute(_BINS, {"today": today, "horizon": HORIZON_DAYS, "most": MOST_STEPS})
        database.execute(_PARTS)


def _read_sizes(database: DuckDBPyConnection) -> Mapping[int, tuple[int, int]]:
    rows = database.execute("SELECT id, sum(parts)::BIGINT, sum(nodes)::BIGINT FROM parts GROUP BY id").fetchall()
    return {ident: (parts, nodes) for ident, parts, nodes in rows}


def _read_bins(database: DuckDBPyConnection) -> Mapping[tuple[int, str], list[tuple[int, int, int]]]:
    found = defaultdict[tuple[int, str], list[tuple[int, int, int]]](list)
    for ident, side, *row in database.execute("SELECT * FROM bins ORDER BY id, side, steps").fetchall():
        found[ident, side].append((row[0], row[1], row[2]))
    return found
