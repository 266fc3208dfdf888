"""What people said yes or no to on a node, which decisions a person stands behind, which orders waited too long.

What automation would have done where it only watches: how often, for how many node-hours, and whether people did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from assay.model.decision import PERSON_RULE, find_rule_name
from assay.model.entries.faults import FaultClearedEntry
from assay.model.entries.node_entries import (
    ApprovedEntry,
    DecisionEntry,
    DeclinedEntry,
    MoveEntry,
    OrderOutlivedEntry,
    TransitionEntry,
    ZapRequestedEntry,
)
from assay.model.facts import frozen
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import format_time, parse_time

TRUST_CAUSE = "trust"
APPROVED_CAUSE = "approved"
AGE_CAUSE = "age"
"""Kinds of causes: what holds a decision back by its trust step, a person's yes, an order that is too old."""
ORDER_CAUSES = ("person", "rollout", "certified", APPROVED_CAUSE)
"""The kinds of the causes that name what a person ordered."""
TRUST_KINDS = frozenset(
    {DecisionEntry.kind, TransitionEntry.kind, ApprovedEntry.kind, DeclinedEntry.kind, OrderOutlivedEntry.kind}
)


@frozen
class MoveRequest:
    """The state that a person or a rollout wants, until the node is there."""

    id: str
    """The id of the order."""
    to: str
    """The state that the node shall go to."""
    who: str
    """Who gave the order."""
    reason: str
    """Why, in that person's words."""
    at: str
    """When the order was given."""
    now: bool = False
    """Whether the node shall go even while it has jobs."""
    rollout: str = ""
    """The id of the rollout that wants it; "" for a person's order."""
    within_hours: float = 0.0
    """For how many hours it is meant; 0 for as long as the policy says."""


@frozen
class Consent:
    """A person's yes or no. `decision`: what it is about; `within_hours`: see `MoveRequest`."""

    id: str
    decision: str
    who: str
    reason: str
    at: str
    within_hours: float
    is_yes: bool


@frozen
class OrderedDecision:
    """A decision that follows from what a person said: `order` is the id of that, `kind` the kind of the cause.

    `now`: the person wants it even while the node has jobs.
    """

    decision: str
    order: str
    kind: str
    at: str
    now: bool = False


@frozen
class HeldDecision:
    """A decision that waits for its trust step. `told` begins with the step, then its actions; `text` is for people.

    `faults` are those that it would answer.
    """

    decision: str
    at: str
    to: str
    told: tuple[str, ...]
    text: str
    faults: tuple[str, ...]


@frozen
class TrustRecord:
    """The consents of a node, its ordered decisions, the orders that have outlived their time, with the reason of each.

    `held` are the decisions that wait for their trust step, of this stay.
    """

    consents: tuple[Consent, ...] = ()
    ordered: tuple[OrderedDecision, ...] = ()
    outlived: tuple[tuple[str, str], ...] = ()
    held: tuple[HeldDecision, ...] = ()

    def find_consent(self, decision: str) -> Consent | None:
        """Return the last word of a person on a decision or an order, None without one."""
        return next((consent for consent in reversed(self.consents) if consent.decision == decision), None)

    def find_order(self, decision: str) -> OrderedDecision | None:
        """Return the person's word behind a decision, None if nobody stands behind it."""
        return next((ordered for ordered in reversed(self.ordered) if ordered.decision == decision), None)

    def find_outlived(self, order: str) -> str:
        """Return why an order waits for a person, "" if it does not."""
        return next((reason for ident, reason in self.outlived if ident == order), "")


NOTHING_SAID = TrustRecord()


def advance_trust(
    record: TrustRecord, entry: LedgerEntry, decision: DecisionEntry | None, request: MoveRequest | None = None
) -> TrustRecord:
    """Return the record with one more entry; `decision` is its content where it is a decision.

    `request` is the order for the node that is open.
    """
    if decision is not None:
        return _add_decision(record, decision, format_time(entry.at), request)
    if entry.kind == TransitionEntry.kind:
        return replace(record, held=())
    if entry.kind == OrderOutlivedEntry.kind:
        late = OrderOutlivedEntry.read(entry)
        return replace(record, outlived=(*record.outlived, (late.order, late.reason)))
    word = ApprovedEntry.read(entry)
    at = format_time(entry.at)
    is_yes = entry.kind == ApprovedEntry.kind
    consent = Consent(entry.id, word.decision, word.who, word.reason, at, word.within_hours, is_yes)
    record = replace(record, consents=(*record.consents, consent))
    if not is_yes:
        return record
    outlived = tuple(order for order in record.outlived if order[0] != word.decision)
    is_held = any(held.decision == word.decision for held in record.held)
    known = () if is_held else (OrderedDecision(word.decision, entry.id, APPROVED_CAUSE, at),)
    return replace(record, outlived=outlived, ordered=(*record.ordered, *known))


def _add_decision(record: TrustRecord, decision: DecisionEntry, at: str, request: MoveRequest | None) -> TrustRecord:
    first = decision.causes[0] if decision.causes else None
    if first and first.kind == TRUST_CAUSE and decision.remedy == "wait":
        faults = tuple(ident for cause in decision.causes for ident in cause.fault_ids)
        facts = tuple(first.id.split())
        held = HeldDecision(decision.decision, at, decision.to_state, facts, first.text, faults)
        return replace(record, held=(*record.held, held))
    if decision.remedy == "wait":
        return record
    behind = [cause for cause in decision.causes if cause.kind in ORDER_CAUSES]
    if find_rule_name(decision.rule) != PERSON_RULE:
        behind = [cause for cause in behind if cause.kind != "person"]
    now_order = request.id if request and request.now else ""
    ordered = [
        OrderedDecision(decision.decision, cause.id, cause.kind, at, cause.id == now_order) for cause in behind[-1:]
    ]
    return replace(record, ordered=(*record.ordered, *ordered))


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


@frozen
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
    decisions = Counter[str]()
    done = 0
    span = timedelta()
    nodes = 0
    for history in histories.values():
        would = [(at, move) for at, move in history.would if at >= oldest]
        nodes, covered = nodes + bool(would), oldest
        for at, move in would:
            decisions[f"{', '.join(move.causes[0].id.split()[1:]) or 'move'} → {move.to_state}"] += 1
            done += any(to == move.to_state and abs(when - at) <= SAME for when, to in history.by_people)
            if policy.is_in_service(move.from_state) and not policy.is_in_service(move.to_state):
                faults = {ident for cause in move.causes for ident in cause.fault_ids}
                end = next((when for when, fault in history.ends if when > at and (not fault or fault in faults)), now)
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
