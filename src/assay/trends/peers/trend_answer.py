"""The answer to one question: what gets worse in these files, as of a moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.model.specs.trend_rules import ChangeDetector
from assay.trends.peers import past_warnings
from assay.trends.peers.change_scores import ChangeScores, score_changes
from assay.trends.peers.change_warnings import ChangeFindings, ChangeWarning, find_change_warnings, list_weeks
from assay.trends.peers.day_queries import define_macros
from assay.trends.peers.measurement_tables import DAY_S, TrendFiles, open_tables
from assay.trends.peers.part_intervals import make_intervals
from assay.trends.peers.past_days import read_past_days
from assay.trends.peers.past_weeks import keep_past_weeks
from assay.trends.peers.raw_counters import RawCounter, judge_counters
from assay.trends.peers.series_changes import add_today
from assay.trends.peers.shared_groups import SharedGroup, name_shared_groups
from assay.trends.peers.trend_cache import load_kept, make_key, save_kept
from assay.trends.peers.warning_record import ClosedWarning, ForecastFactors, PastRecord, judge_record, learn_factors

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

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data, as the edge has it."""
        found = self.findings
        rule = {
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
    chosen = settings or ChangeDetector()
    today = int(as_of.timestamp() // DAY_S)
    weeks = _list_weeks(database, today)
    define_macros(database)
    make_intervals(database)
    counters = judge_counters(database, today, chosen.counters, recognise_counters)
    _read_past(database, today, weeks, kept, counters)
    add_today(database, today)
    score_changes(database)
    scores = ChangeScores(database, today, chosen)
    findings = find_change_warnings(scores, len(weeks))
    record, factors = _look_back(database, today, weeks, findings.threshold, chosen.peers_at_least)
    factors = factors or learn_factors(closed)
    warnings = [warning.forecast_by(factors) for warning in findings.warnings]
    names = sorted({warning.score.name for warning in warnings})
    named, groups = name_shared_groups(warnings, scores.size_groups(names))
    return TrendAnswer(findings, named, groups, record, chosen)


def _list_weeks(database: DuckDBPyConnection, today: int) -> list[int]:
    first = database.execute("SELECT min(day) FROM measurements").fetchall()[0][0]
    return list_weeks(today, first) if first is not None else []


def _read_past(
    database: DuckDBPyConnection, today: int, weeks: Sequence[int], kept: Path | None, counters: Sequence[RawCounter]
) -> None:
    """Make the tables of what the days before today say: from the file where it is kept, else from the history."""
    key = make_key(database, today, counters) if kept else ""
    if kept and load_kept(database, kept, key):
        return
    read_past_days(database, today, weeks)
    keep_past_weeks(database, today, weeks)
    if kept:
        save_kept(database, kept, key)


def _look_back(
    database: DuckDBPyConnection, today: int, weeks: Sequence[int], threshold: float, least: int
) -> tuple[PastRecord, ForecastFactors | None]:
    """Return how the rule would have fared in the past weeks, and how wrong its straight lines were."""
    said = past_warnings.list_past_warnings(database, threshold, least)
    failed = past_warnings.list_failure_days(database)
    beyond = past_warnings.list_days_beyond(database)
    closed = past_warnings.close_warnings(said, failed, today)
    failures = past_warnings.count_failures(said, failed, beyond, min(weeks, default=today))
    return judge_record(closed, failures), past_warnings.learn_past_factors(said, failed)
