"""Finds what gets worse among peers: closes and opens the ledger's warnings, and keeps the answer for pages.

A warning of a rule that records is a fault too, which ends with it. Nothing else follows from one here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from assay.controller.cache.node_state_and_outcome_cache import read_node_states
from assay.controller.context import ControllerContext
from assay.controller.ingest.fault_recording import make_sighting_entries
from assay.controller.ingest.part_fates import read_part_fates
from assay.lifecycle.decision_and_fault_entries import make_cleared_entry
from assay.lifecycle.faults.recovery import FaultClearance
from assay.lifecycle.faults.sightings import FaultSighting
from assay.lifecycle.node_state import NodeState
from assay.model.entries.trend_entries import TrendClosedEntry, TrendDemotedEntry, TrendWarnedEntry
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.trend_rules import TrendRules
from assay.model.timestamps import format_time, parse_time
from assay.observe.evidence_store import write_atomically
from assay.results.history.parquet_files import MEASUREMENTS_TABLE, history_folder, list_day_folders
from assay.starter.shipped_specs import find_trend_rules
from assay.trends.parts.part_risks import rank_risky_nodes
from assay.trends.peers.fleet_tables import open_fleet_tables
from assay.trends.peers.trend_answer import TrendAnswer, find_trends
from assay.trends.warnings.rule_record import RuleRecord, describe_unearned_stage, make_rule_records
from assay.trends.warnings.warning_closing import PartFates, close_warning
from assay.trends.warnings.warning_history import TREND_ENTRY_KINDS, TrendWarning, WarningHistory, read_warning_history
from assay.trends.warnings.warning_opening import OpenedWarnings, open_warnings

TREND_SOURCE = "trend"
ANSWER_FILE = Path("trends") / "answer.json"
"""The last answer, in the folder of reports; it may be deleted."""

RISKY = "position_times"


class TrendEvaluation(NamedTuple):
    """What an evaluation did: the answer, and how many warnings it closed and opened, and rules it demoted."""

    answer: TrendAnswer
    closed: tuple[TrendClosedEntry, ...]
    opened: tuple[tuple[str, TrendWarnedEntry], ...]
    demoted: tuple[TrendDemotedEntry, ...]

    @property
    def summary(self) -> str:
        """Return what was done, in words."""
        ended = {outcome: sum(one.outcome == outcome for one in self.closed) for outcome in _OUTCOME_ORDER}
        parts = [f"{len(self.opened)} new warnings"]
        parts += [f"{count} {outcome}" for outcome, count in ended.items() if count]
        parts += [f"rule {one.rule} only observes from now on: {one.reason}" for one in self.demoted]
        count = self.answer.findings.series
        return f"{count.judged} series compared, {count.cannot_tell} with too few peers; {', '.join(parts)}"


_OUTCOME_ORDER = ("right", "wrong", "overtaken", "cannot tell")


def has_history(reports: Path) -> bool:
    """Whether there is a history of measurements to compare."""
    return bool(list_day_folders(history_folder(reports), MEASUREMENTS_TABLE))


def evaluate_trends(context: ControllerContext) -> TrendEvaluation:
    """Evaluate the fleet's trends as of now. The same again adds nothing. Raises AssayError without a history."""
    now, rules = context.clock.now(), find_trend_rules(context.fleet)
    with open_fleet_tables(history_folder(context.reports), context.ledger, now) as database:
        answer = find_trends(database, now)
        open_ones = read_warning_history(context.ledger.entries(kinds=TREND_ENTRY_KINDS)).open
        fates = read_part_fates(context, database, rules, open_ones, now)
        risky = rank_risky_nodes(database, now, rules.positions)
    with context.hold_fault_lock():
        evaluation = _record(context, rules, answer, fates, now)
    write_atomically(context.reports / ANSWER_FILE, json.dumps(_describe(answer, risky, now)).encode())
    return evaluation


def _record(
    context: ControllerContext, rules: TrendRules, answer: TrendAnswer, fates: PartFates, now: datetime
) -> TrendEvaluation:
    """Append what is new, in one transaction. The caller holds the fault lock."""
    history, states = (
        read_warning_history(context.ledger.entries(kinds=TREND_ENTRY_KINDS)),
        read_node_states(context.ledger),
    )
    closings = [(one, closed) for one in history.open if (closed := _close(rules, one, fates, now))]
    history = _apply_closings(history, closings, now)
    records = {one.rule: one for one in make_rule_records(rules, history, fates.failures)}
    unearned = list(_demote_unearned(rules, records.values()))
    lost = {one.rule: one.reason for one in unearned}
    records = {name: _lose_stage(one, lost.get(name, "")) for name, one in records.items()}
    found = [one for one in answer.warnings if one.score.node in states]
    since = _read_last_time(context.reports / ANSWER_FILE)
    opened = open_warnings(rules, records, history, found, answer.findings.series.nodes, now, since)
    context.ledger.append(
        *_make_closing_entries(context, closings, states, rules, now),
        *_make_demotion_entries([*unearned, *opened.demotions], now),
        *_make_opening_entries(context, rules, opened, now),
    )
    demoted = (*unearned, *opened.demotions)
    return TrendEvaluation(answer, tuple(closed for _, closed in closings), opened.warnings, demoted)


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


def _make_closing_entries(
    context: ControllerContext,
    closings: Sequence[tuple[TrendWarning, TrendClosedEntry]],
    states: dict[str, NodeState],
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
                yield make_cleared_entry(warning.node, FaultClearance(fault.id, reason, fault.seq), now)


def _make_demotion_entries(demotions: Iterable[TrendDemotedEntry], now: datetime) -> Iterator[LedgerEntry]:
    for one in demotions:
        yield one.make_entry(derive_id(one.kind, one.rule, one.revision), format_time(now))


def _make_opening_entries(
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


def _read_last_time(file: Path) -> datetime | None:
    """Return when the last answer was given, None where it is lost."""
    try:
        return parse_time(json.loads(file.read_bytes())["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_position_times(reports: Path) -> dict[str, float]:
    """Return how many times as often as usual parts fail at the worst position of each node, by the last answer.

    Nothing where that is lost.
    """
    try:
        return {
            str(node): float(times) for node, times in json.loads((reports / ANSWER_FILE).read_bytes())[RISKY].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _describe(answer: TrendAnswer, risky: Mapping[str, float], now: datetime) -> dict[str, Any]:
    return {"at": format_time(now), **answer.as_json(), RISKY: risky}
