"""What the rule would have said in the past weeks, and what came of it: crossings of limits, and failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from assay.decide.trends.day_comparison import find_crossing
from assay.decide.trends.days import HORIZON_DAYS
from assay.decide.trends.series import SCORE_COLUMNS, ChangeScore, make_score
from assay.decide.trends.warning_record import ClosedWarning, FailuresSeen, ForecastFactors, Outcome, learn_factors

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Part = tuple[str, str]
"""A node and a place in it."""
RULE = "change"
LEAST_READ = 0.8
"""A warning is wrong only if its part was read on so many of the days."""
_PAST = """
FROM past_scores LEFT JOIN past_beyond USING (node, subject, name, unit)
  LEFT JOIN (SELECT place, segment, max(last_day) AS ends FROM intervals GROUP BY ALL) USING (place, segment)
WHERE NOT is_of_rack AND peers >= $least AND worse >= $threshold
  AND (worse_before >= $threshold OR worse_two >= $threshold)
ORDER BY anchor, node, subject, name
"""
_FAILED = """
SELECT node, subject, floor(time_s / 86400)::INT FROM failures
WHERE (hash(node) >> 44)::INT < (SELECT draws FROM fleet_size) ORDER BY ALL
"""


class PastWarning(NamedTuple):
    """A part that was named on a past day. `crossed`: when its limit was crossed later.

    `ends`: the last day of the part there. `is_new`: a warning, and not the same one as some weeks before.
    """

    day: int
    score: ChangeScore
    days_later: int
    crossed: int | None
    ends: int | None
    is_new: bool = True

    @property
    def part(self) -> Part:
        """Whose warning it is."""
        return self.score.node, self.score.subject


def list_past_warnings(database: DuckDBPyConnection, threshold: float, least: int) -> list[PastWarning]:
    """Return which series the rule would have named in the past weeks.

    It is a new warning after 30 quiet days, unless the series is beyond its limit already.
    """
    rows = database.sql(_PAST, params={"threshold": threshold, "least": least})
    shown = rows.project(f"anchor, {SCORE_COLUMNS}, days_later, coalesce(days, []), ends")
    last: dict[tuple[str, ...], int] = {}
    given = []
    for anchor, *row, days_later, beyond, ends in shown.fetchall():
        score = make_score(row)
        series = score.node, score.subject, score.name, score.unit
        is_quiet = anchor - last.get(series, anchor - HORIZON_DAYS) >= HORIZON_DAYS
        is_new = is_quiet and not set(beyond) & {anchor, anchor - 1}
        given.append(PastWarning(anchor, score, days_later, find_crossing(beyond, anchor), ends, is_new))
        last[series] = anchor
    return given


def list_failure_days(database: DuckDBPyConnection) -> Mapping[Part, list[int]]:
    """Return the days of the failures of parts, of the nodes that are drawn."""
    failed: dict[Part, list[int]] = {}
    for node, subject, day in database.execute(_FAILED).fetchall():
        failed.setdefault((node, subject), []).append(day)
    return failed


def list_days_beyond(database: DuckDBPyConnection) -> Mapping[Part, list[list[int]]]:
    """Return the days on which series of parts were beyond their limits, of the nodes that are drawn."""
    beyond: dict[Part, list[list[int]]] = {}
    for node, subject, days in database.execute("SELECT node, subject, days FROM past_beyond").fetchall():
        beyond.setdefault((node, subject), []).append(days)
    return beyond


def close_warnings(
    warnings: Sequence[PastWarning], failed: Mapping[Part, Sequence[int]], today: int
) -> Iterator[ClosedWarning]:
    """Yield what came of the warnings whose 30 days are over. The day of the warning itself is too late."""
    for warning in warnings:
        if not warning.is_new or warning.day + HORIZON_DAYS >= today:
            continue
        came = _find_end(warning, failed.get(warning.part, ()))
        came = None if came is None or came > warning.day + HORIZON_DAYS else came
        is_over = warning.ends is not None and warning.ends < warning.day + HORIZON_DAYS
        was_read = warning.days_later >= LEAST_READ * HORIZON_DAYS
        outcome: Outcome = "right" if came else "cannot_tell" if is_over or not was_read else "wrong"
        yield ClosedWarning(RULE, warning.score.days_left, came and float(came - warning.day), outcome)


def learn_past_factors(past: Sequence[PastWarning], failed: Mapping[Part, Sequence[int]]) -> ForecastFactors | None:
    """Return how wrong straight lines were, of each week on which a part was named; None below 30 warnings.

    A range is shown as long as a warning stands, and not only for the next 30 days: so each of these weeks counts.
    """
    ends = [(warning, _find_end(warning, failed.get(warning.part, ()))) for warning in past if warning.score.days_left]
    came = [(warning, end) for warning, end in ends if end is not None]
    warnings = sum(warning.is_new for warning, _ in came)
    return learn_factors(
        (ClosedWarning(RULE, warning.score.days_left, float(end - warning.day), "right") for warning, end in came),
        warnings,
    )


def _find_end(warning: PastWarning, failed: Sequence[int]) -> int | None:
    """Return the day on which the limit was crossed or the part failed."""
    is_within = warning.crossed is not None and (warning.ends is None or warning.crossed <= warning.ends)
    crossed = [warning.crossed] if warning.crossed is not None and is_within else []
    return min((day for day in [*crossed, *failed] if day > warning.day), default=None)


def count_failures(
    warnings: Sequence[PastWarning],
    failed: Mapping[Part, Sequence[int]],
    beyond: Mapping[Part, Sequence[Sequence[int]]],
    since: int,
) -> FailuresSeen:
    """Return how many of the failures and crossings after a day were warned of. Within 30 days of a part, they are one.

    `beyond`: for each series of a part, the days on which it was beyond its limit.
    """
    signs: dict[Part, list[int]] = {}
    for part, each in beyond.items():
        crossings = [find_crossing(days, days[0]) for days in each]
        signs[part] = [day for day in crossings if day and day > since]
    with_sign = foreseen_with_sign = every = foreseen = 0
    for part in signs.keys() | failed.keys():
        days = sorted([*signs.get(part, ()), *(day for day in failed.get(part, ()) if day > since)])
        for event in _merge_days(days):
            has_sign = any(event <= day < event + HORIZON_DAYS for day in signs.get(part, ()))
            is_foreseen = any(
                warning.is_new and warning.part == part and warning.day < event <= warning.day + HORIZON_DAYS
                for warning in warnings
            )
            every, foreseen = every + 1, foreseen + is_foreseen
            with_sign, foreseen_with_sign = with_sign + has_sign, foreseen_with_sign + (has_sign and is_foreseen)
    return FailuresSeen(with_sign, foreseen_with_sign, every, foreseen)


def _merge_days(days: Sequence[int]) -> Iterator[int]:
    last = None
    for day in days:
        if last is None or day - last >= HORIZON_DAYS:
            yield day
            last = day
