"""The loop that keeps running: answers new ledger entries at once, and does what is due when it is due.

One thread decides and acts. What takes long has a background worker each: observing nodes, scheduled jobs, tickets,
and effects that wait. All of them append to the ledger, which wakes the loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from threading import Event

from assay.act.effects.pending_effect_runner import run_effects
from assay.act.ingest.collection import scan_fabrics
from assay.act.ingest.silent_nodes import read_last_observed, record_silence
from assay.act.loop.background_worker import BackgroundWorker, FailureLog, IntervalThrottle
from assay.act.loop.fleet_reload import (
    RELOAD_INTERVAL_S,
    FleetReloader,
    accept_commit,
    describe_change,
    requires_signed_commits,
)
from assay.act.loop.rack_leases import RackAssignment
from assay.act.loop.reconcile_pass import (
    compare_cordons,
    find_busy_nodes,
    look_at_clocks,
    observe_nodes,
    record_decisions,
    tell_people,
)
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.rollouts.commit_adoption import take_up_fleet
from assay.act.schedules.due_slots import SlotTask
from assay.act.schedules.poll_schedule import (
    PollSchedule,
    find_max_evidence_age_s,
    find_unscheduled_fabrics,
    read_poll_intervals,
)
from assay.act.schedules.scheduled_jobs import SCHEDULED_JOBS
from assay.act.schedules.slot_runner import list_due_tasks, run_slot_task
from assay.act.tickets.ticket_updates import list_fabrics_to_prove
from assay.model.decision import REPAIR_ACTIONS
from assay.model.entries.effects import EffectVerifiedEntry
from assay.model.entries.node_entries import TransitionEntry
from assay.model.errors import describe_error
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.text.lists import format_count
from assay.model.timestamps import parse_time

LEDGER_WAIT_S = 1.0
"""How long a turn waits for new entries before it looks at the clock."""
SCHEDULE_INTERVAL_S, DECISION_INTERVAL_S, TICKET_INTERVAL_S = 5.0, 30.0, 60.0
"""Real seconds between two looks at the schedules, decisions by time alone, and postponed tickets."""
CORDONS_INTERVAL_S = 300.0
"""Real seconds between two comparisons of all nodes with their schedulers; nodes with work are read more often."""
DEFAULT_POLL_INTERVAL_S = 300.0
"""The poll interval of a node without a schedule, in seconds of the fleet's clock."""
JOB_WORKERS = 4
STOP_GRACE_S = 10.0
"""How long running tasks may take to end when the loop stops."""
IGNORED_KIND_PREFIXES = ("ticket.", "notice", "schedule.", "observe.", "commit.", "rollout.", "burnin.window")
"""Kinds of entries that change nothing for decisions."""
REOBSERVE_KINDS = ("certified", "release", "part.replaced", "ticket.done")
"""Kinds of entries after which a node is polled at once, as after a repair."""


@dataclass(frozen=True)
class LoopListener:
    """Gets what the loop has to say: `on_entries` new ledger entries, `on_message` its text, `on_turn` that it runs."""

    on_entries: Callable[[list[LedgerEntry]], None]
    on_message: Callable[[str], None]
    on_turn: Callable[[], None] = lambda: None


class ReconcileLoop:
    """Looks after the nodes that `select_nodes` picks from the fleet. `interval_s` overrides every poll interval."""

    def __init__(
        self,
        fleet_state: FleetSnapshotCache,
        assignment: RackAssignment,
        reloader: FleetReloader,
        select_nodes: Callable[[Fleet], list[str]],
        listener: LoopListener,
        interval_s: float | None = None,
    ) -> None:
        self._fleet_state, self._assignment, self._reloader = fleet_state, assignment, reloader
        self._select_nodes, self._listener, self._interval_s = select_nodes, listener, interval_s
        self._observer, self._ticket_worker, self._effect_worker = (
            BackgroundWorker(name, listener.on_message) for name in ("observing", "tickets", "waiting effects")
        )
        self._job_workers = [BackgroundWorker("scheduled jobs", listener.on_message) for _ in range(JOB_WORKERS)]
        self._running_tasks: dict[str, BackgroundWorker] = {}
        self._failures, self._throttle = FailureLog(), IntervalThrottle()
        self._nodes_in_worker, self._nodes_after_worker = frozenset[str](), set[str]()
        self._nodes_to_decide, self._unjudged = set[str](), set[str]()
        self._tickets_changed = self._is_clock_unknown = True

    def run(self, stop: Event) -> None:
        """Run until `stop` is set. Raises AssayError only where the loop cannot start."""
        self.begin()
        while not stop.is_set():
            self._listener.on_turn()
            try:
                self._run_turn()
            except Exception as error:  # whatever it is, a later turn may succeed
                if reason := self._failures.record_failure(describe_error(error)):
                    self._listener.on_message(f"{reason}; tries again")
                while not self._failures.may_retry and not stop.wait(0.2):
                    pass
            else:
                if self._failures.record_success():
                    self._listener.on_message("works again")
        self._stop()

    def begin(self) -> None:
        """Adopt the fleet and enrol its new nodes. Entries that the ledger has already are not new."""
        fleet_state = self._fleet_state
        accept_commit(fleet_state.context)
        fleet_state.take_new_entries()
        take_up_fleet(fleet_state.context)
        self._listener.on_entries(fleet_state.take_new_entries())
        self._last_seq = fleet_state.last_seq
        self._adopt_fleet(fleet_state.context.fleet, self._select_nodes(fleet_state.context.fleet))
        count = format_count(len(self._names), "node")
        self._listener.on_message(f"looks after {count}, and answers what is new at once; Ctrl-C or SIGTERM ends it")

    def _adopt_fleet(self, fleet: Fleet, names: list[str]) -> None:
        """Work with this version of the fleet, and these nodes of it."""
        self._names, self._selected = names, frozenset(names)
        self._is_signed = requires_signed_commits(self._fleet_state.context)
        self._assignment.replace_nodes(fleet.nodes)
        now, polled_at = self._now(), read_last_observed(self._fleet_state.context)
        intervals = read_poll_intervals(fleet, names, self._interval_s, DEFAULT_POLL_INTERVAL_S)
        self._poll_schedule = PollSchedule(intervals, polled_at, now)
        changed = []
        for state in self._fleet_state.list_active_states():
            changed_at = max(parse_time(state.since), parse_time(state.repaired_at))
            if polled_at.get(state.node, now) < changed_at.timestamp():
                changed.append(state.node)
        changed += self._unjudged
        self._unjudged = set()
        self._poll_schedule.mark_due(changed)

    def read_fleet_again(self) -> None:
        """Let the next turn read the fleet again."""
        self._reloader.read_again()
        self._throttle.reset("reload")

    def run_everything_due(self) -> None:
        """Run one turn with everything due except polls, and wait for its workers."""
        self._throttle.reset_all()
        self._run_turn(0)
        for worker in self._workers():
            worker.join(STOP_GRACE_S)

    def _run_turn(self, wait_s: float = LEDGER_WAIT_S) -> None:
        """Wait up to `wait_s` for new entries; answer them, and start what is due."""
        self._look_at_clocks()
        has_news = self._fleet_state.context.ledger.wait(self._last_seq, wait_s) > self._last_seq
        if has_news or self._throttle.is_due("reload", RELOAD_INTERVAL_S):  # what checks have read is adopted first
            self._reload_fleet()
        if entries := self._fleet_state.take_new_entries():
            self._last_seq, self._tickets_changed = entries[-1].seq, True
            self._listener.on_entries(entries)
            self._poll_schedule.mark_due({entry.node for entry in entries if self._asks_for_reading(entry)})
            relevant = {entry.node for entry in entries if not entry.kind.startswith(IGNORED_KIND_PREFIXES)}
            self._nodes_to_decide |= relevant & self._selected  # a failed turn loses none of them
        if self._nodes_to_decide:
            self._decide_on_news()
        if self._nodes_after_worker and not self._effect_worker.is_busy:
            nodes, self._nodes_after_worker = self._nodes_after_worker, set()
            self._act(nodes)
        if self._throttle.is_due("decide", DECISION_INTERVAL_S) and not self._fleet_state.is_clock_wrong:
            self._decide_by_time()
        self._start_observation()
        self._start_scheduled_tasks()
        self._start_ticket_update()

    def _look_at_clocks(self) -> None:
        """Ask others for the time before the first decision, and while ours is wrong. Then polls begin anew."""
        was_wrong = self._fleet_state.is_clock_wrong
        if self._is_clock_unknown or (was_wrong and self._throttle.is_due("clocks", DECISION_INTERVAL_S)):
            self._is_clock_unknown = False
            look_at_clocks(self._fleet_state)
            if was_wrong:
                self._adopt_fleet(self._fleet_state.context.fleet, self._names)
                self._throttle.reset_all()

    def _asks_for_reading(self, entry: LedgerEntry) -> bool:
        """Whether the node is polled at once: not before a repair, whose end asks for it, nor where it only passes."""
        if entry.kind == EffectVerifiedEntry.kind:
            return EffectVerifiedEntry.read(entry).action in REPAIR_ACTIONS
        if entry.kind != TransitionEntry.kind:
            return entry.kind in REOBSERVE_KINDS
        state = self._fleet_state.context.fleet.policy.states.get(TransitionEntry.read(entry).to_state)
        only_passes = state is not None and state.pass_to is not None and not state.requires
        return state is None or not (only_passes or REPAIR_ACTIONS & {*state.entry})

    def _decide_on_news(self) -> None:
        """Decide about the nodes with new entries, and act on the decisions.

        Nodes that the worker for waiting effects has now are acted on after it.
        """
        if nodes := self._assignment.select_assigned(sorted(self._nodes_to_decide)):
            self._decide(nodes, nodes)
            self._nodes_after_worker |= self._nodes_in_worker & set(nodes)
            self._act(set(nodes) - self._nodes_in_worker)
        self._nodes_to_decide.clear()

    def _decide(self, names: Collection[str], candidates: Collection[str] | None = None) -> None:
        if self._is_signed:
            accept_commit(self._fleet_state.context)
        record_decisions(self._fleet_state, names, candidates, assignment=self._assignment)

    def _act(self, names: Collection[str]) -> None:
        """Bring about the outstanding effects of these nodes; long ones go on in the background."""
        if self._fleet_state.is_clock_wrong:
            return
        if busy := find_busy_nodes(self._fleet_state, names) & set(names):
            states = self._fleet_state.node_states()
            run_effects(self._fleet_state.context, sorted(busy), {name: states[name] for name in busy}, wait=False)

    def _decide_by_time(self) -> None:
        """Decide about all that time alone may change: silence, deadlines, and what waits for a job to end."""
        assigned = self._assignment.select_assigned(self._names)
        record_silence(self._fleet_state.context, self._fleet_state.build_states_snapshot())
        if self._throttle.is_due("cordons", CORDONS_INTERVAL_S):
            compare_cordons(self._fleet_state, assigned, self._assignment)
        self._decide(assigned)
        if self._effect_worker.is_free and (busy := find_busy_nodes(self._fleet_state, assigned)):
            self._nodes_in_worker = frozenset(busy)
            self._effect_worker.start(partial(self._run_open_effects, busy))

    def _run_open_effects(self, names: Collection[str]) -> None:
        """Go on with effects that wait for a job, for their time, or for a reading of the world."""
        try:
            run_effects(self._fleet_state.context, sorted(names), wait=False)
        finally:
            self._nodes_in_worker = frozenset()

    def _start_observation(self) -> None:
        """Start a round over the nodes that are due to be polled."""
        now = self._now()
        due = self._poll_schedule.due(now) if self._observer.is_free else []
        names = self._assignment.select_assigned(due)
        if names and self._throttle.is_due("observe", self._poll_schedule.gap_s, now):
            self._poll_schedule.mark_observed(names, now)
            self._observer.start(partial(self._observe, names, self._list_due_fabrics(now)))

    def _observe(self, names: list[str], fabrics: Collection[str]) -> None:
        context = self._fleet_state.context
        if fabrics:
            scan_fabrics(
                context, [node.name for node in context.fleet.nodes.values() if node.settings.fabric in fabrics]
            )
        observe_nodes(self._fleet_state, names, may_judge=partial(self._may_judge, names))
        policy_states, states, now = context.policy.states, self._fleet_state.node_states(), self._now()
        for name in names:  # evidence must not become too old for what the node's state requires
            if name in states and (age_s := find_max_evidence_age_s(policy_states[states[name].state])):
                self._poll_schedule.limit_interval(name, age_s, now)
        self._throttle.reset("reload", "decide")

    def _may_judge(self, names: Collection[str]) -> bool:
        """Return whether the fleet's files are those that decisions use; else these nodes are due once they are."""
        is_current = self._reloader.is_current()
        self._unjudged.update([] if is_current else names)
        return is_current

    def _list_due_fabrics(self, now: float) -> Collection[str]:
        """Return the fabrics to scan with this round: those to prove, and unscheduled ones once an interval."""
        to_prove = list_fabrics_to_prove(self._fleet_state.context)
        if not self._throttle.is_due("scan", self._interval_s or DEFAULT_POLL_INTERVAL_S, now):
            return to_prove
        fleet = self._fleet_state.context.fleet
        assigned = self._assignment.select_assigned(self._names)
        return to_prove | find_unscheduled_fabrics(fleet, [fleet.nodes[name] for name in assigned])

    def _start_scheduled_tasks(self) -> None:
        """Start the slots that are due, one for each free worker."""
        free = [worker for worker in self._job_workers if worker.is_free]
        if not free or self._fleet_state.is_clock_wrong or not self._throttle.is_due("schedules", SCHEDULE_INTERVAL_S):
            return
        self._running_tasks = {ident: worker for ident, worker in self._running_tasks.items() if worker.is_busy}
        context = self._fleet_state.context
        due = [task for task in list_due_tasks(context, context.clock.now()) if task.id not in self._running_tasks]
        for worker, task in zip(free, due, strict=False):
            self._running_tasks[task.id] = worker
            worker.start(partial(self._run_task, task))

    def _run_task(self, task: SlotTask) -> None:
        if self._is_signed:
            accept_commit(self._fleet_state.context)
        run_slot_task(self._fleet_state.context, task, SCHEDULED_JOBS)

    def _start_ticket_update(self) -> None:
        if self._ticket_worker.is_free and (
            self._throttle.is_due("tickets", TICKET_INTERVAL_S) or self._tickets_changed
        ):
            self._tickets_changed = False
            self._ticket_worker.start(partial(tell_people, self._fleet_state.context, self._fleet_state, keep=True))

    def _reload_fleet(self) -> None:
        """Adopt the fleet as it is declared now, if that changed."""
        if (fleet := self._reloader.reload_if_changed()) is None:
            return
        before = self._fleet_state.context.fleet
        context, names = replace(self._fleet_state.context, fleet=fleet), self._select_nodes(fleet)
        accept_commit(context)
        self._fleet_state.replace_context(context)
        self._reloader.note_use()
        take_up_fleet(context)
        self._adopt_fleet(fleet, names)
        self._throttle.reset("decide")
        count = format_count(len(names), "node")
        self._listener.on_message(f"read the fleet again ({describe_change(before, fleet)}): goes on with {count}")

    def _stop(self) -> None:
        """Give running workers a little time to end."""
        until = time.monotonic() + STOP_GRACE_S
        for worker in self._workers():
            worker.join(max(0.0, until - time.monotonic()))
        self._listener.on_entries(self._fleet_state.take_new_entries())

    def _workers(self) -> Iterator[BackgroundWorker]:
        yield from (self._observer, self._effect_worker, self._ticket_worker, *self._job_workers)

    def _now(self) -> float:
        return self._fleet_state.context.clock.now().timestamp()
