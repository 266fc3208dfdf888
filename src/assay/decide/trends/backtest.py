"""The backtest: compares what the new and the present limits and policy would have done in the last days.

It reads only what it needs from the ledger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import sqrt
from pathlib import Path
from statistics import NormalDist

from assay.decide.state.node_projection import project_node_states
from assay.decide.state.node_state import NodeState
from assay.decide.trends.rejudged_measurements import (
    CheckBounds,
    MeasurementRejudger,
    PolicyRevision,
    RejudgedMeasurement,
    RevisionReaction,
    StateTimeline,
)
from assay.ledger.location import is_server_url, read_all_entries
from assay.model.backtest_report import BacktestDifference, BacktestReport
from assay.model.faults.fault_record import FaultRecord
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import RecordedOutcome
from assay.model.timestamps import format_time, parse_time

BACKTEST_DAYS = 30.0


@dataclass(frozen=True, slots=True)
class _ReactionDifference:
    """One sighting to which the revisions react differently. `still`: it describes the node as it is now."""

    node: str
    at: str
    because: str
    before: RevisionReaction
    after: RevisionReaction
    is_current: bool


def run_backtest(
    before: PolicyRevision,
    after: PolicyRevision,
    bounds: CheckBounds,
    entries: Sequence[LedgerEntry],
    outcomes: Iterable[RecordedOutcome],
    now: datetime,
) -> BacktestReport:
    """Return the nodes on which two revisions differ. `entries` is the whole ledger, `outcomes` the recent ones."""
    start = now - timedelta(days=BACKTEST_DAYS)
    recent = list(outcomes)
    states = StateTimeline(entries)
    node_states = project_node_states(entries)
    judging = MeasurementRejudger(before, after, bounds, states)
    differing = list(_by_measurement(judging.rejudge(recent)))
    faults = [
        (node_state, known)
        for node_state in node_states.values()
        for known in node_state.faults
        if parse_time(known.last_seen) >= start
    ]
    differing += _by_fault(before, after, states, faults)
    first = [*(entry.at for entry in entries[:1]), *(recorded.at for recorded in recent[:1])]
    begun = min(map(parse_time, first), default=now)
    return BacktestReport(
        days=max(0.0, (now - max(start, begun)) / timedelta(days=1)),
        measurements=judging.read,
        faults=len(faults),
        unmapped=judging.unmapped,
        found=tuple(_merge_differences(differing)),
    )


def find_changed_scopes(before: PolicyRevision, after: PolicyRevision) -> tuple[bool, bool]:
    """Return whether any limit differs, and whether policy or catalogue differs. Otherwise a backtest says nothing."""
    names = before.fleet.node_specs.keys() | after.fleet.node_specs.keys()
    specs = [(before.fleet.node_specs.get(name), after.fleet.node_specs.get(name)) for name in names]
    limits = any(old is None or new is None or old.limits != new.limits for old, new in specs)
    return limits, before.policy != after.policy or before.catalog != after.catalog


def _by_measurement(seen: Iterable[RejudgedMeasurement]) -> Iterator[_ReactionDifference]:
    """Yield the measurements to which the revisions react differently; the newest one of each subject is `still` so."""
    newest: dict[tuple[str, str, str], RejudgedMeasurement] = {}
    for measured in seen:
        if measured.key not in newest or parse_time(measured.at) >= parse_time(newest[measured.key].at):
            newest[measured.key] = measured
        if measured.before != measured.after:
            yield _ReactionDifference(
                measured.node, measured.at, measured.because, measured.before, measured.after, is_current=False
            )
    for measured in newest.values():
        if measured.before_now != measured.after_now:
            yield _ReactionDifference(
                measured.node, measured.at, measured.because, measured.before_now, measured.after_now, is_current=True
            )


def _by_fault(
    before: PolicyRevision,
    after: PolicyRevision,
    states: StateTimeline,
    faults: Iterable[tuple[NodeState, FaultRecord]],
) -> Iterator[_ReactionDifference]:
    for node_state, known in faults:
        then = states.state_at(node_state.node, known.last_seen)
        # A decision would consider the fault now if nothing has cleared, answered or repaired it.
        is_open = known.is_open and known.response == "" and not node_state.is_repaired(known)
        for state, still in ((then, False), *([(node_state.state, True)] if is_open else [])):
            reactions = [_react_to_fault(side, node_state.node, state, known, before) for side in (before, after)]
            if reactions[0] != reactions[1]:
                because = f"{known.fault_class} on {known.subject}"
                yield _ReactionDifference(node_state.node, known.last_seen, because, reactions[0], reactions[1], still)


def _react_to_fault(
    side: PolicyRevision, node: str, state: str, known: FaultRecord, before: PolicyRevision
) -> RevisionReaction:
    """Return a revision's reaction. A fault that had not reached its count has still not reached it now."""
    counted = known.severity == before.catalog.find_treatment(known.fault_class).severity
    severity = side.catalog.find_treatment(known.fault_class).severity if counted else known.severity
    return side.react_to_fault(node, state, known.fault_class, severity)


def _merge_differences(differing: Iterable[_ReactionDifference]) -> Iterator[BacktestDifference]:
    """Yield one line for each node and reason if exactly one of the revisions moves the node."""
    groups: dict[tuple[str, bool, str, str], list[_ReactionDifference]] = defaultdict(list)
    for difference in differing:
        if difference.before.moves != difference.after.moves:
            key = (difference.node, difference.after.moves, difference.before.text, difference.after.text)
            groups[key].append(difference)
    for (node, acts, then, now), some in sorted(groups.items()):
        last = max(some, key=lambda difference: parse_time(difference.at))
        times = sum(not difference.is_current for difference in some)
        still = any(difference.is_current for difference in some)
        yield BacktestDifference(node, acts, still, last.because, then, now, last.at, max(times, 1))


def read_ledger_entries(where: Path | str) -> list[LedgerEntry]:
    """Return every entry, in order; none if there is no ledger."""
    return read_all_entries(where)


def read_recent_outcomes(where: Path | str, checks: Collection[str], now: datetime) -> list[RecordedOutcome]:
    """Return the outcomes of these checks in the last days; makes no ledger if there is none."""
    if not checks or not (is_server_url(where) or Path(where).exists()):
        return []
    from assay.ledger.store import Ledger

    ledger = Ledger.open_for_reading(where)
    try:
        return ledger.outcomes(checks=checks, since=format_time(now - timedelta(days=BACKTEST_DAYS)))
    finally:
        ledger.close()


def find_share_interval(hits: int, of: int, quantile: float = 0.95) -> tuple[float, float] | None:
    """Return the interval of a share by Wilson's formula; None of nothing. By default with 90 % confidence."""
    if not of:
        return None
    z = NormalDist().inv_cdf(quantile)
    share, spread = hits / of, z * z / of
    middle, half = share + spread / 2, z * sqrt(share * (1 - share) / of + spread / (4 * of))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))
