"""Counts what the ledger's entries say. Pure: the same entries give the same counts, however they are cut into parts.

A process keeps the counts as a cache, and adds only the entries that are new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, product
from typing import get_args

from assay.model.decision import ActionName
from assay.model.entries import effect_entries, fault_entries, node_entries, rollout_entries, schedule_entries
from assay.model.entries import ticket_entries as tickets
from assay.model.ledger_entry import LedgerEntry
from assay.model.ticket import Ticket
from assay.model.timestamps import parse_epoch_seconds
from assay.tell.metrics import families
from assay.tell.metrics.family import Series
from assay.tell.metrics.tally import Distributions, Tally

ACTIONS: tuple[ActionName, ...] = get_args(ActionName)
EFFECT_RESULTS, TICKET_RESULTS = ("verified", "failed"), ("opened", "reopened", "closed")
ROLLOUT_RESULTS = ("started", "finished", "aborted", "superseded")


@dataclass(frozen=True, slots=True)
class NodeStay:
    """Where a node is: its pool, its state, and since when (seconds since 1970)."""

    pool: str
    state: str
    since_s: float


@dataclass(frozen=True, slots=True)
class OpenEffect:
    """An effect that has not ended: its action, when it began (seconds since 1970), and how far it is."""

    action: str
    begun_s: float
    status: str = "intent"


@dataclass(frozen=True, slots=True)
class OpenTicket:
    """An open ticket: its severity, and when it was opened or reopened (seconds since 1970)."""

    severity: str
    opened_s: float


class LedgerCounts:
    """The counts up to the entry `seq`, and what is open there: `effects` by id, `tickets` by id.

    `slot_ends` says when the last slot of each schedule and target ended (seconds since 1970).
    """

    def __init__(self) -> None:
        self.seq = 0
        self.effects: dict[str, OpenEffect] = {}
        self.tickets: dict[str, OpenTicket] = {}
        self.slot_ends: dict[tuple[str, str], float] = {}
        self._stays: dict[str, NodeStay] = {}
        self._open_faults: set[str] = set()
        self._transitions, self._stay_times = Tally(families.TRANSITIONS), Distributions(families.STAYS)
        self._effects = Tally(families.EFFECTS, product(ACTIONS, EFFECT_RESULTS))
        self._effect_times = Distributions(families.EFFECT_DURATION)
        self._retries = Tally(families.EFFECT_RETRIES, product(ACTIONS))
        self._unreadable = Tally(families.EFFECT_UNREADABLE, product(ACTIONS))
        self._faults, self._ticket_counts = Tally(families.FAULTS), Tally(families.TICKETS, product(TICKET_RESULTS))
        self._rollouts, self._commits = (
            Tally(families.ROLLOUTS, product(ROLLOUT_RESULTS)),
            Tally(families.COMMITS, [()]),
        )
        self._slots, self._visits = Tally(families.SCHEDULE_RUNS), Tally(families.VISITS)
        self._delays, self._missed = Distributions(families.CUSTOMER_DELAY), Tally(families.VERIFICATIONS_MISSED)
        self._losses = Tally(families.AGENT_LOSSES)

    def add(self, entries: Iterable[LedgerEntry]) -> None:
        """Count the next entries, in order. Kinds that nothing counts have no effect."""
        for entry in entries:
            self.seq = max(self.seq, entry.seq)
            if count := _HANDLERS.get(entry.kind):
                count(self, entry)

    def series(self) -> Iterator[Series]:
        """Yield every series of the counts."""
        tallies = [one for one in vars(self).values() if isinstance(one, Tally | Distributions)]
        return chain.from_iterable(one.series() for one in tallies)

    def _enrol(self, entry: LedgerEntry) -> None:
        enrolled = node_entries.NodeEnrolledEntry.read(entry)
        self._stays[entry.node] = NodeStay(enrolled.pool, enrolled.state, parse_epoch_seconds(entry.at))

    def _rename(self, entry: LedgerEntry) -> None:
        renamed = node_entries.NodeRenamedEntry.read(entry)
        if stay := self._stays.get(renamed.old):
            self._stays[entry.node] = NodeStay(renamed.pool, stay.state, stay.since_s)

    def _leave(self, entry: LedgerEntry) -> None:
        self._stays.pop(entry.node, None)

    def _move(self, entry: LedgerEntry) -> None:
        moved, at_s = node_entries.TransitionEntry.read(entry), parse_epoch_seconds(entry.at)
        before = self._stays.get(entry.node)
        pool = before.pool if before else ""
        self._transitions.add(pool, moved.from_state, moved.to_state)
        if before:
            self._stay_times.add(at_s - before.since_s, pool, before.state)
        self._stays[entry.node] = NodeStay(pool, moved.to_state, at_s)

    def _begin_effect(self, entry: LedgerEntry) -> None:
        intent = effect_entries.EffectIntentEntry.read(entry)
        self.effects.setdefault(intent.effect, OpenEffect(intent.action, parse_epoch_seconds(entry.at)))

    def _finish_attempt(self, entry: LedgerEntry) -> None:
        self._advance_effect(effect_entries.EffectDoneEntry.read(entry).effect, "done")

    def _retry_effect(self, entry: LedgerEntry) -> None:
        if effect := self._advance_effect(effect_entries.EffectTriedEntry.read(entry).effect, "tried"):
            self._retries.add(effect.action)

    def _lose_sight(self, entry: LedgerEntry) -> None:
        if effect := self._advance_effect(effect_entries.EffectUnknownEntry.read(entry).effect, "unknown"):
            self._unreadable.add(effect.action)

    def _advance_effect(self, ident: str, status: str) -> OpenEffect | None:
        if effect := self.effects.get(ident):
            self.effects[ident] = OpenEffect(effect.action, effect.begun_s, status)
        return effect

    def _verify_effect(self, entry: LedgerEntry) -> None:
        self._end_effect(effect_entries.EffectVerifiedEntry.read(entry).effect, entry, "verified")

    def _fail_effect(self, entry: LedgerEntry) -> None:
        self._end_effect(effect_entries.EffectFailedEntry.read(entry).effect, entry, "failed")

    def _end_effect(self, ident: str, entry: LedgerEntry, result: str) -> None:
        if effect := self.effects.pop(ident, None):
            self._effects.add(effect.action, result)
            self._effect_times.add(parse_epoch_seconds(entry.at) - effect.begun_s, effect.action, result)

    def _find_fault(self, entry: LedgerEntry) -> None:
        fault = fault_entries.FaultEntry.read(entry)
        if fault.fault not in self._open_faults:
            self._open_faults.add(fault.fault)
            self._faults.add(fault.fault_class, fault.severity)

    def _clear_fault(self, entry: LedgerEntry) -> None:
        self._open_faults.discard(fault_entries.FaultClearedEntry.read(entry).fault)

    def _lose_items(self, entry: LedgerEntry) -> None:
        if fault_entries.ObservationFailedEntry.read(entry).channel == "agent":
            stay = self._stays.get(entry.node)
            self._losses.add(stay.pool if stay else "")

    def _open_ticket(self, entry: LedgerEntry) -> None:
        self._add_ticket(tickets.TicketOpenedEntry.read(entry).ticket, entry, "opened")

    def _reopen_ticket(self, entry: LedgerEntry) -> None:
        self._add_ticket(tickets.TicketReopenedEntry.read(entry).ticket, entry, "reopened")

    def _add_ticket(self, ticket: Ticket, entry: LedgerEntry, result: str) -> None:
        self._ticket_counts.add(result)
        self.tickets[ticket.id] = OpenTicket(ticket.severity or "none", parse_epoch_seconds(entry.at))

    def _close_ticket(self, entry: LedgerEntry) -> None:
        self._ticket_counts.add("closed")
        self.tickets.pop(tickets.TicketClosedEntry.read(entry).ticket, None)

    def _change_rollout(self, entry: LedgerEntry) -> None:
        self._rollouts.add(entry.kind.removeprefix("rollout."))

    def _adopt_commit(self, _: LedgerEntry) -> None:
        self._commits.add()

    def _end_slot(self, entry: LedgerEntry) -> None:
        ran = schedule_entries.ScheduleRanEntry.read(entry)
        self._slots.add(ran.schedule, ran.ended)
        if entry.at:
            self.slot_ends[ran.schedule, ran.part] = parse_epoch_seconds(entry.at)

    def _visit_node(self, entry: LedgerEntry) -> None:
        visit = schedule_entries.NodeLoadedEntry.read(entry)
        self._visits.add(visit.schedule, "cut" if visit.reason else "done")
        if visit.gone_ms is not None:
            self._delays.add(visit.gone_ms / 1000, visit.schedule)

    def _miss_verification(self, entry: LedgerEntry) -> None:
        self._missed.add(schedule_entries.VerificationMissedEntry.read(entry).schedule)


_HANDLERS: dict[str, Callable[[LedgerCounts, LedgerEntry], None]] = {
    node_entries.NodeEnrolledEntry.kind: LedgerCounts._enrol,
    node_entries.NodeRenamedEntry.kind: LedgerCounts._rename,
    node_entries.NodeLeftEntry.kind: LedgerCounts._leave,
    node_entries.TransitionEntry.kind: LedgerCounts._move,
    effect_entries.EffectIntentEntry.kind: LedgerCounts._begin_effect,
    effect_entries.EffectDoneEntry.kind: LedgerCounts._finish_attempt,
    effect_entries.EffectTriedEntry.kind: LedgerCounts._retry_effect,
    effect_entries.EffectUnknownEntry.kind: LedgerCounts._lose_sight,
    effect_entries.EffectVerifiedEntry.kind: LedgerCounts._verify_effect,
    effect_entries.EffectFailedEntry.kind: LedgerCounts._fail_effect,
    fault_entries.FaultEntry.kind: LedgerCounts._find_fault,
    fault_entries.FaultClearedEntry.kind: LedgerCounts._clear_fault,
    fault_entries.ObservationFailedEntry.kind: LedgerCounts._lose_items,
    tickets.TicketOpenedEntry.kind: LedgerCounts._open_ticket,
    tickets.TicketReopenedEntry.kind: LedgerCounts._reopen_ticket,
    tickets.TicketClosedEntry.kind: LedgerCounts._close_ticket,
    rollout_entries.CommitAdoptedEntry.kind: LedgerCounts._adopt_commit,
    rollout_entries.RolloutStartedEntry.kind: LedgerCounts._change_rollout,
    rollout_entries.RolloutFinishedEntry.kind: LedgerCounts._change_rollout,
    rollout_entries.RolloutAbortedEntry.kind: LedgerCounts._change_rollout,
    rollout_entries.RolloutSupersededEntry.kind: LedgerCounts._change_rollout,
    schedule_entries.ScheduleRanEntry.kind: LedgerCounts._end_slot,
    schedule_entries.NodeLoadedEntry.kind: LedgerCounts._visit_node,
    schedule_entries.VerificationMissedEntry.kind: LedgerCounts._miss_verification,
}
COUNTED_KINDS = frozenset(_HANDLERS)
"""The kinds of entries that are counted."""
