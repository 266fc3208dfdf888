"""What `assay plan` needs from the ledger: node states, durations, a backtest, and outcomes that would count otherwise.

Plan and trends do not import each other; this module joins them.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from assay.lifecycle.node_state_projection import project_node_states
from assay.model.backtest import BacktestReport
from assay.model.ledger_entry import LedgerEntry
from assay.plan.current_fleet_state import FleetFacts
from assay.plan.fleet_revision import FleetRevision
from assay.plan.known_issue_changes import (
    CountingChange,
    find_affected_checks,
    find_counting_changes,
    select_newest_outcomes,
)
from assay.trends import durations
from assay.trends.backtest import find_changed_scopes, read_ledger_entries, read_recent_outcomes, run_backtest
from assay.trends.revision_comparison import PolicyRevision


def load_plan_facts(ledger: Path | str, before: FleetRevision, after: FleetRevision, now: datetime) -> FleetFacts:
    """Return the facts from the ledger at a path or URL. Without a ledger they are empty; none is created."""
    entries = read_ledger_entries(ledger)
    changes = _find_counting_changes(ledger, before, after, now)
    if not entries:
        return FleetFacts(recounts=changes)
    return FleetFacts(
        project_node_states(entries),
        durations.median_action_durations(entries),
        durations.median_state_durations(entries),
        _run_backtest(ledger, before, after, entries, now),
        changes,
    )


def _find_counting_changes(
    ledger: Path | str, before: FleetRevision, after: FleetRevision, now: datetime
) -> tuple[CountingChange, ...]:
    """Return how changed stages and known issues change the meaning of the last outcomes of their checks."""
    checks = find_affected_checks(before, after)
    newest = select_newest_outcomes(read_recent_outcomes(ledger, checks, now))
    return find_counting_changes(before, after, newest, now)


def _run_backtest(
    ledger: Path | str, before: FleetRevision, after: FleetRevision, entries: list[LedgerEntry], now: datetime
) -> BacktestReport | None:
    """Return the backtest, None if neither limits nor policy change."""
    revisions = _policy_revision(before), _policy_revision(after)
    limits, rules = find_changed_scopes(*revisions)
    if not limits and not rules:
        return None
    bounds = {
        (check, measurement): sides
        for check, reads in {**before.reads, **after.reads}.items()
        for measurement, sides in reads.limits_by_measurement().items()
    }
    recent = read_recent_outcomes(ledger, {check for check, _ in bounds} if limits else (), now)
    return run_backtest(*revisions, bounds, entries, recent, now)


def _policy_revision(revision: FleetRevision) -> PolicyRevision:
    return PolicyRevision(revision.fleet, revision.policy, revision.catalog)
