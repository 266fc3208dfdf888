"""The days of the parts that get worse, and of their peers, for pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from assay.decide.trends.change_warnings import ChangeWarning
from assay.decide.trends.day_queries import DAY_0

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SHOWN, DAYS = 40, 90
PEER_NODES = 300
"""The band of the peers is that of about so many nodes."""
_VALUES = """
SELECT w.id, day, readable(median(value), any_value(scale))
FROM measurements m JOIN (SELECT unnest($asked) AS w)
  ON m.node = w.node AND m.subject = w.subject AND m.name = w.name AND m.unit = w.unit
WHERE isfinite(value) AND date >= $first GROUP BY ALL ORDER BY ALL
"""
_BANDS = """
WITH asked AS (SELECT DISTINCT w.name, w.unit, w.sku FROM (SELECT unnest($asked) AS w))
SELECT a.name, a.unit, a.sku, day, quantile_cont(readable(value, scale), [0.1, 0.9])
FROM measurements m JOIN asked a ON m.name = a.name AND m.unit = a.unit
LEFT JOIN intervals i ON i.node = m.node AND i.subject = m.subject AND m.day >= i.first_day AND m.day <= i.last_day
WHERE coalesce(i.sku, '') = a.sku AND isfinite(value) AND date >= $first
  AND (hash(m.node) % $nodes)::BIGINT < $wanted
GROUP BY ALL ORDER BY ALL
"""


class WarningCourse(NamedTuple):
    """A part's value on each day (days since 1970), and eight in ten of its peers between `low` and `high`."""

    days: list[int]
    values: list[float]
    peer_days: list[int]
    low: list[float]
    high: list[float]

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return self._asdict()


def read_courses(database: DuckDBPyConnection, warnings: Sequence[ChangeWarning], today: int) -> list[WarningCourse]:
    """Return the courses of the first warnings, in their order. The database has what `find_trends` left in it."""
    scores = [one.score for one in warnings[:SHOWN]]
    if not scores:
        return []
    named = [
        {"id": number, "node": one.node, "subject": one.subject, "name": one.name, "unit": one.unit, "sku": one.sku}
        for number, one in enumerate(scores)
    ]
    asked = {"asked": named, "first": DAY_0 + timedelta(days=today - DAYS)}
    own: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for number, day, value in database.execute(_VALUES, asked).fetchall():
        own[number].append((day, value))
    count = database.execute("SELECT nodes FROM fleet_size").fetchall()[0][0]
    bands: dict[tuple[str, str, str], list[tuple[int, float, float]]] = defaultdict(list)
    for name, unit, sku, day, (low, high) in database.execute(
        _BANDS, {**asked, "nodes": max(1, count), "wanted": PEER_NODES}
    ).fetchall():
        bands[name, unit, sku].append((day, low, high))
    return [_make_course(own[number], bands[one.name, one.unit, one.sku]) for number, one in enumerate(scores)]


def _make_course(own: Sequence[tuple[int, float]], band: Sequence[tuple[int, float, float]]) -> WarningCourse:
    return WarningCourse(
        [day for day, _ in own],
        [value for _, value in own],
        [day for day, _, _ in band],
        [low for _, low, _ in band],
        [high for _, _, high in band],
    )
