"""How far the change of each series is from those of its peers.

Score: the distance of its change from the median of its peers' changes, in robust standard deviations. Peers have the
same measurement, unit, SKU and firmware.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from assay.trends.peers.series_changes import OWN_FROM, OWN_TO, RATE_DAYS, RECENT_DAYS, measure_changes

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LEAST_PEERS = 20
_SCORES = """
CREATE TEMP TABLE scores AS
WITH placed AS (
  SELECT n.*, anchor, change, change_before, change_two, coalesce(s.serial, '') AS serial, coalesce(s.sku, '') AS sku,
    coalesce(s.firmware, '') AS firmware, coalesce(s.rack, '') AS rack, coalesce(s.position, '') AS position
  FROM changes c JOIN names n USING (series)
  LEFT JOIN segments s ON s.node = n.node AND s.subject = n.subject AND s.segment = n.segment
    AND (anchor + 1) * 86400.0 > s.since_s AND (anchor + 1) * 86400.0 <= s.until_s
  WHERE n.segment = 0 OR s.node IS NOT NULL
), groups AS (
  SELECT anchor, name, unit, sku, firmware, count(*) AS peers, median(change) AS peers_change,
    mad(change) AS usual, median(change_before) AS middle_before, mad(change_before) AS usual_before,
    median(change_two) AS middle_two, mad(change_two) AS usual_two
  FROM placed GROUP BY ALL
), roughs AS (
  SELECT anchor, name, unit, sku, firmware, avg(abs(change - peers_change)) AS rough,
    avg(abs(change_before - middle_before)) AS rough_before, avg(abs(change_two - middle_two)) AS rough_two
  FROM placed JOIN groups USING (anchor, name, unit, sku, firmware) GROUP BY ALL
), scored AS (
  SELECT placed.*, peers, peers_change, z(change, peers_change, usual, rough) AS z,
    z(change_before, middle_before, usual_before, rough_before) AS z_before,
    z(change_two, middle_two, usual_two, rough_two) AS z_two
  FROM placed JOIN groups USING (anchor, name, unit, sku, firmware)
    JOIN roughs USING (anchor, name, unit, sku, firmware)
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
WITH suspects AS (SELECT node, subject, name FROM scores WHERE anchor = $today AND worse >= $suspect),
moved AS (
  SELECT anchor, name, rack FROM scores WHERE rack <> ''
  GROUP BY ALL HAVING count(*) > 4 AND median(worse) >= $suspect / 2
)
SELECT greatest(worse, worse_before, worse_two) AS worst
FROM scores ANTI JOIN failures USING (node, subject) ANTI JOIN suspects USING (node, subject, name)
  ANTI JOIN moved USING (anchor, name, rack)
WHERE anchor < $today AND peers >= $least ORDER BY worst DESC LIMIT $most
"""
"""Of three days each week, as what is asked daily sees more than one day shows."""
_ABOVE = """
CREATE TEMP TABLE above AS
SELECT node, subject, name, unit, segment, serial, sku, firmware, rack, position, change - peers_change AS apart, peers,
  at_least, at_most, z, worse
FROM scores
WHERE anchor = $today AND peers >= $least AND worse >= $threshold
  AND (worse_before >= $threshold OR worse_two >= $threshold)
"""
_VALUES = """
WITH days AS (
  SELECT a.*, (m.time_s // 86400)::INT AS day, of_day(m.value) AS value
  FROM measurements m JOIN above a USING (node, subject, name, unit) LEFT JOIN segments s
    ON s.node = m.node AND s.subject = m.subject AND m.time_s >= s.since_s AND m.time_s < s.until_s
  WHERE coalesce(s.segment, 0) = a.segment AND isfinite(m.value) AND m.time_s >= ($today - $own_from + 1) * 86400.0
  GROUP BY ALL
), valued AS (
  SELECT * EXCLUDE (day, value), median(value) FILTER (day <= $today - $own_to) AS own,
    median(value) FILTER (day > $today - $rate_days - $recent AND day <= $today - $rate_days) AS earlier,
    median(value) FILTER (day > $today - $recent AND day <= $today) AS recent
  FROM days GROUP BY ALL
)
SELECT node, subject, name, unit, serial, sku, firmware, rack, position, own, earlier, recent, recent - own AS change,
  recent - own - apart AS peers_change, peers, at_least, at_most, z, worse
FROM valued ORDER BY worse DESC, node, subject, name
"""
"""The values themselves are read again, for the few that are named."""
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
        self.database.execute(_ABOVE, {"today": self.today, "least": LEAST_PEERS, "threshold": threshold})
        windows = {"recent": RECENT_DAYS, "own_to": OWN_TO, "own_from": OWN_FROM, "rate_days": RATE_DAYS}
        rows = self.database.execute(_VALUES, {"today": self.today, **windows}).fetchall()
        return [ChangeScore._make(row) for row in rows]

    def size_groups(self, names: Sequence[str]) -> Iterator[GroupSize]:
        """Yield how many series of these measurements share rack, position, SKU and firmware today."""
        asked = {"today": self.today, "least": LEAST_PEERS, "names": list(names)}
        return map(GroupSize._make, self.database.execute(_SIZES, asked).fetchall())


def score_changes(database: DuckDBPyConnection, today: int, weeks: Sequence[int]) -> ChangeScores:
    """Score all series at `today`, and those of a sample at past `weeks` (days)."""
    measure_changes(database, today, weeks)
    database.execute(_MACROS)
    database.execute(_SCORES)
    return ChangeScores(database, today)
