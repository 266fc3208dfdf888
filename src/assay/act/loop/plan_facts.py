"""What `assay plan` needs from the ledger: node states, median durations, a backtest, and outcomes that change meaning.

Plan and trends do not import each other; this module joins them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

from assay.decide.plan.assumptions import CountingChange
from assay.decide.plan.current_fleet_state import FleetFacts
from assay.decide.plan.fleet_revision import FleetRevision
from assay.decide.plan.known_issue_changes import find_affected_checks, find_counting_changes, select_newest_outcomes
from assay.decide.state.node_state import NodeState
from assay.decide.state.node_state_projection import project_node_states
from assay.decide.trends.backtest import find_changed_scopes, read_ledger_entries, read_recent_outcomes, run_backtest
from assay.decide.trends.rejudged_measurements import PolicyRevision
from assay.model.backtest_report import BacktestReport, MedianDuration, PolicyReplayReport
from assay.model.entries.effect_entries import EffectIntentEntry, EffectVerifiedEntry
from assay.model.entries.node_entries import NodeEnrolledEntry, TransitionEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.timestamps import parse_time

ONE_HOUR = timedelta(hours=1)


def load_plan_facts(ledger: Path | str, before: FleetRevision, after: FleetRevision, now: datetime) -> FleetFacts:
    """Return the facts from the ledger at a path or URL. Without a ledger they are empty; none is created."""
    entries = read_ledger_entries(ledger)
    changes = _find_counting_changes(ledger, before, after, now)
    if not entries:
        return FleetFacts(recounts=changes, now=now)
    node_states = project_node_states(entries)
    return FleetFacts(
        node_states,
        median_action_durations(entries),
        median_state_durations(entries),
        _run_backtest(ledger, before, after, entries, now),
        changes,
        _replay_policy(before, after, node_states, now),
        now,
    )


def _replay_policy(
    before: FleetRevision, after: FleetRevision, node_states: Mapping[str, NodeState], now: datetime
) -> PolicyReplayReport | None:
    """Return what a change of the policy costs on the recorded faults, None if the policy does not change."""
    if before.policy == after.policy:
        return None
    from assay.act.loop.policy_replay import replay_policy_change  # few plans need it, and all would wait for it

    return replay_policy_change(before, after, node_states, now)


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


DURATION_KINDS = (EffectIntentEntry.kind, EffectVerifiedEntry.kind, NodeEnrolledEntry.kind, TransitionEntry.kind)
"""The entries from which the durations of actions and stays follow."""


def median_action_durations(entries: Iterable[LedgerEntry]) -> dict[str, MedianDuration]:
    """Return the median hours from intent to verification of an effect, by action. Failed effects do not count."""
    started: dict[str, tuple[str, str]] = {}
    hours: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if entry.kind == EffectIntentEntry.kind:
            intent = EffectIntentEntry.read(entry)
            started.setdefault(intent.effect, (intent.action, entry.at))
        elif entry.kind == EffectVerifiedEntry.kind:
            action, at = started.pop(EffectVerifiedEntry.read(entry).effect, ("", ""))
            if action:
                hours[action].append(_count_hours(at, entry.at))
    return _find_medians(hours)


def median_state_durations(entries: Iterable[LedgerEntry]) -> dict[str, MedianDuration]:
    """Return the median hours of the stays in each state that have ended."""
    stays: dict[str, tuple[str, str]] = {}
    hours: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if entry.kind == NodeEnrolledEntry.kind:
            stays.pop(entry.node, None)  # where the node was before, and since when, is not known
        elif entry.kind == TransitionEntry.kind:
            move = TransitionEntry.read(entry)
            state, since = stays.get(entry.node, ("", ""))
            if state == move.from_state:
                hours[state].append(_count_hours(since, entry.at))
            stays[entry.node] = (move.to_state, entry.at)
    return _find_medians(hours)


def _count_hours(start: str, end: str) -> float:
    return (parse_time(end) - parse_time(start)) / ONE_HOUR


def _find_medians(hours: Mapping[str, list[float]]) -> dict[str, MedianDuration]:
    return {name: MedianDuration(median(found), len(found)) for name, found in sorted(hours.items())}
