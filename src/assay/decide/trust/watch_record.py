"""What automation would have done where it only watches: how often, for how many node-hours, and whether people did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from assay.decide.trust.trust_record import TRUST_CAUSE
from assay.model.entries.decision_entries import DecisionEntry
from assay.model.entries.fault_entries import FaultClearedEntry
from assay.model.entries.node_entries import TransitionEntry
from assay.model.entries.operator_entries import MoveEntry, ZapRequestedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import parse_time

RECORD_DAYS = 30
SAME = timedelta(days=1)
"""Who orders the same so soon before or after, or closes the node by hand, did the same."""
RECORD_KINDS = (
    DecisionEntry.kind,
    MoveEntry.kind,
    ZapRequestedEntry.kind,
    FaultClearedEntry.kind,
    TransitionEntry.kind,
)


@dataclass(frozen=True, slots=True)
class WatchRecord:
    """What assay would have done in the last `days`, on so many `nodes`.

    `decisions` counts it by its actions and target; `done_by_people` is how many of these people did too. `node_hours`
    is how long nodes would have been out of service, until their faults ended or somebody moved them.
    """

    days: int
    nodes: int
    decisions: dict[str, int]
    node_hours: float
    done_by_people: int


@dataclass(slots=True)
class _NodeHistory:
    would: list[tuple[datetime, DecisionEntry]] = field(default_factory=list)
    by_people: list[tuple[datetime, str]] = field(default_factory=list)
    ends: list[tuple[datetime, str]] = field(default_factory=list)


def make_watch_record(policy: LifecyclePolicy, entries: Iterable[LedgerEntry], now: datetime) -> WatchRecord:
    """Return the record up to now; `entries` are those of RECORD_KINDS, in their order."""
    histories: dict[str, _NodeHistory] = {}
    for entry in entries:
        if now - parse_time(entry.at) <= timedelta(days=RECORD_DAYS) + SAME:
            _add(histories.setdefault(entry.node, _NodeHistory()), entry)
    oldest = now - timedelta(days=RECORD_DAYS)
    decisions, done, span, nodes = Counter[str](), 0, timedelta(), 0
    for history in histories.values():
        would = [(at, one) for at, one in history.would if at >= oldest]
        nodes, covered = nodes + bool(would), oldest
        for at, one in would:
            decisions[f"{', '.join(one.causes[0].id.split()[1:]) or 'move'} → {one.to_state}"] += 1
            done += any(to == one.to_state and abs(when - at) <= SAME for when, to in history.by_people)
            if policy.is_in_service(one.from_state) and not policy.is_in_service(one.to_state):
                end = _find_end(history, at, one, now)
                span += max(end - max(at, covered), timedelta())
                covered = max(covered, end)
    return WatchRecord(RECORD_DAYS, nodes, dict(decisions.most_common()), round(span.total_seconds() / 3600, 1), done)


def _add(history: _NodeHistory, entry: LedgerEntry) -> None:
    at = parse_time(entry.at)
    if entry.kind == DecisionEntry.kind:
        decision = DecisionEntry.read(entry)
        first = decision.causes[0] if decision.causes else None
        if first and first.kind == TRUST_CAUSE and decision.remedy == "wait" and first.id.startswith("watch"):
            history.would.append((at, decision))
        elif first and first.kind == "foreign":  # others closed the node, for which assay would wait
            history.by_people.append((at, decision.to_state))
    elif entry.kind == FaultClearedEntry.kind:
        history.ends.append((at, FaultClearedEntry.read(entry).fault))
    elif entry.kind == TransitionEntry.kind:
        history.ends.append((at, ""))
    elif not (order := MoveEntry.read(entry)).rollout:
        history.by_people.append((at, order.to))


def _find_end(history: _NodeHistory, at: datetime, decision: DecisionEntry, now: datetime) -> datetime:
    faults = {ident for cause in decision.causes for ident in cause.fault_ids}
    return next((when for when, fault in history.ends if when > at and (not fault or fault in faults)), now)
