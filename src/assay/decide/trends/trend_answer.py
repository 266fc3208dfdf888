"""What `assay trends` tells of a moment: findings with what follows, pictures, records of rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from assay.decide.trends.change_scores import ChangeScores
from assay.decide.trends.day_comparison import DayQuestion, compare_days
from assay.decide.trends.days import DAY_0, define_macros, list_weeks
from assay.decide.trends.fleet_tables import make_intervals
from assay.decide.trends.measurement_tables import DAY_S
from assay.decide.trends.raw_counters import judge_counters
from assay.decide.trends.shared_groups import name_shared_groups
from assay.decide.trends.warning_answers import PastRecord, PastRuleAnswer, RuleRecord, SharedGroup, TrendsAnswer
from assay.decide.trends.warning_record import (
    RULE,
    ClosedWarning,
    ForecastFactors,
    close_warnings,
    count_failures,
    judge_record,
    learn_factors,
    learn_past_factors,
    list_days_beyond,
    list_failure_days,
    list_past_warnings,
)
from assay.decide.trends.warning_threshold import ChangeFindings, ChangeWarning, find_change_warnings
from assay.decide.trends.warnings import AdvisedWarning
from assay.model.facts import extend, fact, to_json
from assay.model.specs.trend_rules import ChangeDetector
from assay.model.timestamps import format_time

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class TrendAnswer:
    """The warnings, the worst first, and how they were found. `record`: how the rule fared in past weeks."""

    findings: ChangeFindings
    warnings: list[ChangeWarning]
    groups: list[SharedGroup]
    record: PastRecord
    settings: ChangeDetector

    def make_rule(self) -> PastRuleAnswer:
        """Return how the rule would have fared, and what it says now."""
        findings = self.findings
        return extend(
            PastRuleAnswer,
            self.record,
            name=RULE,
            threshold=round(findings.threshold, 2),
            threshold_from="history" if findings.is_learned else "default",
            alarms_per_1000_node_days=self.settings.alarms_per_1000_node_days,
            series=findings.series.judged,
            warnings=len(self.warnings),
        )


def find_trends(
    database: DuckDBPyConnection,
    as_of: datetime,
    settings: ChangeDetector | None = None,
    closed: Iterable[ClosedWarning] = (),
    recognise_counters: bool = False,
) -> TrendAnswer:
    """Return what gets worse by the tables of a database, see `open_tables`.

    `closed`: warnings of the ledger that have ended. Forecasts learn from what past weeks would have said, or if that
    is too little, from these. `recognise_counters`: by their values, not only by their declared names.
    """
    chosen = settings or ChangeDetector()
    today = int(as_of.timestamp() // DAY_S)
    first = database.execute("SELECT min(day) FROM history_days").fetchall()[0][0]
    weeks = list_weeks(today, first) if first is not None else []
    define_macros(database)
    make_intervals(database)
    counters = judge_counters(database, today, chosen.counters, recognise_counters)
    question = DayQuestion(today, weeks, counters)
    with compare_days(database, question):
        return _conclude(database, question, chosen, closed)


def _conclude(
    database: DuckDBPyConnection, asked: DayQuestion, settings: ChangeDetector, ended: Iterable[ClosedWarning]
) -> TrendAnswer:
    """Return what the scores say."""
    scores = ChangeScores(database, asked.today, settings)
    findings = find_change_warnings(scores, len(asked.weeks))
    record, factors = _look_back(database, asked, findings.threshold, settings.peers_at_least)
    factors = factors or learn_factors(ended)
    warnings = [warning.forecast_by(factors) for warning in findings.warnings]
    names = sorted({warning.score.name for warning in warnings})
    named, groups = name_shared_groups(warnings, scores.size_groups(names))
    return TrendAnswer(findings, named, groups, record, settings)


def _look_back(
    database: DuckDBPyConnection, asked: DayQuestion, threshold: float, least: int
) -> tuple[PastRecord, ForecastFactors | None]:
    """Return how the rule would have fared in the past weeks, and how wrong its straight lines were."""
    past = list_past_warnings(database, threshold, least)
    failed = list_failure_days(database)
    beyond = list_days_beyond(database)
    closed = close_warnings(past, failed, asked.today)
    failures = count_failures(past, failed, beyond, min(asked.weeks, default=asked.today))
    return judge_record(closed, failures), learn_past_factors(past, failed)


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


@fact
class WarningCourse:
    """A part's value on each day (days since 1970), and eight in ten of its peers between `low` and `high`."""

    days: list[int]
    values: list[float]
    peer_days: list[int]
    low: list[float]
    high: list[float]


def read_courses(database: DuckDBPyConnection, warnings: Sequence[ChangeWarning], today: int) -> list[WarningCourse]:
    """Return the courses of the first warnings, in their order. The database has what `find_trends` left in it."""
    scores = [warning.score for warning in warnings[:SHOWN]]
    if not scores:
        return []
    named = [
        {
            "id": number,
            "node": score.node,
            "subject": score.subject,
            "name": score.name,
            "unit": score.unit,
            "sku": score.sku,
        }
        for number, score in enumerate(scores)
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
    return [_make_course(own[number], bands[score.name, score.unit, score.sku]) for number, score in enumerate(scores)]


def _make_course(own: Sequence[tuple[int, float]], band: Sequence[tuple[int, float, float]]) -> WarningCourse:
    return WarningCourse(
        [day for day, _ in own],
        [value for _, value in own],
        [day for day, _, _ in band],
        [low for _, low, _ in band],
        [high for _, _, high in band],
    )


@dataclass(frozen=True, slots=True)
class TrendReport:
    """The answer at a moment. `courses` are those of the first warnings. `unread`: damaged files that were left out."""

    at: datetime
    answer: TrendAnswer
    advised: Sequence[AdvisedWarning]
    records: Sequence[RuleRecord]
    courses: Sequence[WarningCourse] = ()
    unread: Sequence[str] = ()

    @property
    def judged_records(self) -> list[RuleRecord]:
        """Return the records of the rules that have warned."""
        return [record for record in self.records if record.has_warned]

    def make_answer(self) -> TrendsAnswer:
        """Return what is told of it."""
        return TrendsAnswer(
            warnings=[warning.make_answer() for warning in self.advised],
            groups=self.answer.groups,
            cannot_tell=self.answer.findings.series.cannot_tell,
            rules=[self.answer.make_rule()],
            records=self.judged_records,
            unread=[*self.unread] or None,
        )

    def as_page_json(self) -> dict[str, Any]:
        """Return the same with its moment and the courses, for pages."""
        plain, courses = to_json(self.make_answer()), to_json(self.courses)
        warnings = plain["warnings"]
        drawn = [{**warning, "course": course} for warning, course in zip(warnings, courses, strict=False)]
        return {"at": format_time(self.at), **plain, "warnings": [*drawn, *warnings[len(courses) :]]}
