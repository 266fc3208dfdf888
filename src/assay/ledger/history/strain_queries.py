"""What came nearest to its limit in a day: by pool, check and measurement, over all parts of the fleet.

The strain of a value is its share of its limit: 1 at the limit, more beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from assay.ledger.history import parquet_files
from assay.ledger.history.queries import OutcomeHistory, OutcomeQuery

NEAREST_PARTS, CANDIDATES = 3, 24
DAY = 1
_STRAINED = """
WITH strained AS (
  SELECT split_part(subject, '/', 1) AS pool, check_, name, subject, value, unit,
    greatest(coalesce(value / nullif(at_most, 0), 0), coalesce(at_least / nullif(value, 0), 0)) AS strain
  FROM among($files, $nodes, $subjects, $checks, $pattern)
  WHERE isfinite(value) AND coalesce(at_least, at_most) IS NOT NULL
)
SELECT pool, check_, name, any_value(unit), approx_count_distinct(subject),
  min(value), approx_quantile(value, 0.5), max(value), list_distinct(arg_max(subject, strain, $most))
FROM strained WHERE $pool = '' OR pool = $pool
GROUP BY pool, check_, name ORDER BY max(strain) DESC, check_, name, pool LIMIT $groups
"""
"""Groups by measurement only, not by part: a fleet has millions of parts, and their newest values need gigabytes."""
_NEWEST = """
SELECT check_, name, subject, any_value(node), max(run_at) AS seen_at, arg_max(value, run_at),
  arg_max(struct_pack(low := at_least, high := at_most, source := source), run_at)
FROM among($files, $nodes, $subjects, $checks, $pattern) WHERE isfinite(value) GROUP BY check_, name, subject
"""
_COUNT = """
SELECT count(DISTINCT (split_part(subject, '/', 1), check_, name))
FROM among($files, $nodes, $subjects, $checks, $pattern)
WHERE isfinite(value) AND coalesce(at_least, at_most) IS NOT NULL
  AND ($pool = '' OR split_part(subject, '/', 1) = $pool)
"""
_COURSE = """
SELECT check_, name, subject, max(run_at) AS seen_at, arg_max(value, run_at)
FROM among($files, $nodes, $subjects, $checks, $pattern) WHERE isfinite(value)
GROUP BY check_, name, subject, left(run_at, 13) ORDER BY seen_at
"""
"""One value an hour: the last one."""


@dataclass(frozen=True, slots=True)
class StrainedPart:
    """A part, its newest value with time (ISO 8601 UTC) and limit, and the strain. `source`: file and line."""

    subject: str
    node: str
    at: str
    value: float
    strain: float
    at_least: float | None
    at_most: float | None
    source: str


@dataclass(frozen=True, slots=True)
class StrainedMeasurement:
    """A measurement of a pool: about how many parts have it, their values of the last day, and the nearest parts.

    `nearest`: of the parts that came nearest to the limit within a day, those that are nearest now.
    """

    pool: str
    check: str
    name: str
    unit: str
    parts: int
    low: float
    middle: float
    high: float
    nearest: tuple[StrainedPart, ...]


SeriesName = tuple[str, str, str]
"""Check, measurement and subject."""


def query_strain(
    history: OutcomeHistory, pool: str = "", check: str = "", *, most: int = 60
) -> tuple[list[StrainedMeasurement], int]:
    """Return the `most` strained measurements of the last day that have a limit, and how many there are in all.

    `check` is a glob; "" restricts neither pool nor check.
    """
    query, table = OutcomeQuery(pattern=check), parquet_files.MEASUREMENTS_TABLE
    groups = history.fetch(_STRAINED, query, days=DAY, table=table, pool=pool, most=CANDIDATES, groups=most)
    total = history.fetch(_COUNT, query, days=DAY, table=table, pool=pool) if len(groups) == most else [(len(groups),)]
    subjects = {subject for row in groups for subject in row[-1]}
    parts = _query_newest(history, OutcomeQuery(subjects=subjects, checks={row[1] for row in groups})) if groups else {}
    strained = []
    for group, check_, name, unit, count, low, middle, high, candidates in groups:
        near = [parts[check_, name, subject] for subject in candidates]
        nearest = tuple(sorted(near, key=lambda part: (-part.strain, part.subject))[:NEAREST_PARTS])
        strained.append(StrainedMeasurement(group, check_, name, unit, count, low, middle, high, nearest))
    return sorted(strained, key=lambda measurement: -measurement.nearest[0].strain), int(total[0][0])


def _query_newest(history: OutcomeHistory, query: OutcomeQuery) -> dict[SeriesName, StrainedPart]:
    rows = history.fetch(_NEWEST, query, days=DAY, table=parquet_files.MEASUREMENTS_TABLE)
    parts = {}
    for check, name, subject, node, at, value, bound in rows:
        strain = value / bound["high"] if bound["high"] else 0.0
        if bound["low"]:
            below = bound["low"] / value if value else math.inf
            strain = max(strain, below) if bound["high"] else below
        parts[check, name, subject] = StrainedPart(subject, node, at, value, strain, *bound.values())
    return parts


def query_course(
    history: OutcomeHistory, series: Collection[SeriesName], *, days: int
) -> dict[SeriesName, list[tuple[str, float]]]:
    """Return the points (time, value) of some series, oldest first, one an hour."""
    query = OutcomeQuery(subjects={subject for _, _, subject in series}, checks={check for check, _, _ in series})
    rows = history.fetch(_COURSE, query, days=days, table=parquet_files.MEASUREMENTS_TABLE) if series else []
    courses: dict[SeriesName, list[tuple[str, float]]] = {name: [] for name in series}
    for check, name, subject, at, value in rows:
        if (points := courses.get((check, name, subject))) is not None:
            points.append((at, value))
    return courses
