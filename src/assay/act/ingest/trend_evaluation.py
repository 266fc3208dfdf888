"""Finds what gets worse among peers: closes and opens the ledger's warnings, and keeps the answer for pages.

A warning of a rule that records is a fault too, which ends with it. Nothing else follows from one here.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from assay.act.ingest.part_fates import read_part_fates
from assay.act.ingest.trend_answer_file import ANSWER_FILE, read_last_time
from assay.act.ingest.warning_entries import make_closing_entries, make_demotion_entries, make_opening_entries
from assay.act.loop.context import ControllerContext
from assay.act.loop.node_state_and_outcome_cache import read_node_states
from assay.decide.trends.day_cache import KEPT_FILE
from assay.decide.trends.feeds_and_switches import name_feeds_and_switches
from assay.decide.trends.fleet_holders import HOLDERS_FILE
from assay.decide.trends.fleet_tables import open_fleet_tables
from assay.decide.trends.measurement_tables import DAY_S
from assay.decide.trends.rule_record import RuleRecord, describe_unearned_stage, make_rule_records
from assay.decide.trends.trend_answer import TrendAnswer, find_trends
from assay.decide.trends.trend_report import TrendReport
from assay.decide.trends.warning_advice import advise
from assay.decide.trends.warning_closing import PartFates, close_warning
from assay.decide.trends.warning_courses import WarningCourse, read_courses
from assay.decide.trends.warning_history import TREND_ENTRY_KINDS, TrendWarning, WarningHistory, read_warning_history
from assay.decide.trends.warning_opening import open_warnings
from assay.declare.starter.shipped_specs import find_trend_rules
from assay.fabric.design.node_leaves import find_node_leaves
from assay.ledger.history.damaged_files import read_without_damaged
from assay.ledger.history.parquet_files import MEASUREMENTS_TABLE, history_folder, list_day_folders
from assay.model.entries.trend_entries import TrendClosedEntry, TrendDemotedEntry, TrendWarnedEntry
from assay.model.specs.trend_rules import TrendRules
from assay.observe.evidence_store import write_atomically

_OUTCOME_ORDER = ("right", "wrong", "overtaken", "cannot tell")


class TrendEvaluation(NamedTuple):
    """What an evaluation did: the warnings that it closed and opened, the rules that it demoted, and all records."""

    answer: TrendAnswer
    records: tuple[RuleRecord, ...]
    closed: tuple[TrendClosedEntry, ...]
    opened: tuple[tuple[str, TrendWarnedEntry], ...]
    demoted: tuple[TrendDemotedEntry, ...]
    unread: tuple[str, ...] = ()
    """The damaged files of history that were left out."""

    @property
    def summary(self) -> str:
        """Return what was done, in words."""
        ended = {outcome: sum(one.outcome == outcome for one in self.closed) for outcome in _OUTCOME_ORDER}
        parts = [f"{len(self.opened)} new warnings"]
        parts += [f"{count} {outcome}" for outcome, count in ended.items() if count]
        parts += [f"rule {one.rule} only observes from now on: {one.reason}" for one in self.demoted]
        parts += [f"left out: {file}" for file in self.unread]
        count = self.answer.findings.series
        return f"{count.judged} series compared, {count.cannot_tell} with too few peers; {', '.join(parts)}"


class _HistoryAnswer(NamedTuple):
    """What history and ledger say, before anything is recorded."""

    answer: TrendAnswer
    courses: list[WarningCourse]
    fates: PartFates


def has_history(reports: Path) -> bool:
    """Whether there is a history of measurements to compare."""
    return bool(list_day_folders(history_folder(reports), MEASUREMENTS_TABLE))


def evaluate_trends(context: ControllerContext) -> TrendEvaluation:
    """Evaluate the fleet's trends as of now. The same again adds nothing. Raises AssayError without a history.

    Damaged files of history are left out and named.
    """
    now, rules = context.clock.now(), find_trend_rules(context.fleet)
    unread: list[str] = []
    read = read_without_damaged(lambda left_out: _read(context, rules, now, left_out), lambda e: unread.append(str(e)))
    with context.hold_fault_lock():
        evaluation = _record(context, rules, read.answer, read.fates, now)._replace(unread=tuple(unread))
    advised = advise(rules, evaluation.records, read.answer.warnings)
    report = TrendReport(now, read.answer, advised, evaluation.records, read.courses, unread)
    write_atomically(context.reports / ANSWER_FILE, json.dumps(report.as_page_json()).encode())
    return evaluation


def _read(context: ControllerContext, rules: TrendRules, now: datetime, left_out: Collection[str]) -> _HistoryAnswer:
    home = history_folder(context.reports)
    holders = context.reports / HOLDERS_FILE
    with open_fleet_tables(home, context.ledger, now, left_out, kept=holders) as database:
        name_feeds_and_switches(database, context.fleet.nodes.values(), find_node_leaves(context.fleet))
        history = read_warning_history(context.ledger.entries(kinds=TREND_ENTRY_KINDS))
        answer = find_trends(database, now, rules.change, context.reports / KEPT_FILE, history.ended)
        courses = read_courses(database, answer.warnings, int(now.timestamp() // DAY_S))
        fates = read_part_fates(context, database, rules, history.open, now)
    return _HistoryAnswer(answer, courses, fates)


def _record(
    context: ControllerContext, rules: TrendRules, answer: TrendAnswer, fates: PartFates, now: datetime
) -> TrendEvaluation:
    """Append what is new, in one transaction. The caller holds the fault lock."""
    states = read_node_states(context.ledger)
    history = read_warning_history(context.ledger.entries(kinds=TREND_ENTRY_KINDS))
    closings = [(one, closed) for one in history.open if (closed := _close(rules, one, fates, now))]
    history = _apply_closings(history, closings, now)
    records = {one.rule: one for one in make_rule_records(rules, history, fates.failures)}
    unearned = list(_demote_unearned(rules, records.values()))
    lost = {one.rule: one.reason for one in unearned}
    records = {name: _lose_stage(one, lost.get(name, "")) for name, one in records.items()}
    found = [one for one in answer.warnings if one.score.node in states]
    since = read_last_time(context.reports)
    opened = open_warnings(rules, records, history, found, answer.findings.series.nodes, now, since)
    context.ledger.append(
        *make_closing_entries(context, closings, states, rules, now),
        *make_demotion_entries([*unearned, *opened.demotions], now),
        *make_opening_entries(context, rules, opened, now),
    )
    demoted = (*unearned, *opened.demotions)
    ended = tuple(closed for _, closed in closings)
    return TrendEvaluation(answer, tuple(records.values()), ended, opened.warnings, demoted)


def _close(rules: TrendRules, warning: TrendWarning, fates: PartFates, now: datetime) -> TrendClosedEntry | None:
    return close_warning(warning, rules.rules.get(warning.content.rule), fates, now)


def _apply_closings(
    history: WarningHistory, closings: Iterable[tuple[TrendWarning, TrendClosedEntry]], now: datetime
) -> WarningHistory:
    ended = {one.content.warning: replace(one, closed=closed, closed_at=now) for one, closed in closings}
    return replace(history, warnings=tuple(ended.get(one.content.warning, one) for one in history.warnings))


def _demote_unearned(rules: TrendRules, records: Iterable[RuleRecord]) -> Iterator[TrendDemotedEntry]:
    for record in records:
        if reason := describe_unearned_stage(rules, record):
            yield TrendDemotedEntry(record.rule, record.revision, reason)


def _lose_stage(record: RuleRecord, reason: str) -> RuleRecord:
    return replace(record, stage="observe", lost_because=reason) if reason else record
