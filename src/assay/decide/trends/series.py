"""How much each series has changed. A series is one measurement of one part.

Change: the median of its last 7 days minus its own median of the days 60 to 21 before, both apart from its peers. From
each day's value the median of its peers is subtracted, so seasons and steps by new firmware go. A list sorted for each
series costs three times as much as SQL over whole columns: the windows of three days share five days, sorted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from math import isinf
from typing import TYPE_CHECKING, Any, NamedTuple

from assay.decide.trends.day_columns import DayColumns
from assay.decide.trends.days import (
    COMPARED,
    DAY_0,
    DAYS_SEEN,
    LEAST_OWN,
    LEAST_RECENT,
    OWN,
    OWN_FROM,
    OWN_TO,
    RECENT,
    RECENT_DAYS,
    list_compared_days,
    quote_text,
    run,
)
from assay.decide.trends.fleet_tables import SHARED_TRAITS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


RATE_DAYS = 14
"""The rate is of two windows of the recent length, so many days apart."""
_VALUES = """
CREATE OR REPLACE TEMP TABLE valued AS
WITH days AS (
  SELECT n.anchor, n.place, n.measure, n.segment, m.day, of_day(m.value) AS value, any_value(m.scale) AS scale,
    arg_max(m.at_least, m.time_s) AS at_least, arg_max(m.at_most, m.time_s) AS at_most
  FROM measurements m JOIN named n USING (node, subject, name, unit) LEFT JOIN intervals i
    ON i.node = m.node AND i.subject = m.subject AND m.day BETWEEN i.first_day AND i.last_day
  WHERE m.node IN ({nodes}) AND coalesce(i.segment, 0) = n.segment AND isfinite(m.value)
    AND m.date > $since AND m.date <= $until AND m.day > n.anchor - $own_from AND m.day <= n.anchor
  GROUP BY ALL
), middles AS (
  SELECT anchor, place, measure, segment, median(value) FILTER (day <= anchor - $own_to) AS own,
    median(value) FILTER (day > anchor - $rate_days - $recent AND day <= anchor - $rate_days) AS earlier,
    median(value) FILTER (day > anchor - $recent) AS recent,
    arg_max(at_least, day) AS at_least, arg_max(at_most, day) AS at_most, any_value(scale) AS scale
  FROM days GROUP BY ALL
)
SELECT n.*, v.* EXCLUDE (anchor, place, measure, segment, scale, own, earlier, recent), readable(own, scale) AS own,
  readable(earlier, scale) AS earlier, readable(recent, scale) AS recent,
  readable(recent - apart, scale) - readable(own, scale) AS peers_change
FROM named n JOIN middles v USING (anchor, place, measure, segment)
ORDER BY anchor, worse DESC, node, subject, name
"""
"""Nodes are named in the text, as DuckDB then passes over what the files say of others."""
SCORE_COLUMNS = (
    f"node, subject, name, unit, serial, [{', '.join(SHARED_TRAITS)}], own, earlier, recent, peers_change, peers, "
    "at_least, at_most, z, worse"
)
"""The columns of a `ChangeScore`, in its order."""


class ChangeScore(NamedTuple):
    """A series on one day. `z`: its score, up is positive. `worse`: towards its limit. `peers`: with itself.

    `traits`: what it may share with others, see `SHARED_TRAITS`.
    """

    node: str
    subject: str
    name: str
    unit: str
    serial: str
    traits: tuple[str, ...]
    own: float
    earlier: float | None
    recent: float
    peers_change: float
    peers: int
    at_least: float | None
    at_most: float | None
    z: float
    worse: float

    @property
    def sku(self) -> str:
        """What kind of part it is of."""
        return self.traits[SHARED_TRAITS.index("sku")]

    @property
    def limit(self) -> float | None:
        """The limit in the direction in which it goes, None without one."""
        limit = self.at_most if self.z > 0 else self.at_least
        return None if limit is None or isinf(limit) else limit

    @property
    def rate(self) -> float:
        """How much it changes in a day: of the last two weeks, where there are values, else of the whole time."""
        if self.earlier is not None:
            return (self.recent - self.earlier) / RATE_DAYS
        return (self.recent - self.own) / ((OWN_FROM + OWN_TO - RECENT_DAYS) / 2)

    @property
    def days_left(self) -> float | None:
        """Days until the limit at this rate; None where there is no limit, or it goes away from it."""
        if self.limit is None or self.rate == 0 or (self.limit - self.recent) / self.rate < 0:
            return None
        return (self.limit - self.recent) / self.rate


def read_values(database: DuckDBPyConnection) -> None:
    """Make the table `valued`: `named` with the values of each series."""
    windows: dict[str, object] = {"recent": RECENT_DAYS, "own_to": OWN_TO, "own_from": OWN_FROM}
    asked = "SELECT coalesce(min(anchor), 0), coalesce(max(anchor), 0), list(DISTINCT node) FROM named"
    first, last, nodes = database.execute(asked).fetchall()[0]
    since, until = (DAY_0 + timedelta(days=day) for day in (first - OWN_FROM, last))
    windows |= {"since": since, "until": until, "rate_days": RATE_DAYS}
    listed = ", ".join(map(quote_text, nodes or [""]))
    run(database, _VALUES.format(nodes=listed), windows)


def make_score(row: Sequence[Any]) -> ChangeScore:
    """Return the score of a row of `SCORE_COLUMNS`."""
    return ChangeScore._make([*row[:5], tuple(row[5]), *row[6:]])


def list_scores(database: DuckDBPyConnection) -> list[ChangeScore]:
    """Return the rows of `valued`."""
    return [make_score(row) for row in database.table("valued").project(SCORE_COLUMNS).fetchall()]


_PLACED = """
CREATE OR REPLACE TEMP TABLE placed AS
WITH anchors AS (SELECT unnest($anchors)::INT AS anchor), held AS (
  SELECT anchor, place, max(segment) AS segment, any_value((hash(node) >> $shift)::INT) AS block
  FROM intervals JOIN anchors ON first_day <= anchor - $own_to
  WHERE first_day <= last_day AND (hash(node) >> $shift)::INT < $blocks GROUP BY anchor, place
), cut AS (
  SELECT anchor, place, segment, block, alike, greatest(first_day, anchor - $longest) AS first_day,
    least(last_day, anchor) AS last_day
  FROM intervals JOIN held USING (place, segment)
)
SELECT anchor, place, any_value(segment) AS segment, any_value(block) AS block,
  hash(sum(hash(first_day, last_day, alike))) AS pattern
FROM cut WHERE first_day <= last_day GROUP BY anchor, place
UNION ALL
SELECT anchor, place, 0, (hash(node) >> $shift)::INT, 0::UBIGINT
FROM places CROSS JOIN anchors ANTI JOIN intervals USING (place) WHERE (hash(node) >> $shift)::INT < $blocks
ORDER BY block
"""
"""Only one part of a place can have been there for both windows. Of a place of which nobody knows who held it, the part
is thought to be the same. `pattern`: places with the same one have the same peers on the same days. In order of blocks,
so that a block reads its own places."""
_COURSES = """
CREATE OR REPLACE TEMP TABLE courses AS
WITH compared AS (SELECT unnest($anchors) AS anchor, unnest($nths) AS nth, unnest($days) AS day), patterns AS (
  SELECT anchor, pattern, min(place) AS place FROM placed GROUP BY anchor, pattern
), alikes AS (
  SELECT anchor, pattern, nth, day, arg_min(coalesce(i.alike, hash('', '')), coalesce(first_day, 0)) AS alike
  FROM patterns JOIN placed USING (anchor, pattern, place) LEFT JOIN intervals i USING (place, segment)
    JOIN compared USING (anchor)
  WHERE i.alike IS NULL OR day BETWEEN first_day AND last_day GROUP BY anchor, pattern, nth, day
), used AS ({used}), collected AS (
  SELECT anchor, pattern, measure, map(list(nth), list(middle)) AS course
  FROM used JOIN alikes USING (anchor, pattern) JOIN middles ON kind = hash(measure, alike) AND middles.day = alikes.day
  GROUP BY anchor, pattern, measure
)
SELECT anchor, pattern, measure, {columns} FROM collected
"""
"""One place of a pattern tells who was alike on which day. A map costs less to plan than a column for each day."""
_USED = "SELECT DISTINCT anchor, pattern, measure FROM {table} JOIN placed USING (place) WHERE {table}.block < $blocks"


def make_courses(
    database: DuckDBPyConnection, anchors: Sequence[int], columns: Sequence[DayColumns], blocks: int
) -> None:
    """Make `placed` (anchor, place, segment, block, pattern) and `courses` (anchor, pattern, measure, `m0`, …).

    The tables `places`, `intervals` and `middles` are there.
    """
    asked: dict[str, object] = {"anchors": [*anchors], "blocks": blocks, "shift": columns[0].shift}
    run(database, _PLACED, asked | {"own_to": OWN_TO, "longest": OWN_FROM})
    days = [(anchor, at, day) for anchor in anchors for at, day in enumerate(list_compared_days(anchor))]
    asked |= {name: [row[at] for row in days] for at, name in enumerate(("anchors", "nths", "days"))}
    middles = ", ".join(f"course[{at}] AS m{at}" for at in COMPARED)
    used = " UNION ".join(_USED.format(table=f"{column.schema}.series") for column in columns)
    run(database, _COURSES.replace("{used}", used).replace("{columns}", middles), asked)


SHARED = sorted(set.intersection(*map(set, RECENT)))
"""The places of the days that all windows have."""
OTHERS = [[at for at in places if at not in SHARED] for places in RECENT]
LATER = sorted({*SHARED}.union(*OTHERS))
"""The places of the days that any window has."""
_EXCHANGES = (((1, 4), (2, 5)), ((1, 3), (2, 4)), ((1, 2), (3, 5)), ((2, 3), (4, 5)), ((3, 4),))
"""Five values are in order when the two of each pair have been. Pairs of one step have no value in common."""
_MIDDLE = (RECENT_DAYS + 1) // 2
_LAST = "'inf'::DOUBLE"
"""What is missing stands last."""
_STEP = "SELECT {columns} FROM {source}"
COUNTS = ", ".join(f"count_{seen}" for seen in range(DAYS_SEEN))


def count_values(places: Sequence[int]) -> str:
    """Return how many of these values there are."""
    return " + ".join(f"(v{at} IS NOT NULL)::TINYINT" for at in places)


def write_counts(source: str) -> str:
    """Return the query that adds `count_0`, … to a source with `v0`, …: how many values each window has."""
    shared = _STEP.format(columns=f"*, {count_values(SHARED)} AS count_shared", source=source)
    counts = (f"count_shared + {count_values(others)} AS count_{seen}" for seen, others in enumerate(OTHERS))
    return _STEP.format(columns=f"*, {', '.join(counts)}", source=f"({shared})")


def write_middles(source: str, keep: str) -> str:
    """Return the query for `low_0`, `high_0`, …: the one or two values in the middle of each window, NULL without any.

    `keep`: columns that it has too.
    """
    for step in _list_steps():
        made = (f"{value} AS {name}" for name, value in step.items())
        source = f"({_STEP.format(columns=', '.join([keep, COUNTS, *made]), source=source)})"
    return source


def _list_steps() -> Iterator[dict[str, str]]:
    """Yield the columns of each step, by those of the one before."""
    yield {f"v{at}": f"coalesce(v{at}, {_LAST})" for at in LATER}
    pairs: dict[str, str] = {}
    for seen, (first, second) in enumerate(OTHERS):
        pairs |= {f"less_{seen}": f"least(v{first}, v{second})", f"more_{seen}": f"greatest(v{first}, v{second})"}
    shared = {f"a{number}": f"v{at}" for number, at in enumerate(SHARED, 1)}
    yield shared | pairs
    for exchanges in _EXCHANGES:
        step = {name: name for name in (*shared, *pairs)}
        for first, second in exchanges:
            step |= {
                f"a{first}": f"least(a{first}, a{second})",
                f"a{second}": f"greatest(a{first}, a{second})",
            }
        yield step
    ranks = range(1, _MIDDLE + 1)
    yield {f"rank_{seen}_{rank}": _find_rank(seen, rank) for seen in range(DAYS_SEEN) for rank in ranks}
    middles: dict[str, str] = {}
    for seen in range(DAYS_SEEN):
        chosen = " ".join(f"WHEN {rank} THEN rank_{seen}_{rank}" for rank in ranks)
        middles[f"low_{seen}"] = f"CASE (count_{seen} + 1) // 2 {chosen} END"
        middles[f"high_{seen}"] = f"CASE count_{seen} // 2 + 1 {chosen} END"
    yield middles


def _find_rank(seen: int, rank: int) -> str:
    """Return the value of a rank among the five in order, `a1`, …, and the two of a window."""
    ranks = [f"a{rank}"]
    ranks.append(f"greatest(a{rank - 1}, less_{seen})" if rank > 1 else f"less_{seen}")
    if rank > 1:
        ranks.append(f"greatest(a{rank - 2}, more_{seen})" if rank > 2 else f"more_{seen}")
    return f"least({', '.join(ranks)})"


_TABLES = """
CREATE OR REPLACE TEMP TABLE changes (anchor INT, place UBIGINT, measure UBIGINT, segment INT, side TINYINT,
  change DOUBLE, change_before DOUBLE, change_two DOUBLE);
CREATE OR REPLACE TEMP TABLE resting (anchor INT, place UBIGINT, measure UBIGINT, segment INT, side TINYINT)
"""
"""`side`: 1 for an upper limit, -1 for a lower one, 0 for both or none."""
_JUDGED = """
CREATE OR REPLACE TEMP TABLE judged AS
WITH apart AS (
  SELECT r.anchor, r.place, r.measure, p.segment, side, {apart}
  FROM ({read}) r JOIN (FROM placed WHERE block = $block) p ON p.anchor = r.anchor AND p.place = r.place
    JOIN courses c ON c.anchor = r.anchor AND c.pattern = p.pattern AND c.measure = r.measure
), enough AS (
  SELECT *, least({values}) = greatest({values}) AS rests FROM apart
  WHERE {own_count} >= $least_own AND {recent_count} >= $least_recent
)
SELECT anchor, place, measure, segment, side, rests, CASE WHEN NOT rests THEN list_median([{own}]) END AS own, {later}
FROM enough
"""
"""One plan for all anchors, as the plan costs more than the answer where there are few series."""
_READ = "SELECT {anchor} AS anchor, s.place, s.measure, coalesce({sides}) AS side, {values} FROM {source}"
_KEYS = "anchor, place, measure, segment, side"
_CHANGES = "INSERT INTO changes SELECT {keys}, {changes} FROM {middles}"
_RESTS = "INSERT INTO resting SELECT anchor, place, measure, segment, side FROM judged WHERE rests"
_PEERS_AT_REST = """
INSERT INTO changes
SELECT anchor, place, measure, segment, side, 0, 0, 0 FROM resting
SEMI JOIN (SELECT DISTINCT anchor, measure FROM changes) USING (anchor, measure)
"""
_RESTING = "DELETE FROM resting WHERE (anchor, measure) IN (SELECT DISTINCT (anchor, measure) FROM changes)"
"""What rests is a peer of what moves."""


def measure_changes(
    database: DuckDBPyConnection, anchors: Sequence[int], columns: Sequence[DayColumns], blocks: int
) -> None:
    """Make `changes` as of days from the first blocks, and `resting`: series of what never moves.

    The days are folded, and the table `middles` has theirs.
    """
    database.execute(_TABLES)
    make_courses(database, anchors, columns, blocks)
    # the rest of the days is compared for what moves alone
    moving = write_middles(f"({write_counts('(FROM judged WHERE NOT rests)')})", f"{_KEYS}, own")
    moves = ", ".join(f"nearest(low_{seen}, high_{seen}, own) - own" for seen in range(DAYS_SEEN))
    changes = _CHANGES.format(keys=_KEYS, changes=moves, middles=moving)
    asked: dict[str, object] = {"least_own": LEAST_OWN, "least_recent": LEAST_RECENT}
    for column in columns:
        for block in range(blocks):
            read = [query for anchor in anchors if (query := _write_read(column, block, anchor))]
            for step in (_write_query(read), changes, _RESTS) if read else ():
                run(database, step, asked | {"block": block})
    for step in (_PEERS_AT_REST, _RESTING):
        run(database, step, asked)


def _write_read(columns: DayColumns, block: int, anchor: int) -> str:
    """Return the query that reads the values of a block as of a day; "" if they cannot suffice."""
    days = list_compared_days(anchor)
    source, measured = columns.write_source(block, days)
    recent = [days[at] for at in reversed(RECENT[0]) if days[at] in measured]
    if not recent or not any(days[at] in measured for at in OWN):
        return ""
    sides = ", ".join(f"s{day}" for day in recent)
    values = (f"v{day}" if day in measured else "NULL::DOUBLE" for day in days)
    named = ", ".join(f"{value} AS v{at}" for at, value in enumerate(values))
    return _READ.format(anchor=anchor, sides=sides, values=named, source=source)


def _write_query(read: Sequence[str]) -> str:
    """Return the query that judges what was read."""
    parts = {
        "read": " UNION ALL ".join(read),
        "apart": ", ".join(f"v{at} - m{at} AS v{at}" for at in COMPARED),
        "values": _list_values(COMPARED),
        "own": _list_values(OWN),
        "own_count": count_values(OWN),
        "recent_count": count_values(RECENT[0]),
        "later": _list_values(LATER),
    }
    return _JUDGED.format(**parts)


def _list_values(places: Iterable[int]) -> str:
    return ", ".join(f"v{at}" for at in places)
