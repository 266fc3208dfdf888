"""Counts what the ledger says: its entries, and the outcomes in its tables, of which it reads what new runs changed.

The same entries give the same counts, however they are cut into parts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, product
from typing import Any, get_args

from assay.act.schedules.staleness_sweep import list_judged_phases
from assay.decide.state.node_state import NodeState
from assay.ledger.store import Ledger
from assay.model.decision import ActionName
from assay.model.entries import effects, faults, node_entries, rollouts, schedule_entries, tickets
from assay.model.entries.entry_content import EntryContent
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, Projection
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import parse_epoch_seconds
from assay.tell.metrics.families import FAMILIES_BY_NAME, Distribution, Series


class Tally:
    """Numbers of a family that only grow, by the values of its labels.

    Those that are `expected` are there from the start, as 0: Prometheus sees no increase from nothing to 1.
    """

    def __init__(self, family: str, expected: Iterable[tuple[str, ...]] = ()) -> None:
        self.family = family
        self._counts: Counter[tuple[str, ...]] = Counter(dict.fromkeys(expected, 0))

    def add(self, *values: str, count: float = 1) -> None:
        """Count once more, or `count` times."""
        self._counts[values] += count  # type: ignore[assignment]  # seconds are no whole numbers

    def copy(self) -> Tally:
        """Return one that counts for itself."""
        copied = Tally(self.family)
        copied._counts = self._counts.copy()
        return copied

    def series(self) -> Iterator[Series]:
        """Yield one series for each combination of label values that was counted."""
        return (Series(self.family, values, count) for values, count in sorted(self._counts.items()))


class Distributions:
    """The distributions of a family, by the values of its labels."""

    def __init__(self, family: str) -> None:
        self.family, self._edges = family, FAMILIES_BY_NAME[family].edges
        self._counts: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0] * (len(self._edges) + 1))
        self._totals: Counter[tuple[str, ...]] = Counter()

    def add(self, value: float, *values: str) -> None:
        """Put a value into its bucket. One below zero, which a clock that was set back gives, counts as zero."""
        value = max(0.0, value)
        self._counts[values][bisect_left(self._edges, value)] += 1
        self._totals[values] += value  # type: ignore[assignment]  # seconds are no whole numbers

    def copy(self) -> Distributions:
        """Return one that counts for itself."""
        copied = Distributions(self.family)
        copied._counts.update((values, list(counts)) for values, counts in self._counts.items())
        copied._totals = self._totals.copy()
        return copied

    def series(self) -> Iterator[Series]:
        """Yield one series for each combination of label values."""
        for values, counts in sorted(self._counts.items()):
            yield Series(self.family, values, Distribution(tuple(counts), self._totals[values]))


def count_series(family: str, labels: Iterable[tuple[str, ...]]) -> Iterator[Series]:
    """Yield how often each combination of label values occurs."""
    return (Series(family, values, count) for values, count in sorted(Counter(labels).items()))


def oldest_series(family: str, since: Iterable[tuple[tuple[str, ...], float]], now_s: float) -> Iterator[Series]:
    """Yield the greatest age for each combination of label values; `since` gives times in seconds since 1970."""
    first: dict[tuple[str, ...], float] = {}
    for values, at_s in since:
        if values not in first or at_s < first[values]:
            first[values] = at_s
    return (Series(family, values, max(0.0, now_s - at_s)) for values, at_s in sorted(first.items()))


ACTIONS: tuple[ActionName, ...] = get_args(ActionName)
EFFECT_RESULTS, TICKET_RESULTS = ("verified", "failed"), ("opened", "reopened", "closed")
ROLLOUT_RESULTS = ("started", "finished", "aborted", "superseded")


@frozen
class NodeStay:
    """Where a node is: its pool, its state, and since when (seconds since 1970)."""

    pool: str
    state: str
    since_s: float


@frozen
class OpenEffect:
    """An effect that has not ended: its action, when it began (seconds since 1970), and how far it is."""

    action: str
    begun_s: float
    status: str = "intent"


@frozen
class OpenTicket:
    """An open ticket: its severity, and when it was opened or reopened (seconds since 1970)."""

    severity: str
    opened_s: float


Handler = Callable[["LedgerCounts", Any, LedgerEntry], None]
_HANDLERS: dict[str, tuple[type[EntryContent], Handler]] = {}


def _counts(*contents: type[EntryContent]) -> Callable[[Handler], Handler]:
    """Let a method of LedgerCounts count the entries of these kinds: it gets the content of each."""

    def register(handler: Handler) -> Handler:
        _HANDLERS.update((content.kind, (content, handler)) for content in contents)
        return handler

    return register


class LedgerCounts:
    """The counts, and what is open: `effects` by id, `tickets` by id.

    `slot_ends` says when the last slot of each schedule and target ended (seconds since 1970).
    """

    def __init__(self) -> None:
        self.effects: dict[str, OpenEffect] = {}
        self.tickets: dict[str, OpenTicket] = {}
        self.slot_ends: dict[tuple[str, str], float] = {}
        self._stays: dict[str, NodeStay] = {}
        self._open_faults: set[str] = set()
        self._transitions = Tally("assay_transitions_total")
        self._stay_times = Distributions("assay_stay_duration_seconds")
        self._effects = Tally("assay_effects_total", product(ACTIONS, EFFECT_RESULTS))
        self._effect_times = Distributions("assay_effect_duration_seconds")
        self._retries = Tally("assay_effect_retries_total", product(ACTIONS))
        self._unreadable = Tally("assay_effect_unreadable_total", product(ACTIONS))
        self._faults = Tally("assay_faults_total")
        self._ticket_counts = Tally("assay_tickets_total", product(TICKET_RESULTS))
        self._rollouts = Tally("assay_rollouts_total", product(ROLLOUT_RESULTS))
        self._commits = Tally("assay_commits_adopted_total", [()])
        self._slots = Tally("assay_schedule_runs_total")
        self._visits = Tally("assay_idle_visits_total")
        self._delays = Distributions("assay_idle_visit_customer_delay_seconds")
        self._missed = Tally("assay_verifications_missed_total")
        self._losses = Tally("assay_agent_losses_total")

    def copy(self) -> LedgerCounts:
        """Return counts that grow for themselves."""
        copied = LedgerCounts()
        for name, content in vars(self).items():
            setattr(copied, name, content.copy())
        return copied

    def add(self, entry: LedgerEntry) -> LedgerCounts:
        """Count the next entry, and return this object."""
        content, handler = _HANDLERS[entry.kind]
        handler(self, content.read(entry), entry)
        return self

    def series(self) -> Iterator[Series]:
        """Yield every series of the counts."""
        tallies = [tally for tally in vars(self).values() if isinstance(tally, Tally | Distributions)]
        return chain.from_iterable(tally.series() for tally in tallies)

    @_counts(node_entries.NodeEnrolledEntry)
    def _enrol(self, enrolled: node_entries.NodeEnrolledEntry, entry: LedgerEntry) -> None:
        self._stays[entry.node] = NodeStay(enrolled.pool, enrolled.state, parse_epoch_seconds(entry.at))

    @_counts(node_entries.NodeRenamedEntry)
    def _rename(self, renamed: node_entries.NodeRenamedEntry, entry: LedgerEntry) -> None:
        if stay := self._stays.get(renamed.old):
            self._stays[entry.node] = NodeStay(renamed.pool, stay.state, stay.since_s)

    @_counts(node_entries.NodeLeftEntry)
    def _leave(self, _: node_entries.NodeLeftEntry, entry: LedgerEntry) -> None:
        self._stays.pop(entry.node, None)

    @_counts(node_entries.TransitionEntry)
    def _move(self, moved: node_entries.TransitionEntry, entry: LedgerEntry) -> None:
        at_s, before = parse_epoch_seconds(entry.at), self._stays.get(entry.node)
        pool = before.pool if before else ""
        self._transitions.add(pool, moved.from_state, moved.to_state)
        if before:
            self._stay_times.add(at_s - before.since_s, pool, before.state)
        self._stays[entry.node] = NodeStay(pool, moved.to_state, at_s)

    @_counts(effects.EffectIntentEntry)
    def _begin_effect(self, intent: effects.EffectIntentEntry, entry: LedgerEntry) -> None:
        self.effects.setdefault(intent.effect, OpenEffect(intent.action, parse_epoch_seconds(entry.at)))

    @_counts(effects.EffectDoneEntry, effects.EffectTriedEntry, effects.EffectUnknownEntry)
    def _advance_effect(
        self, progress: effects.EffectProgressEntry | effects.EffectTriedEntry, entry: LedgerEntry
    ) -> None:
        if effect := self.effects.get(progress.effect):
            status = entry.kind.removeprefix("effect.")
            self.effects[progress.effect] = OpenEffect(effect.action, effect.begun_s, status)
            if status == "tried":
                self._retries.add(effect.action)
            elif status == "unknown":
                self._unreadable.add(effect.action)

    @_counts(effects.EffectVerifiedEntry, effects.EffectFailedEntry)
    def _end_effect(self, ended: effects.EffectProgressEntry, entry: LedgerEntry) -> None:
        if effect := self.effects.pop(ended.effect, None):
            result = entry.kind.removeprefix("effect.")
            self._effects.add(effect.action, result)
            self._effect_times.add(parse_epoch_seconds(entry.at) - effect.begun_s, effect.action, result)

    @_counts(faults.FaultEntry)
    def _find_fault(self, fault: faults.FaultEntry, _: LedgerEntry) -> None:
        if fault.fault not in self._open_faults:
            self._open_faults.add(fault.fault)
            self._faults.add(fault.fault_class, fault.severity)

    @_counts(faults.FaultClearedEntry)
    def _clear_fault(self, cleared: faults.FaultClearedEntry, _: LedgerEntry) -> None:
        self._open_faults.discard(cleared.fault)

    @_counts(faults.ObservationFailedEntry)
    def _lose_items(self, failed: faults.ObservationFailedEntry, entry: LedgerEntry) -> None:
        if failed.channel == "agent":
            stay = self._stays.get(entry.node)
            self._losses.add(stay.pool if stay else "")

    @_counts(tickets.TicketOpenedEntry, tickets.TicketReopenedEntry)
    def _open_ticket(self, opened: tickets.TicketOpenedEntry | tickets.TicketReopenedEntry, entry: LedgerEntry) -> None:
        self._ticket_counts.add(entry.kind.removeprefix("ticket."))
        self.tickets[opened.ticket.id] = OpenTicket(opened.ticket.severity or "none", parse_epoch_seconds(entry.at))

    @_counts(tickets.TicketClosedEntry)
    def _close_ticket(self, closed: tickets.TicketClosedEntry, _: LedgerEntry) -> None:
        self._ticket_counts.add("closed")
        self.tickets.pop(closed.ticket, None)

    @_counts(
        rollouts.RolloutStartedEntry,
        rollouts.RolloutFinishedEntry,
        rollouts.RolloutAbortedEntry,
        rollouts.RolloutSupersededEntry,
    )
    def _change_rollout(self, _: EntryContent, entry: LedgerEntry) -> None:
        self._rollouts.add(entry.kind.removeprefix("rollout."))

    @_counts(rollouts.CommitAdoptedEntry)
    def _adopt_commit(self, _: rollouts.CommitAdoptedEntry, __: LedgerEntry) -> None:
        self._commits.add()

    @_counts(schedule_entries.ScheduleRanEntry)
    def _end_slot(self, ran: schedule_entries.ScheduleRanEntry, entry: LedgerEntry) -> None:
        self._slots.add(ran.schedule, ran.ended)
        if entry.at:
            self.slot_ends[ran.schedule, ran.part] = parse_epoch_seconds(entry.at)

    @_counts(schedule_entries.NodeLoadedEntry)
    def _visit_node(self, visit: schedule_entries.NodeLoadedEntry, _: LedgerEntry) -> None:
        self._visits.add(visit.schedule, "cut" if visit.reason else "done")
        if visit.gone_ms is not None:
            self._delays.add(visit.gone_ms / 1000, visit.schedule)

    @_counts(schedule_entries.VerificationMissedEntry)
    def _miss_verification(self, missed: schedule_entries.VerificationMissedEntry, _: LedgerEntry) -> None:
        self._missed.add(missed.schedule)


LEDGER_COUNTS = Projection(frozenset(_HANDLERS), LedgerCounts, LedgerCounts.add, LedgerCounts.copy)


Phases = dict[str, frozenset[str]]
"""The checks of each phase."""


class CheckCounts:
    """The outcomes up to the run number `last`, and the oldest pass of each node in each phase."""

    def __init__(self) -> None:
        self.last = 0
        self._runs, self._last_at_s = 0, 0.0
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._phases: Phases = {}
        self._oldest: dict[str, dict[str, float]] = {}

    def refresh(self, ledger: Ledger, fleet: Fleet) -> None:
        """Read what was recorded since the last call. Other phases, or other checks in them, are read anew."""
        phases = list_phases(fleet)
        if ledger.outcomes_head() == self.last and phases == self._phases:
            return
        nodes = ledger.find_judged_nodes(self.last) if self.last and phases == self._phases else None
        new, oldest = ledger.count_outcomes(self.last), dict[str, dict[str, float]]()
        for (check, verdict), count in new.outcomes.items():
            self._outcomes[find_check_family(check), verdict] += count
        self._runs += new.runs
        if new.last_at:
            self._last_at_s = parse_epoch_seconds(new.last_at)
        for phase, checks in phases.items():
            kept = self._oldest.get(phase, {}) if nodes is not None else {}
            oldest[phase] = {**kept, **ledger.oldest_passes(checks, nodes)}
        self._oldest, self.last, self._phases = oldest, new.last, phases

    def series(
        self, policy: LifecyclePolicy, states: Iterable[NodeState], pools: Mapping[str, str], now_s: float
    ) -> Iterator[Series]:
        """Yield the series of checks; `states` are the nodes of the inventory, `pools` their pools by name."""
        for labels, count in sorted(self._outcomes.items()):
            yield Series("assay_outcomes_total", labels, count)
        yield Series("assay_runs_total", (), self._runs)
        if self._runs:
            yield Series("assay_last_run_age_seconds", (), max(0.0, now_s - self._last_at_s))
        oldest, unproven = list[tuple[tuple[str, str], float]](), Counter[tuple[str, str]]()
        judged: dict[str, list[tuple[str, dict[str, float]]]] = {}
        for state in states:
            if state.unsettled_effects:
                continue
            if state.state not in judged:
                phases = list_judged_phases(policy, state) & self._phases.keys()
                judged[state.state] = [(phase, self._oldest.get(phase, {})) for phase in sorted(phases)]
            for phase, passes in judged[state.state]:
                labels, at_s = (pools[state.node], phase), passes.get(state.node)
                unproven[labels] += at_s is None
                if at_s is not None:
                    oldest.append((labels, at_s))
        yield from oldest_series("assay_phase_oldest_pass_age_seconds", oldest, now_s)
        yield from (Series("assay_phase_unproven_nodes", labels, count) for labels, count in sorted(unproven.items()))


def find_check_family(check: str) -> str:
    """Return the file of a check below suites/, such as `production/test_gpu`."""
    return check.partition("::")[0].removeprefix("suites/").removesuffix(".py")


def list_phases(fleet: Fleet) -> Phases:
    """Return the checks of each phase."""
    checks = [check for catalog in fleet.check_catalogs.values() for check in catalog.checks]
    phases = {phase for check in checks for phase in check.phases}
    return {phase: frozenset(check.id for check in checks if phase in check.phases) for phase in sorted(phases)}
