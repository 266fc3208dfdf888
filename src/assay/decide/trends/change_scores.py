"""How far the change of each series is from those of its peers.

Score: the distance of its change from the median of its peers' changes, in robust standard deviations. Peers have the
same measurement, unit, SKU and firmware.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from assay.decide.trends.series import ChangeScore, list_scores, read_values
from assay.model.specs.trend_rules import ChangeDetector

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_HELD_AT = """
CREATE OR REPLACE TEMP TABLE held_at AS
SELECT anchor, place, segment, alike, serial, rack, position, pdu, switch, batch, sku, firmware, driver
FROM placed JOIN intervals USING (place, segment) WHERE first_day <= anchor + 1 AND last_day >= anchor
UNION ALL
SELECT anchor, place, segment, hash('', ''), '', '', '', '', '', '', '', '', ''
FROM placed ANTI JOIN intervals USING (place)
"""
"""Who held each place at the end of a day."""
_SCORES = """
CREATE OR REPLACE TEMP TABLE scores AS
WITH placed AS (
  SELECT c.*, h.alike FROM changes c JOIN held_at h USING (anchor, place, segment)
), groups AS (
  SELECT anchor, measure, alike, count(*) AS peers, median(change) AS peers_change, mad(change) AS usual,
    median(change_before) AS middle_before, mad(change_before) AS usual_before,
    median(change_two) AS middle_two, mad(change_two) AS usual_two
  FROM placed GROUP BY ALL
), roughs AS (
  SELECT anchor, measure, alike, avg(abs(change - peers_change) ORDER BY place) AS rough,
    avg(abs(change_before - middle_before) ORDER BY place) AS rough_before,
    avg(abs(change_two - middle_two) ORDER BY place) AS rough_two
  FROM placed JOIN groups USING (anchor, measure, alike)
  WHERE usual = 0 OR usual_before = 0 OR usual_two = 0 GROUP BY ALL
)
SELECT anchor, place, measure, segment, change, peers_change, peers,
  z(change, peers_change, usual, rough) AS z, worse(z, side) AS worse,
  worse(coalesce(z(change_before, middle_before, usual_before, rough_before), 0), side) AS worse_before,
  worse(coalesce(z(change_two, middle_two, usual_two, rough_two), 0), side) AS worse_two
FROM placed JOIN groups USING (anchor, measure, alike) LEFT JOIN roughs USING (anchor, measure, alike)
"""
_MACROS = """
CREATE OR REPLACE TEMP MACRO z(change, middle, usual, rough) AS
  CASE WHEN change = middle THEN 0.0
       ELSE (change - middle) / CASE WHEN usual > 0 THEN 1.4826 * usual ELSE 1.2533 * rough END END;
CREATE OR REPLACE TEMP MACRO worse(z, side) AS CASE side WHEN 1 THEN z WHEN -1 THEN -z ELSE abs(z) END
"""
"""`worse`: the score in the direction of the limit, in both directions without one."""
_COUNT = """
WITH sizes AS (
  SELECT count(*) AS size FROM (
    SELECT measure, place, segment FROM changes UNION ALL SELECT measure, place, segment FROM resting
  ) JOIN held_at USING (place, segment) GROUP BY measure, alike
)
SELECT coalesce(sum(size) FILTER (size >= $least), 0)::BIGINT, coalesce(sum(size) FILTER (size < $least), 0)::BIGINT,
  (SELECT nodes FROM fleet_size)
FROM sizes
"""
_NAMED = """
CREATE OR REPLACE TEMP TABLE named AS
SELECT p.node, p.subject, m.name, m.unit, h.* EXCLUDE (alike), s.measure, change - peers_change AS apart,
  peers, z, worse, worse_before, worse_two
FROM scores s JOIN held_at h USING (anchor, place, segment) JOIN places p USING (place) JOIN measures m USING (measure)
WHERE peers >= $least AND worse >= $threshold AND (worse_before >= $threshold OR worse_two >= $threshold)
"""
_PAST = """
WITH suspects AS (
  SELECT node, subject, name FROM scores JOIN places USING (place) JOIN measures USING (measure) WHERE worse >= $suspect
)
SELECT greatest(worse, worse_before, worse_two) AS worst
FROM past_scores ANTI JOIN failures USING (node, subject) ANTI JOIN suspects USING (node, subject, name)
WHERE NOT is_of_rack AND peers >= $least ORDER BY worst DESC LIMIT $most
"""
"""Of three days each week, as what is asked daily sees more than one day shows."""
_SIZES = """
SELECT name, [rack, position, pdu, switch, batch, sku, firmware, driver], count(*)
FROM scores JOIN measures USING (measure) JOIN held_at USING (place, segment)
WHERE peers >= $least AND list_contains($names, name) GROUP BY ALL
"""


class GroupSize(NamedTuple):
    """How many series of a measurement share these traits."""

    name: str
    traits: Sequence[str]
    size: int


class SeriesCount(NamedTuple):
    """Series with enough peers, series without, and nodes."""

    judged: int
    cannot_tell: int
    nodes: int


@dataclass(frozen=True, slots=True)
class ChangeScores:
    """The scores of all series today. Days count since 1970."""

    database: DuckDBPyConnection
    today: int
    settings: ChangeDetector

    def count(self) -> SeriesCount:
        """Return how many series there are today."""
        row = self.database.execute(_COUNT, {"least": self.settings.peers_at_least}).fetchone()
        assert row is not None, "a count is one row"
        return SeriesCount._make(row)

    def list_past(self, most: int, suspect: float) -> list[float]:
        """Return the worst scores of past weeks, the worst first, of healthy parts.

        Left out are parts that have failed, series that score `suspect` or more today, and racks that moved as a whole.
        """
        asked = {"least": self.settings.peers_at_least, "most": most, "suspect": suspect}
        return [row[0] for row in self.database.execute(_PAST, asked).fetchall()]

    def find_above(self, threshold: float) -> list[ChangeScore]:
        """Return what is above a threshold today and on one of the two days before, the worst first."""
        self.database.execute(_NAMED, {"least": self.settings.peers_at_least, "threshold": threshold})
        read_values(self.database)
        return list_scores(self.database)

    def size_groups(self, names: Sequence[str]) -> Iterator[GroupSize]:
        """Yield how many series of these measurements share their traits today."""
        asked = {"least": self.settings.peers_at_least, "names": list(names)}
        return map(GroupSize._make, self.database.execute(_SIZES, asked).fetchall())


def score_changes(database: DuckDBPyConnection) -> None:
    """Make the tables `scores` and `held_at` of the tables `changes` and `placed`."""
    for step in (_MACROS, _HELD_AT, _SCORES):
        database.execute(step)
