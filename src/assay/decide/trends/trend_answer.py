"""The answer to one question: what gets worse in these files, as of a moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from assay.decide.trends import past_warnings
from assay.decide.trends.change_scores import ChangeScores
from assay.decide.trends.change_warnings import ChangeFindings, ChangeWarning, find_change_warnings
from assay.decide.trends.compared_days import list_weeks
from assay.decide.trends.day_comparison import DayQuestion, compare_days
from assay.decide.trends.day_queries import define_macros
from assay.decide.trends.measurement_tables import DAY_S, TrendFiles, open_tables
from assay.decide.trends.part_intervals import make_intervals
from assay.decide.trends.raw_counters import judge_counters
from assay.decide.trends.shared_groups import SharedGroup, name_shared_groups
from assay.decide.trends.warning_record import ClosedWarning, ForecastFactors, PastRecord, judge_record, learn_factors
from assay.ledger.history.damaged_files import DamagedFilesError
from assay.model.errors import AssayError
from assay.model.specs.trend_rules import ChangeDetector

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from assay.decide.trends.warning_answers import FoundTrends, PastRuleAnswer


@dataclass(frozen=True, slots=True)
class TrendAnswer:
    """The warnings, the worst first, and how they were found. `record`: how the rule fared in past weeks."""

    findings: ChangeFindings
    warnings: list[ChangeWarning]
    groups: list[SharedGroup]
    record: PastRecord
    settings: ChangeDetector

    def as_json(self) -> FoundTrends:
        """Return plain JSON data, as the edge has it."""
        found = self.findings
        rule: PastRuleAnswer = {
            "name": past_warnings.RULE,
            "threshold": round(found.threshold, 2),
            "threshold_from": "history" if found.is_learned else "default",
            "alarms_per_1000_node_days": self.settings.alarms_per_1000_node_days,
            "series": found.series.judged,
            "warnings": len(self.warnings),
            **self.record.as_json(),
        }
        warnings = [warning.as_json() for warning in self.warnings]
        groups = [group.as_json() for group in self.groups]
        return {"warnings": warnings, "groups": groups, "cannot_tell": found.series.cannot_tell, "rules": [rule]}


def answer_trends(files: TrendFiles, as_of: datetime, settings: ChangeDetector | None = None) -> TrendAnswer:
    """Return what gets worse as of a moment; nothing after it is read. Raises AssayError for a wrong file."""
    with open_tables(files, as_of) as database:
        return find_trends(database, as_of, settings, recognise_counters=True)


def find_trends(
    database: DuckDBPyConnection,
    as_of: datetime,
    settings: ChangeDetector | None = None,
    kept: Path | None = None,
    closed: Iterable[ClosedWarning] = (),
    recognise_counters: bool = False,
) -> TrendAnswer:
    """Return what gets worse by the tables of a database, see `open_tables`.

    `kept`: the file that keeps what does not change within a day, for tables of `open_fleet_tables`. `closed`: warnings
    of the ledger that have ended. Forecasts learn from what past weeks would have said, or if that is too little, from
    these. `recognise_counters`: by their values, not only by their declared names.
    """
    import duckdb

    chosen = settings or ChangeDetector()
    today = int(as_of.timestamp() // DAY_S)
    weeks = _list_weeks(database, today)
    ended = list(closed)
    define_macros(database)
    make_intervals(database)
    counters = judge_counters(database, today, chosen.counters, recognise_counters)
    question = DayQuestion(today, weeks, counters)
    if kept:
        try:
            with compare_days(database, question, kept):
                return _conclude(database, question, chosen, ended)
        except DamagedFilesError:
            raise
        except (AssayError, OSError, duckdb.Error):
            pass  # it costs more without the file
    with compare_days(database, question):
        return _conclude(database, question, chosen, ended)


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


def _list_weeks(database: DuckDBPyConnection, today: int) -> list[int]:
    first = database.execute("SELECT min(day) FROM history_days").fetchall()[0][0]
    return list_weeks(today, first) if first is not None else []


def _look_back(
    database: DuckDBPyConnection, asked: DayQuestion, threshold: float, least: int
) -> tuple[PastRecord, ForecastFactors | None]:
    """Return how the rule would have fared in the past weeks, and how wrong its straight lines were."""
    said = past_warnings.list_past_warnings(database, threshold, least)
    failed = past_warnings.list_failure_days(database)
    beyond = past_warnings.list_days_beyond(database)
    closed = past_warnings.close_warnings(said, failed, asked.today)
    failures = past_warnings.count_failures(said, failed, beyond, min(asked.weeks, default=asked.today))
    return judge_record(closed, failures), past_warnings.learn_past_factors(said, failed)
