"""The ledger's entries of warnings that open and close, of their faults, and of rules that lost their stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from assay.act.ingest.fault_recording import make_sighting_entries
from assay.act.loop.context import ControllerContext
from assay.decide.faults.recovery import FaultClearance
from assay.decide.state.decision_and_fault_entries import make_cleared_entry
from assay.decide.state.node_state import NodeState
from assay.decide.trends.warning_history import TrendWarning
from assay.decide.trends.warning_opening import OpenedWarnings
from assay.model.entries.trend_entries import TrendClosedEntry, TrendDemotedEntry
from assay.model.faults.sightings import FaultSighting
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.trend_rules import TrendRules
from assay.model.timestamps import format_time

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
                yield make_cleared_entry(warning.node, FaultClearance.of(fault, reason, fault.seq), now)


def make_demotion_entries(demotions: Iterable[TrendDemotedEntry], now: datetime) -> Iterator[LedgerEntry]:
    """Yield one for each rule that lost its stage."""
    for one in demotions:
        yield one.make_entry(derive_id(one.kind, one.rule, one.revision), format_time(now))


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
