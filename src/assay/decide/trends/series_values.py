"""The values of the few series that are named: what each read before, two weeks ago, and lately, and its limits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from math import isinf
from typing import TYPE_CHECKING, Any, NamedTuple

from assay.decide.trends.compared_days import OWN_FROM, OWN_TO, RECENT_DAYS
from assay.decide.trends.day_queries import DAY_0, quote_text, run
from assay.decide.trends.part_intervals import SHARED_TRAITS

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
