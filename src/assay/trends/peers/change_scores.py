"""How much each series has changed, compared with its peers. A series is one measurement of one part.

Change: the median of its last 5 days minus its own median of the days 60 to 21 before. Score: how far its change is
from the median of its peers' changes, in robust standard deviations. Peers have the same measurement, unit, SKU and
firmware, and got this firmware in the same week.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

RECENT_DAYS, OWN_FROM, OWN_TO = 5, 60, 21
RATE_DAYS = 14
"""The rate is of two windows of the recent length, so many days apart."""
LEAST_RECENT, LEAST_OWN = 3, 14
"""Days with values that a series needs in each window."""
LEAST_PEERS = 20
NODES_IN_BLOCK = 100
SAMPLED_NODES = 1000
"""Past weeks only set a threshold, so the series of about so many nodes tell enough."""
DRAWS = 1 << 20
"""A series is drawn by the first 20 of the 64 bits of its name's hash."""
_TABLES = (
    """
CREATE TEMP TABLE names (series UBIGINT, node VARCHAR, subject VARCHAR, name VARCHAR, unit VARCHAR, segment BIGINT,
  anchor INT, at_least DOUBLE, at_most DOUBLE)
""",
    """
CREATE TEMP TABLE changes (series UBIGINT, anchor INT, recent DOUBLE, day_before DOUBLE, two_before DOUBLE, own DOUBLE,
  earlier DOUBLE)
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
_ROWS = """
CREATE OR REPLACE TEMP TABLE block AS
SELECT m.node, m.subject, m.name, m.unit, coalesce(s.segment, 0) AS segment, m.at_least, m.at_most, m.time_s, m.value,
  hash(m.node, m.subject, m.name, m.unit, coalesce(s.segment, 0)) AS series, (m.time_s // 86400)::INT AS day
FROM measurements m LEFT JOIN segments s
  ON s.node = m.node AND s.subject = m.subject AND m.time_s >= s.since_s AND m.time_s < s.until_s
WHERE m.node >= $low AND m.node <= $high AND isfinite(m.value) AND m.time_s >= $first
"""
_NAMES = """
INSERT INTO names
SELECT series, any_value(node), any_value(subject), any_value(name), any_value(unit), any_value(segment), $anchor,
  arg_max(at_least, time_s), arg_max(at_most, time_s)
FROM block WHERE day > $anchor - $recent AND day <= $anchor AND (series >> 44)::INT < $draws
GROUP BY series
"""
_DAYS = """
CREATE OR REPLACE TEMP TABLE days AS
SELECT series, day,
  CASE WHEN count(*) > 2 THEN (sum(value) - max(value) - min(value)) / (count(*) - 2) ELSE sum(value) / count(*) END
    AS value
FROM block GROUP BY ALL
"""
"""The value of a day is the mean without its largest and its smallest value."""
_STEADY = """
CREATE OR REPLACE TEMP TABLE steady AS SELECT series FROM days GROUP BY series HAVING min(value) = max(value)
"""
_MOVING = "CREATE OR REPLACE TEMP TABLE moving AS SELECT * FROM days ANTI JOIN steady USING (series)"
_CHANGES = """
INSERT INTO changes
SELECT series, $anchor,
  median(value) FILTER (day > $anchor - $recent) AS recent,
  median(value) FILTER (day > $anchor - 1 - $recent AND day <= $anchor - 1) AS day_before,
  median(value) FILTER (day > $anchor - 2 - $recent AND day <= $anchor - 2) AS two_before,
  median(value) FILTER (day <= $anchor - $own_to) AS own,
  median(value) FILTER (day > $anchor - $rate_days - $recent AND day <= $anchor - $rate_days) AS earlier
FROM moving WHERE day > $anchor - $own_from AND day <= $anchor AND (series >> 44)::INT < $draws
GROUP BY series
HAVING count(*) FILTER (day > $anchor - $recent) >= $least_recent
  AND count(*) FILTER (day <= $anchor - $own_to) >= $least_own
UNION ALL
SELECT series, $anchor, 0, 0, 0, 0, 0
FROM days SEMI JOIN steady USING (series)
WHERE day > $anchor - $own_from AND day <= $anchor AND (series >> 44)::INT < $draws
GROUP BY series
HAVING count(*) FILTER (day > $anchor - $recent) >= $least_recent
  AND count(*) FILTER (day <= $anchor - $own_to) >= $least_own
"""
"""What never changes is a peer too, and costs no median."""
_SCORES = """
CREATE TEMP TABLE scores AS
WITH placed AS (
  SELECT n.*, c.own, c.earlier, c.recent, c.recent - c.own AS change, c.day_before - c.own AS change_before,
    c.two_before - c.own AS change_two,
    coalesce(s.serial, '') AS serial, coalesce(s.sku, '') AS sku, coalesce(s.firmware, '') AS firmware,
    coalesce(s.rack, '') AS rack, coalesce(s.position, '') AS position,
    CASE WHEN s.since_s // 86400 > n.anchor - $own_from THEN s.since_s // (7 * 86400) ELSE 0 END AS firmware_week
  FROM changes c JOIN names n USING (series, anchor)
  LEFT JOIN segments s ON s.node = n.node AND s.subject = n.subject AND s.segment = n.segment
    AND (n.anchor + 1) * 86400.0 > s.since_s AND (n.anchor + 1) * 86400.0 <= s.until_s
  WHERE n.segment = 0 OR s.node IS NOT NULL
), groups AS (
  SELECT anchor, name, unit, sku, firmware, firmware_week, count(*) AS peers, median(change) AS peers_change,
    mad(change) AS usual, median(change_before) AS middle_before, mad(change_before) AS usual_before,
    median(change_two) AS middle_two, mad(change_two) AS usual_two
  FROM placed GROUP BY ALL
), roughs AS (
  SELECT anchor, name, unit, sku, firmware, firmware_week, avg(abs(change - peers_change)) AS rough,
    avg(abs(change_before - middle_before)) AS rough_before, avg(abs(change_two - middle_two)) AS rough_two
  FROM placed JOIN groups USING (anchor, name, unit, sku, firmware, firmware_week) GROUP BY ALL
), scored AS (
  SELECT placed.*, peers, peers_change, z(change, peers_change, usual, rough) AS z,
    z(change_before, middle_before, usual_before, rough_before) AS z_before,
    z(change_two, middle_two, usual_two, rough_two) AS z_two
  FROM placed JOIN groups USING (anchor, name, unit, sku, firmware, firmware_week)
    JOIN roughs USING (anchor, name, unit, sku, firmware, firmware_week)
)
SELECT *, worse(z, at_least, at_most) AS worse, worse(coalesce(z_before, 0), at_least, at_most) AS worse_before,
  worse(coalesce(z_two, 0), at_least, at_most) AS worse_two
FROM scored
"""
_MACROS = """
CREATE TEMP MACRO z(change, middle, usual, rough) AS
  CASE WHEN change = middle THEN 0.0
       ELSE (change - middle) / CASE WHEN usual > 0 THEN 1.4826 * usual ELSE 1.2533 * rough END END;
CREATE TEMP MACRO worse(z, at_least, at_most) AS
  CASE WHEN at_most IS NOT NULL AND at_least IS NULL THEN z
       WHEN at_least IS NOT NULL AND at_most IS NULL THEN -z ELSE abs(z) END
"""
"""`worse`: the score in the direction of the limit, in both directions without one."""
_COUNT = """
SELECT count(*) FILTER (peers >= $least), count(*) FILTER (peers < $least), count(DISTINCT node)
FROM scores WHERE anchor = $today
"""
_PAST = """
WITH suspects AS (SELECT node, subject, name FROM scores WHERE anchor = $today AND worse >= $suspect)
SELECT worse FROM scores ANTI JOIN failures USING (node, subject) ANTI JOIN suspects USING (node, subject, name)
WHERE anchor < $today AND peers >= $least ORDER BY worse DESC LIMIT $most
"""
_ABOVE = """
SELECT node, subject, name, unit, serial, sku, firmware, rack, position, own, earlier, recent, change, peers_change,
  peers, at_least, at_most, z, worse
FROM scores
WHERE anchor = $today AND peers >= $least AND worse >= $threshold
  AND (worse_before >= $threshold OR worse_two >= $threshold)
ORDER BY worse DESC, node, subject, name
"""
_SIZES = """
SELECT name, rack, position, sku, firmware, count(*) FROM scores
WHERE anchor = $today AND peers >= $least AND list_contains($names, name) GROUP BY ALL
"""


class ChangeScore(NamedTuple):
    """A series on one day. `z`: its score, up is positive. `worse`: towards its limit. `peers`: with itself."""

    node: str
    subject: str
    name: str
    unit: str
    serial: str
    sku: str
    firmware: str
    rack: str
    position: str
    own: float
    earlier: float | None
    recent: float
    change: float
    peers_change: float
    peers: int
    at_least: float | None
    at_most: float | None
    z: float
    worse: float

    @property
    def rate(self) -> float:
        """How much it changes in a day: of the last two weeks, where there are values, else of the whole time."""
        if self.earlier is not None:
            return (self.recent - self.earlier) / RATE_DAYS
        return self.change / ((OWN_FROM + OWN_TO - RECENT_DAYS) / 2)


class GroupSize(NamedTuple):
    """How many series of a measurement share these traits."""

    name: str
    rack: str
    position: str
    sku: str
    firmware: str
    size: int


class SeriesCount(NamedTuple):
    """Series with enough peers, series without, and nodes."""

    judged: int
    cannot_tell: int
    nodes: int


@dataclass(frozen=True, slots=True)
class ChangeScores:
    """The scores of all series at `today`, and of some nodes in past weeks. Days count since 1970."""

    database: DuckDBPyConnection
    today: int

    def count(self) -> SeriesCount:
        """Return how many series there are today."""
        row = self.database.execute(_COUNT, {"today": self.today, "least": LEAST_PEERS}).fetchone()
        assert row is not None, "a count is one row"
        return SeriesCount._make(row)

    def list_past(self, most: int, suspect: float) -> list[float]:
        """Return the worst scores of past weeks, the worst first, of healthy parts.

        Left out are parts that have failed, and series that score `suspect` or more today.
        """
        asked = {"today": self.today, "least": LEAST_PEERS, "most": most, "suspect": suspect}
        return [row[0] for row in self.database.execute(_PAST, asked).fetchall()]

    def find_above(self, threshold: float) -> list[ChangeScore]:
        """Return what is above a threshold today and on one of the two days before, the worst first."""
        asked = {"today": self.today, "least": LEAST_PEERS, "threshold": threshold}
        return [ChangeScore._make(row) for row in self.database.execute(_ABOVE, asked).fetchall()]

    def size_groups(self, names: Sequence[str]) -> Iterator[GroupSize]:
        """Yield how many series of these measurements share rack, position, SKU and firmware today."""
        asked = {"today": self.today, "least": LEAST_PEERS, "names": list(names)}
        return map(GroupSize._make, self.database.execute(_SIZES, asked).fetchall())


def score_changes(database: DuckDBPyConnection, today: int, weeks: Sequence[int]) -> ChangeScores:
    """Score all series at `today`, and those of a sample at past `weeks` (days). Nodes are read in blocks."""
    database.execute(_MACROS)
    database.execute(_SEGMENTS)
    for table in _TABLES:
        database.execute(table)
    nodes = [row[0] for row in database.execute("SELECT DISTINCT node FROM measurements ORDER BY node").fetchall()]
    first = (min([today, *weeks]) - OWN_FROM) * 86_400.0
    windows = {"recent": RECENT_DAYS, "own_to": OWN_TO, "own_from": OWN_FROM, "rate_days": RATE_DAYS}
    windows |= {"least_recent": LEAST_RECENT, "least_own": LEAST_OWN}
    for start in range(0, len(nodes), NODES_IN_BLOCK):
        block = nodes[start : start + NODES_IN_BLOCK]
        database.execute(_ROWS, {"low": block[0], "high": block[-1], "first": first})
        for step in (_DAYS, _STEADY, _MOVING):
            database.execute(step)
        for anchor in (today, *weeks):
            share = 1.0 if anchor == today else min(1.0, SAMPLED_NODES / len(nodes))
            part = {"anchor": anchor, "draws": int(share * DRAWS)}
            database.execute(_NAMES, {**part, "recent": RECENT_DAYS})
            database.execute(_CHANGES, {**part, **windows})
    database.execute(_SCORES, {"own_from": OWN_FROM})
    return ChangeScores(database, today)
