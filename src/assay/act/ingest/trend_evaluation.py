"""Finds what gets worse among peers: closes and opens the ledger's warnings, and keeps the answer as a file for pages.

A warning of a rule that records is a fault too, which ends with it; a rule that is not right often enough loses its
stage. Where TrendRules ask for it, schedulers place jobs last on nodes with two warnings. The file may be deleted.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from assay.act.ingest.fault_recording import make_sighting_entries
from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.adapters.scheduler import RanksNodes, group_by_scheduler
from assay.decide.faults.recovery import make_clearance
from assay.decide.state.asset_history import HOLDER_ENTRY_KINDS, list_part_holders
from assay.decide.state.decision_and_fault_entries import make_cleared_entry
from assay.decide.state.node_state import NodeState
from assay.decide.state.service_absences import list_absences
from assay.decide.trends.fleet_tables import list_failures, open_fleet_tables, read_warnings
from assay.decide.trends.trend_answer import TrendAnswer, TrendReport, find_trends
from assay.decide.trends.warning_answers import RuleRecord
from assay.decide.trends.warning_record import TREND_ENTRY_KINDS, TrendWarning, read_warning_history
from assay.decide.trends.warnings import (
    OpenedWarnings,
    PartFates,
    advise,
    close_warning,
    describe_unearned_stage,
    make_rule_records,
    open_warnings,
)
from assay.declare.starter.shipped_specs import find_trend_rules
from assay.ledger.history.parquet_files import (
    MEASUREMENTS_TABLE,
    history_folder,
    list_day_folders,
    read_without_damaged,
)
from assay.ledger.ledger_reader import read_projection
from assay.model.entries.faults import (
    NodeRankedEntry,
    RankStanding,
    TrendClosedEntry,
    TrendDemotedEntry,
    TrendWarnedEntry,
)
from assay.model.errors import AssayError
from assay.model.faults.sightings import FaultSighting
from assay.model.ledger_entry import LedgerEntry, Projection, derive_id
from assay.model.specs.trend_rules import WORN, TrendRules, count_open_warnings
from assay.model.timestamps import format_time, parse_time
from assay.observe.evidence_store import write_atomically

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


_MEASURED = """
SELECT w.id, count(DISTINCT time_s // 86400)
FROM measurements m JOIN (SELECT unnest($warnings) AS w) ON m.node = w.node AND m.subject = w.place AND m.name = w.name
  AND time_s >= w.from_s AND time_s < w.until_s
WHERE isfinite(value) GROUP BY ALL
"""


def read_part_fates(
    context: ControllerContext,
    database: DuckDBPyConnection,
    rules: TrendRules,
    warnings: Sequence[TrendWarning],
    now: datetime,
) -> PartFates:
    """Return what became of the parts of open warnings, and all failures. `database` has the fleet's measurements."""
    failures = list_failures(context.ledger, now)
    nodes = {warning.node for warning in warnings} | {failure.node for failure in failures if warnings}
    in_service = context.policy.states_in_service
    absences = {
        name: list_absences(state, in_service)
        for name, state in read_node_states(context.ledger).items()
        if name in nodes
    }
    measured = _count_measured_days(database, rules, warnings, now)
    entries_by_node = context.ledger.entries_by_node(sorted(nodes), HOLDER_ENTRY_KINDS) if nodes else {}
    holders = {node: list_part_holders(node, entries) for node, entries in entries_by_node.items()}
    return PartFates(failures, holders, absences, measured)


def _count_measured_days(
    database: DuckDBPyConnection, rules: TrendRules, warnings: Sequence[TrendWarning], now: datetime
) -> dict[str, int]:
    """Return on how many days of its horizon each warning's part was measured, for those whose horizon is over."""
    asked = []
    for warning in warnings:
        rule = rules.rules.get(warning.content.rule)
        end = warning.at + timedelta(days=rule.horizon_days) if rule else now
        if end <= now:
            times = {"from_s": warning.at.timestamp(), "until_s": end.timestamp()}
            part = {"node": warning.node, "place": warning.content.place, "name": warning.content.name}
            asked.append({"id": warning.content.warning, **part, **times})
    return dict(database.execute(_MEASURED, {"warnings": asked}).fetchall()) if asked else {}


TREND_SOURCE = "trend"


def make_closing_entries(
    context: ControllerContext,
    closings: Sequence[tuple[TrendWarning, TrendClosedEntry]],
    states: Mapping[str, NodeState],
    rules: TrendRules,
    now: datetime,
) -> Iterator[LedgerEntry]:
    """Yield the end of each warning, and that of its fault."""
    for warning, closed in closings:
        yield closed.make_entry(derive_id(closed.kind, closed.warning), format_time(now), warning.node)
        rule, state = rules.rules.get(closed.rule), states.get(warning.node)
        if rule is None or state is None or warning.node not in context.fleet.nodes:
            continue
        subject = "/".join(filter(None, (context.fleet.nodes[warning.node].subject, warning.content.place)))
        for fault in state.faults:
            if fault.is_open and fault.fault_class == rule.fault and fault.subject == subject:
                reason = f"its warning was {closed.outcome}: {closed.reason}"
                yield make_cleared_entry(warning.node, make_clearance(fault, reason, fault.seq), now)


def make_opening_entries(
    context: ControllerContext, rules: TrendRules, opened: OpenedWarnings, now: datetime
) -> Iterator[LedgerEntry]:
    """Yield each new warning, and its fault where its rule records."""
    at = format_time(now)
    for node, warned in opened.warnings:
        yield warned.make_entry(derive_id(warned.kind, warned.warning), at, node)
        if warned.stage == "record" and node in context.fleet.nodes:
            detail = "; ".join(filter(None, (warned.reason, warned.group)))
            fault = rules.rules[warned.rule].fault
            yield from make_sighting_entries(
                context, node, FaultSighting(fault, warned.place, at, detail, TREND_SOURCE, at)
            )


ANSWER_FILE = Path("trends") / "answer.json"
"""In the folder of reports."""


def read_answer(reports: Path) -> dict[str, Any]:
    """Return the last answer with its time in `at` (ISO 8601), empty where there is none or it cannot be read."""
    try:
        known = json.loads((reports / ANSWER_FILE).read_bytes())
        parse_time(known["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return dict(known)


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
        ended = {outcome: sum(entry.outcome == outcome for entry in self.closed) for outcome in _OUTCOME_ORDER}
        parts = [f"{len(self.opened)} new warnings"]
        parts += [f"{count} {outcome}" for outcome, count in ended.items() if count]
        parts += [f"rule {demotion.rule} only observes from now on: {demotion.reason}" for demotion in self.demoted]
        parts += [f"left out: {file}" for file in self.unread]
        count = self.answer.series
        return f"{count.judged} series compared, of {count.cannot_tell} nobody can tell; {', '.join(parts)}"


def has_history(reports: Path) -> bool:
    """Whether there is a history of measurements to compare."""
    return bool(list_day_folders(history_folder(reports), MEASUREMENTS_TABLE))


def evaluate_trends(context: ControllerContext) -> TrendEvaluation:
    """Evaluate the fleet's trends as of now. The same again adds nothing. Raises AssayError without a history.

    Damaged files of history are left out and named.
    """
    now, rules = context.clock.now(), find_trend_rules(context.fleet)
    unread: list[str] = []
    answer, fates = read_without_damaged(
        lambda left_out: _read(context, rules, now, left_out), lambda error: unread.append(str(error))
    )
    with context.hold_fault_lock():
        evaluation = _record(context, rules, answer, fates, now)._replace(unread=tuple(unread))
    advised = advise(rules, evaluation.records, answer.warnings)
    report = TrendReport(now, answer, advised, evaluation.records, unread)
    write_atomically(context.reports / ANSWER_FILE, json.dumps(report.as_page_json()).encode())
    return evaluation


def _read(
    context: ControllerContext, rules: TrendRules, now: datetime, left_out: Collection[str]
) -> tuple[TrendAnswer, PartFates]:
    """Return what history and ledger say, before anything is recorded."""
    home = history_folder(context.reports)
    with open_fleet_tables(home, context.ledger, now, left_out, fleet=context.fleet) as database:
        history = read_warning_history(context.ledger.entries(kinds=TREND_ENTRY_KINDS))
        answer = find_trends(database, now, rules.change)
        return answer, read_part_fates(context, database, rules, history.open, now)


def _record(
    context: ControllerContext, rules: TrendRules, answer: TrendAnswer, fates: PartFates, now: datetime
) -> TrendEvaluation:
    """Append what is new, in one transaction. The caller holds the fault lock."""
    states = read_node_states(context.ledger)
    history = read_warnings(context.ledger, now)
    closings = []
    for warning in history.open:
        if closed := close_warning(warning, rules.rules.get(warning.content.rule), fates, now):
            closings.append((warning, closed))
    ended = {warning.content.warning: replace(warning, closed=closed, closed_at=now) for warning, closed in closings}
    warnings = tuple(ended.get(warning.content.warning, warning) for warning in history.warnings)
    history = replace(history, warnings=warnings)
    records, unearned = dict[str, RuleRecord](), list[TrendDemotedEntry]()
    for record in make_rule_records(rules, history, fates.failures):
        records[record.name] = record
        if reason := describe_unearned_stage(rules, record):
            unearned.append(TrendDemotedEntry(record.name, record.revision, reason))
            records[record.name] = replace(record, stage="observe", lost_because=reason)
    fresh = [warning for warning in answer.warnings if warning.score.node in states]
    known = read_answer(context.reports)
    since = parse_time(known["at"]) if known else None
    opened = open_warnings(rules, records, history, fresh, answer.series.nodes, now, since)
    demoted = (*unearned, *opened.demotions)
    context.ledger.append(
        *make_closing_entries(context, closings, states, rules, now),
        *(
            demotion.make_entry(derive_id(demotion.kind, demotion.rule, demotion.revision), format_time(now))
            for demotion in demoted
        ),
        *make_opening_entries(context, rules, opened, now),
    )
    closed_now = tuple(closed for _, closed in closings)
    return TrendEvaluation(answer, tuple(records.values()), closed_now, opened.warnings, demoted)


def _apply_rank(last: set[str], entry: LedgerEntry) -> set[str]:
    ranked = NodeRankedEntry.read(entry)
    if ranked.is_last:
        last.add(entry.node)
    elif ranked.standing == "verified":
        last.discard(entry.node)
    return last


RANKED_LAST = Projection[set[str]]((NodeRankedEntry.kind,), set, _apply_rank, set)
"""The nodes to which jobs may come last because assay said so. Nobody else's weight or taint is ever undone."""


def rank_worn_nodes(context: ControllerContext) -> None:
    """Tell the schedulers which nodes come last now. A scheduler that fails costs its own nodes only."""
    ours, states = read_projection(context.ledger, RANKED_LAST), read_node_states(context.ledger)
    worn = {name for name, state in states.items() if count_open_warnings(state.faults) >= WORN}
    worn = worn if find_trend_rules(context.fleet).acts.last_for_jobs else set()
    known = [name for name in sorted(worn | ours) if name in context.fleet.nodes and not context.fleet.is_watched(name)]
    groups = group_by_scheduler([context.fleet.nodes[name] for name in known], context.workloads)
    failed = {**groups.errors}
    for scheduler, names in groups.nodes.items():
        is_last = {name: name in worn for name in names}
        changed = {name: last for name, last in is_last.items() if (name in ours) != last}
        if isinstance(scheduler, RanksNodes):
            _record_ranks(context, changed, "intent")
            try:
                failed |= scheduler.rank_nodes(is_last)  # all: a scheduler forgets
            except AssayError as error:
                failed |= dict.fromkeys(names, error.what)
            _record_ranks(context, {name: last for name, last in changed.items() if name not in failed}, "verified")
        elif scheduler.places_jobs:
            failed |= dict.fromkeys(changed, "its scheduler cannot place jobs last")
    _record_ranks(context, {name: name in worn for name in failed}, "failed", failed)


def _record_ranks(
    context: ControllerContext, is_last: Mapping[str, bool], standing: RankStanding, failed: Mapping[str, str] = {}
) -> None:
    for name, last in is_last.items():
        reason = failed.get(name) or f"{'two' if last else 'fewer than two'} warnings of trends are open"
        entry = NodeRankedEntry(last, standing, reason)
        context.ledger.append(entry.make_entry(derive_id(entry.kind, name, standing, context.now), context.now, name))
