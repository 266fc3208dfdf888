"""What checks and limits showed of parts that failed, before the failure and after it, from history.

A sign is a failed check on the same part, or one that means the same fault on the same node. A check that fails often
on nodes that did not fail is no sign.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from assay.results.history.outcome_and_pool_queries import OutcomeHistory, OutcomeQuery
from assay.results.history.parquet_files import MEASUREMENTS_TABLE
from assay.trends.missed.service_failures import ServiceFailure
from assay.trends.warnings.warning_history import TrendWarning

HORIZON = timedelta(days=30)
"""An older sign foretells nothing: assay counts a warning as right for so long."""
LEAST_LEAD = timedelta(hours=1)
"""What is seen within the hour before a failure is the failure."""
COMMON_SHARE = 0.1
"""A check that fails on more than this share of outcomes elsewhere says nothing about one part."""
SignKind = Literal["check", "limit", "warning"]
Foresight = Literal["before", "then", "never", "cannot tell"]
"""When the first sign of a failure was seen: before it, only then, never, or nobody can tell."""
_FAILED = """
WITH failures AS (SELECT f.* FROM (SELECT unnest($failures) AS f)),
judged AS (
  SELECT node, split_part(subject, '/', 3) AS place, check_, fault, verdict, observed OR known <> '' AS excused,
    coalesce(epoch(try_cast(nullif(evidence_at, '') AS TIMESTAMP)), epoch(run_at::TIMESTAMP)) AS time_s
  FROM among($files, $nodes, $subjects, $checks, $pattern) WHERE verdict IN ('pass', 'fail')
), seen AS (
  SELECT f.id, j.*, j.time_s < f.seen_s AS early, j.place = f.place OR j.fault = f.fault AS same
  FROM judged j JOIN failures f ON j.node = f.node AND j.time_s >= f.from_s AND j.time_s <= f.until_s
)
SELECT id, early, CASE WHEN same AND verdict = 'fail' THEN check_ ELSE '' END AS failed, min(time_s),
  bool_and(excused)
FROM seen GROUP BY ALL
"""
_CROSSED = """
WITH failures AS (SELECT f.* FROM (SELECT unnest($failures) AS f))
SELECT f.id, check_, arg_min(name, run_at), arg_min(unit, run_at), arg_min(value, run_at),
  arg_min(CASE WHEN value > at_most THEN at_most ELSE at_least END, run_at)
FROM among($files, $nodes, $subjects, $checks, $pattern) m
JOIN failures f ON m.node = f.node AND split_part(subject, '/', 3) = f.place
WHERE (value > at_most OR value < at_least)
  AND epoch(run_at::TIMESTAMP) >= f.from_s AND epoch(run_at::TIMESTAMP) <= f.until_s
GROUP BY f.id, check_
"""
_USUAL = """
SELECT check_, count_if(verdict = 'fail') / count(*)
FROM among($files, $nodes, $subjects, $checks, $pattern)
WHERE verdict IN ('pass', 'fail') AND NOT list_contains($failing, node) GROUP BY check_
"""
USUAL_DAYS = 7
"""The days before the moment of asking tell how often a check usually fails."""
_MEANT = """
SELECT fault, list(DISTINCT check_ ORDER BY check_) FROM among($files, $nodes, $subjects, $checks, $pattern)
WHERE list_contains($faults, fault) GROUP BY fault
"""


class EarlySign(NamedTuple):
    """What showed a failure: a check, with the value that crossed its limit; or the rule of a warning, with its reason.

    `at`: the first time. `excused`: a check on trial, or one that a known issue excuses, so it decided nothing.
    """

    kind: SignKind
    name: str
    at: datetime
    what: str = ""
    excused: bool = False


class SignSearch(NamedTuple):
    """The signs before a failure and since, the first one first. `was_read`: a check judged the node before it."""

    early: list[EarlySign]
    late: list[EarlySign]
    was_read: bool


class CheckSigns(NamedTuple):
    """What was found of each failure, and the checks that fail too often to be a sign, with the share that fails."""

    found: list[SignSearch]
    common: dict[str, float]


def search_signs(history: OutcomeHistory, failures: Sequence[ServiceFailure], days: int) -> CheckSigns:
    """Return what history shows of each failure, in their order. `days`: how far back the failures reach."""
    if not failures:
        return CheckSigns([], {})
    rows = [_describe(number, one) for number, one in enumerate(failures)]
    query = OutcomeQuery(nodes={one.node for one in failures})
    reach = days + HORIZON.days
    judged = history.fetch(_FAILED, query, days=reach, failures=rows)
    crossed = history.fetch(_CROSSED, query, days=reach, table=MEASUREMENTS_TABLE, failures=rows)
    common = _find_common(history, {row[2] for row in judged if row[2]}, query.nodes)
    values = {row[:2]: _describe_crossing(*row[2:]) for row in crossed}
    found = [SignSearch([], [], was_read=False) for _ in failures]
    for number, is_early, check, first_s, excused in sorted(judged, key=lambda row: row[3]):
        one = found[number]
        found[number] = one._replace(was_read=one.was_read or is_early)
        if check and check not in common:
            what = values.get((number, check), "")
            seen = datetime.fromtimestamp(first_s, UTC)
            sign = EarlySign("limit" if what else "check", check, seen, what, excused)
            (one.early if is_early else one.late).append(sign)
    return CheckSigns(found, common)


def add_warnings(signs: CheckSigns, failures: Sequence[ServiceFailure], warnings: Iterable[TrendWarning]) -> CheckSigns:
    """Return the signs with the warnings of trends before each failure, the first one first."""
    of_part: dict[tuple[str, str], list[TrendWarning]] = defaultdict(list)
    for warning in warnings:
        of_part[warning.node, warning.content.place].append(warning)
    found = []
    for failure, search in zip(failures, signs.found, strict=True):
        earlier = [
            EarlySign("warning", one.content.rule, one.at, one.content.reason)
            for one in of_part[failure.node, failure.place]
            if _find_begin(failure) <= one.at < failure.seen_at - LEAST_LEAD
        ]
        found.append(search._replace(early=sorted([*search.early, *earlier], key=lambda sign: sign.at)))
    return CheckSigns(found, signs.common)


def list_meaning_checks(history: OutcomeHistory, faults: Collection[str], days: int) -> dict[str, list[str]]:
    """Return the checks that mean each of these faults, as far as they were judged."""
    return dict(history.fetch(_MEANT, days=days, faults=sorted(faults))) if faults else {}


def _find_common(history: OutcomeHistory, checks: Collection[str], failing: Collection[str]) -> dict[str, float]:
    if not checks:
        return {}
    rows = history.fetch(_USUAL, OutcomeQuery(checks=checks), days=USUAL_DAYS, failing=sorted(failing))
    return {check: share for check, share in rows if share > COMMON_SHARE}


def _find_begin(one: ServiceFailure) -> datetime:
    """Return from when on a sign foretells the failure."""
    return max(one.served_from, one.seen_at - HORIZON)


def _describe(number: int, one: ServiceFailure) -> dict[str, object]:
    times = {"from_s": _find_begin(one), "seen_s": one.seen_at - LEAST_LEAD, "until_s": one.until}
    names = {"id": number, "node": one.node, "place": one.place, "fault": one.fault}
    return {**names, **{name: at.timestamp() for name, at in times.items()}}


def _describe_crossing(name: str, unit: str, value: float, limit: float) -> str:
    return f"{name} {value:g} {'>' if value > limit else '<'} {limit:g} {unit}".rstrip()
