"""The loop that goes on: answers what is new in the ledger at once, and does what is due when it is due.

One thread decides and acts. Whatever takes long has a lane of its own: looking at nodes, work by the clock, tickets,
and the effects that wait. All of them write into the ledger, which is what wakes the loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event

from assay.controller.background_worker import BackgroundWorker, IntervalThrottle, RetryBackoff, describe_error
from assay.controller.cache.fleet_state import FleetStateCache
from assay.controller.context import ControllerContext
from assay.controller.effects.effect_runner import run_effects
from assay.controller.enrollment import enroll_nodes
from assay.controller.fleet_reload import FleetReloader
from assay.controller.ingest.evidence_collection import scan_fabrics
from assay.controller.ingest.silent_nodes import open_last_seen, record_silence
from assay.controller.rack_leases import RackAssignment
from assay.controller.reconcile_pass import find_busy_nodes, observe_nodes, record_decisions
from assay.controller.schedules.due_slots import SlotTask
from assay.controller.schedules.poll_schedule import (
    PollSchedule,
    find_max_evidence_age_s,
    find_unscheduled_fabrics,
    read_poll_intervals,
)
from assay.controller.schedules.slot_runner import list_due_tasks, run_slot_task
from assay.controller.signed_commit_gate import accept_commit, find_last_accepted_commit
from assay.controller.ticket_updates import update_tickets
from assay.ledger.leases_and_locks import current_process
from assay.lifecycle.node_state import NodeState
from assay.model.decision import REPAIR_ACTIONS
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.text_lists import format_count
from assay.model.timestamps import parse_time
from assay.tickets.ticket_delivery import deliver_tickets

LEDGER_WAIT_S = 1.0
"""How long the loop waits for news before it looks at the clock."""
RELOAD_INTERVAL_S, SCHEDULE_INTERVAL_S, DECISION_INTERVAL_S, TICKET_INTERVAL_S = 2.0, 5.0, 30.0, 60.0
"""Real seconds between two looks at the fleet's files, the timetable, what time alone changes, postponed tickets."""
DEFAULT_POLL_INTERVAL_S = 300.0
"""How often a node is looked at where nothing says so, in seconds of the fleet's clock."""
JOB_WORKERS = 4
STOP_GRACE_S = 10.0
"""How long what is under way may take to end when the loop is to stop."""
IGNORED_KIND_PREFIXES = ("ticket.", "schedule.", "observe.", "commit.")
"""What begins so changes nothing about what is to be decided."""
REOBSERVE_KINDS = ("transition", "certified", "release", "part.replaced")
"""What makes a new look at a node worth while, as a repair does."""


@dataclass(frozen=True)
class LoopListener:
    """Who hears what: `changes` the new lines of the ledger, `say` what the loop itself has to say."""

    on_entries: Callable[[list[LedgerEntry]], None]
    on_message: Callable[[str], None]


class ReconcileLoop:
    """Looks after the nodes that `chosen` picks from a fleet; `interval_s` overrules how often each is looked at."""

    def __init__(
        self,
        memory: FleetStateCache,
        share: RackAssignment,
        current: FleetReloader,
        chosen: Callable[[Fleet], list[str]],
        told: LoopListener,
        interval_s: float | None = None,
    ) -> None:
        self._memory, self._share, self._current, self._chosen = memory, share, current, chosen
        self._told, self._interval_s = told, interval_s
        self._eyes, self._post, self._hands = (
            BackgroundWorker(what, told.on_message) for what in ("looking", "tickets", "what waits")
        )
        self._job_workers = [BackgroundWorker("work by the clock", told.on_message) for _ in range(JOB_WORKERS)]
        self._running_tasks: dict[str, BackgroundWorker] = {}
        self._patience, self._clock = RetryBackoff(), IntervalThrottle()
        self._nodes_in_sweep, self._missed = frozenset[str](), set[str]()
        self._nodes_to_decide = set[str]()
        self._changed = True

    def run(self, stop: Event) -> None:
        """Go on until `stop` is set. Raises Trouble only where the loop cannot even begin."""
        self.begin()
        while not stop.is_set():
            try:
                self._run_turn()
            except Exception as error:  # whatever it is, a later turn may do better
                if told := self._patience.record_failure(describe_error(error)):
                    self._told.on_message(f"{told}; tries again")
                while not self._patience.is_over and not stop.wait(0.2):
                    pass
            else:
                if self._patience.record_success():
                    self._told.on_message("works again")
        self._stop()

    def begin(self) -> None:
        """Take up the fleet: enrol who is new, and say what is begun. What the ledger has already is no news."""
        memory = self._memory
        accept_commit(memory.context)
        memory.take_new_entries()
        enroll_nodes(memory)
        self._told.on_entries(memory.take_new_entries())
        self._last_seq = memory.last_seq
        self._adopt_fleet(memory.context.fleet, self._chosen(memory.context.fleet))
        count = format_count(len(self._names), "node")
        self._told.on_message(f"looks after {count}, and answers what is new at once; Ctrl-C or SIGTERM ends it")

    def _adopt_fleet(self, fleet: Fleet, names: list[str]) -> None:
        """Take up a fleet as it was read, and these nodes of it."""
        self._names = names
        self._assigned_names = frozenset(self._names)
        self._signed = requires_signed_commits(self._memory.context)
        now, looked = self._now(), read_last_observed(self._memory.context)
        self._poll_schedule = PollSchedule(
            read_poll_intervals(fleet, self._names, self._interval_s, DEFAULT_POLL_INTERVAL_S), looked, now
        )
        stirred = [
            story
            for story in self._memory.list_active_states()
            if looked.get(story.node, now) < _last_changed_at(story)
        ]
        self._poll_schedule.mark_due([story.node for story in stirred])

    def run_everything_due(self) -> None:
        """Do at once all that is done now and then, but for looks that are not due, and wait for its end."""
        self._clock.reset_all()
        self._run_turn(0)
        for lane in self._workers():
            lane.join(STOP_GRACE_S)

    def _run_turn(self, wait_s: float = LEDGER_WAIT_S) -> None:
        """Wait for news, so long at the most; answer the news, and begin what is due."""
        self._memory.context.ledger.wait(self._last_seq, wait_s)
        if self._clock.is_due("read", RELOAD_INTERVAL_S):
            self._reload_fleet()
        if news := self._memory.take_new_entries():
            self._last_seq, self._changed = news[-1].seq, True
            self._told.on_entries(news)
            self._note_entries(news)
        if self._nodes_to_decide:
            self._decide_on_news()
        if self._missed and not self._hands.is_busy:
            missed, self._missed = self._missed, set()
            self._act(missed)
        if self._clock.is_due("weigh", DECISION_INTERVAL_S):
            self._decide_by_time()
        self._start_observation()
        self._start_scheduled_tasks()
        self._start_ticket_update()

    def _note_entries(self, news: Sequence[LedgerEntry]) -> None:
        """Note which nodes the news are about; trouble on the way to an answer loses none of them."""
        self._poll_schedule.mark_due({entry.node for entry in news if _is_reason_to_observe(entry)})
        self._nodes_to_decide |= {
            entry.node for entry in news if not entry.kind.startswith(IGNORED_KIND_PREFIXES)
        } & self._assigned_names

    def _decide_on_news(self) -> None:
        """Decide about the nodes that are in the news, and act on what comes of it."""
        if concerned := self._share.select_assigned(sorted(self._nodes_to_decide)):
            self._decide(concerned, concerned)
            self._missed |= self._nodes_in_sweep & set(concerned)
            self._act(set(concerned) - self._nodes_in_sweep)
        self._nodes_to_decide.clear()

    def _decide(self, names: Collection[str], asked: Collection[str] | None = None) -> None:
        if self._signed:
            accept_commit(self._memory.context)
        with self._share.hold_decision_lock():
            record_decisions(self._memory, names, asked)

    def _act(self, names: Collection[str]) -> None:
        """Bring about what is owed to these nodes; what takes long goes on beside the loop."""
        if busy := find_busy_nodes(self._memory, names) & set(names):
            stories = self._memory.node_states()
            run_effects(self._memory.context, sorted(busy), {name: stories[name] for name in busy}, wait=False)

    def _decide_by_time(self) -> None:
        """Decide about everything that time alone may have changed: silence, deadlines, what waits for a job to end."""
        ours = self._share.select_assigned(self._names)
        record_silence(self._memory.context, self._memory.build_states_snapshot())
        self._decide(ours)
        if self._hands.is_free and (open_ := find_busy_nodes(self._memory, ours)):
            self._nodes_in_sweep = frozenset(open_)
            self._hands.start(partial(self._run_open_effects, open_))

    def _run_open_effects(self, names: Collection[str]) -> None:
        """Go on with what is owed and waits: for a job, for its time to come, for a reading of the world."""
        try:
            run_effects(self._memory.context, sorted(names), wait=False)
        finally:
            self._nodes_in_sweep = frozenset()

    def _start_observation(self) -> None:
        """Begin a round of looking at the nodes whose turn it is."""
        now = self._now()
        names = self._share.select_assigned(self._poll_schedule.due(now)) if self._eyes.is_free else []
        if names and self._clock.is_due("look", self._poll_schedule.gap_s, now):
            self._poll_schedule.mark_observed(names, now)
            self._eyes.start(partial(self._observe, names, self._list_due_fabrics(now)))

    def _observe(self, names: list[str], fabrics: Collection[str]) -> None:
        memory = self._memory
        if fabrics:
            nodes = memory.context.fleet.nodes
            scan_fabrics(memory.context, [name for name in nodes if nodes[name].variables.get("fabric") in fabrics])
        observe_nodes(memory, names, judged=self._current.is_usable)
        self._shorten_intervals(names)
        self._clock.reset("weigh")

    def _shorten_intervals(self, names: Collection[str]) -> None:
        """Let nobody's evidence become too old for what its state requires."""
        states, stories, now = self._memory.context.policy.states, self._memory.node_states(), self._now()
        for name in names:
            if name in stories and (every_s := find_max_evidence_age_s(states[stories[name].state])):
                self._poll_schedule.limit_interval(name, every_s, now)

    def _list_due_fabrics(self, now: float) -> Collection[str]:
        """Return the fabrics to be scanned with this round: those that no schedule has scanned, once an interval."""
        if not self._clock.is_due("scan", self._interval_s or DEFAULT_POLL_INTERVAL_S, now):
            return ()
        fleet = self._memory.context.fleet
        return find_unscheduled_fabrics(fleet, [fleet.nodes[name] for name in self._share.select_assigned(self._names)])

    def _start_scheduled_tasks(self) -> None:
        """Begin what the timetable says is due."""
        free = [lane for lane in self._job_workers if lane.is_free]
        if not free or not self._clock.is_due("tasks", SCHEDULE_INTERVAL_S):
            return
        self._running_tasks = {ident: lane for ident, lane in self._running_tasks.items() if lane.is_busy}
        desk = self._memory.context
        waiting = [task for task in list_due_tasks(desk, desk.clock.now()) if task.id not in self._running_tasks]
        for lane, task in zip(free, waiting, strict=False):
            self._running_tasks[task.id] = lane
            lane.start(partial(self._run_task, task))

    def _run_task(self, task: SlotTask) -> None:
        if self._signed:
            accept_commit(self._memory.context)
        run_slot_task(self._memory.context, task)

    def _start_ticket_update(self) -> None:
        if self._post.is_free and (self._clock.is_due("post", TICKET_INTERVAL_S) or self._changed):
            self._changed = False
            self._post.start(self._update_tickets)

    def _update_tickets(self) -> None:
        """Bring tickets and sinks to what there is work for; of several controllers, one does."""
        desk = self._memory.context
        if desk.ledger.claim_lease("tickets", current_process(), 2 * TICKET_INTERVAL_S):
            update_tickets(desk, self._memory)
            deliver_tickets(desk)

    def _reload_fleet(self) -> None:
        """Take up the fleet as it is declared now, where that changed."""
        if (fleet := self._current.reload_if_changed()) is None:
            return
        memory, before = self._memory, self._memory.context.fleet
        desk, names = replace(memory.context, fleet=fleet), self._chosen(fleet)
        accept_commit(desk)
        memory.replace_context(desk)
        enroll_nodes(memory)
        self._adopt_fleet(fleet, names)
        self._clock.reset("weigh")
        what = "its files changed" if before.commit == fleet.commit else f"{before.commit[:12]} → {fleet.commit[:12]}"
        self._told.on_message(f"read the fleet again ({what}): goes on with {format_count(len(self._names), 'node')}")

    def _stop(self) -> None:
        """Wait a little for what is under way."""
        until = time.monotonic() + STOP_GRACE_S
        for lane in self._workers():
            lane.join(max(0.0, until - time.monotonic()))
        self._told.on_entries(self._memory.take_new_entries())

    def _workers(self) -> Iterator[BackgroundWorker]:
        yield from (self._eyes, self._hands, self._post, *self._job_workers)

    def _now(self) -> float:
        return self._memory.context.clock.now().timestamp()


def requires_signed_commits(desk: ControllerContext) -> bool:
    """Whether this fleet is acted on only where its commit is signed."""
    written = any(policy.commits and policy.commits.signed for policy in desk.fleet.policies.values())
    return written or bool(find_last_accepted_commit(desk))


def read_last_observed(desk: ControllerContext) -> dict[str, float]:
    """Return when each node was looked at last, in seconds of the fleet's clock."""
    found: dict[str, float] = {}
    for (node, source), word in open_last_seen(desk).contacts().items():
        if source != "agent":
            found[node] = max(found.get(node, 0.0), word.polled_at.timestamp())
    return found


def _is_reason_to_observe(entry: LedgerEntry) -> bool:
    repaired = entry.kind == "effect.verified" and entry.body["action"] in REPAIR_ACTIONS
    return repaired or entry.kind in REOBSERVE_KINDS


def _last_changed_at(story: NodeState) -> float:
    return max(parse_time(story.since), parse_time(story.repaired_at)).timestamp()
