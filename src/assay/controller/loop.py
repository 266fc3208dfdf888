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

from assay.controller.accepted import accept_commit, last_accepted
from assay.controller.clock.rota import Rota, freshest_s, intervals, unscheduled_fabrics
from assay.controller.clock.schedule import carry_out, due
from assay.controller.clock.timetable import Task
from assay.controller.desk import Desk
from assay.controller.effects.act import act
from assay.controller.enrol import enroll
from assay.controller.known.current import Current
from assay.controller.known.memory import Memory
from assay.controller.lane import Lane, Patience, in_words
from assay.controller.looking.look import look_at_fabrics
from assay.controller.looking.silence import heard_of, look_for_silence
from assay.controller.once import at_work, decide_now, look
from assay.controller.people.outbox import deliver_tickets
from assay.controller.people.tickets import update_tickets
from assay.controller.share import Share, me
from assay.controller.turns import Turns
from assay.lifecycle.story import Story
from assay.lifecycle.when import moment
from assay.model.action import REPAIRS
from assay.model.entry import Entry
from assay.model.fleet import Fleet
from assay.model.spans import counted

WAIT_S = 1.0
"""How long the loop waits for news before it looks at the clock."""
READ_EACH_S, TASKS_EACH_S, WEIGH_EACH_S, POST_EACH_S = 2.0, 5.0, 30.0, 60.0
"""Real seconds between two looks at the fleet's files, the timetable, what time alone changes, postponed tickets."""
INTERVAL_S = 300.0
"""How often a node is looked at where nothing says so, in seconds of the fleet's clock."""
CHORES = 4
GRACE_S = 10.0
"""How long what is under way may take to end when the loop is to stop."""
NO_NEWS = ("ticket.", "schedule.", "observe.", "commit.")
"""What begins so changes nothing about what is to be decided."""
STIRS = ("transition", "certified", "release", "part.replaced")
"""What makes a new look at a node worth while, as a repair does."""


@dataclass(frozen=True)
class Told:
    """Who hears what: `changes` the new lines of the ledger, `say` what the loop itself has to say."""

    changes: Callable[[list[Entry]], None]
    say: Callable[[str], None]


class Loop:
    """Looks after the nodes that `chosen` picks from a fleet; `interval_s` overrules how often each is looked at."""

    def __init__(
        self,
        memory: Memory,
        share: Share,
        current: Current,
        chosen: Callable[[Fleet], list[str]],
        told: Told,
        interval_s: float | None = None,
    ) -> None:
        self._memory, self._share, self._current, self._chosen = memory, share, current, chosen
        self._told, self._interval_s = told, interval_s
        self._eyes, self._post, self._hands = (Lane(what, told.say) for what in ("looking", "tickets", "what waits"))
        self._chores = [Lane("work by the clock", told.say) for _ in range(CHORES)]
        self._tasks: dict[str, Lane] = {}
        self._patience, self._clock = Patience(), Turns()
        self._swept, self._missed = frozenset[str](), set[str]()
        self._unanswered = set[str]()
        self._changed = True

    def run(self, stop: Event) -> None:
        """Go on until `stop` is set. Raises Trouble only where the loop cannot even begin."""
        self.begin()
        while not stop.is_set():
            try:
                self._turn()
            except Exception as error:  # whatever it is, a later turn may do better
                if told := self._patience.failed(in_words(error)):
                    self._told.say(f"{told}; tries again")
                while not self._patience.over and not stop.wait(0.2):
                    pass
            else:
                if self._patience.went_well():
                    self._told.say("works again")
        self._end()

    def begin(self) -> None:
        """Take up the fleet: enrol who is new, and say what is begun. What the ledger has already is no news."""
        memory = self._memory
        accept_commit(memory.desk)
        memory.news()
        enroll(memory)
        self._told.changes(memory.news())
        self._seen = memory.heard
        self._look_after(memory.desk.fleet, self._chosen(memory.desk.fleet))
        count = counted(len(self._names), "node")
        self._told.say(f"looks after {count}, and answers what is new at once; Ctrl-C or SIGTERM ends it")

    def _look_after(self, fleet: Fleet, names: list[str]) -> None:
        """Take up a fleet as it was read, and these nodes of it."""
        self._names = names
        self._mine = frozenset(self._names)
        self._signed = asks_for_signatures(self._memory.desk)
        now, looked = self._now(), looked_at(self._memory.desk)
        self._rota = Rota(intervals(fleet, self._names, self._interval_s, INTERVAL_S), looked, now)
        stirred = [story for story in self._memory.awake() if looked.get(story.node, now) < _stirred_at(story)]
        self._rota.soon([story.node for story in stirred])

    def pass_over(self) -> None:
        """Do at once all that is done now and then, but for looks that are not due, and wait for its end."""
        self._clock.forget()
        self._turn(0)
        for lane in self._lanes():
            lane.join(GRACE_S)

    def _turn(self, wait_s: float = WAIT_S) -> None:
        """Wait for news, so long at the most; answer the news, and begin what is due."""
        self._memory.desk.ledger.wait(self._seen, wait_s)
        if self._clock.is_time("read", READ_EACH_S):
            self._read_again()
        if news := self._memory.news():
            self._seen, self._changed = news[-1].seq, True
            self._told.changes(news)
            self._hear(news)
        if self._unanswered:
            self._answer()
        if self._missed and not self._hands.busy:
            missed, self._missed = self._missed, set()
            self._act(missed)
        if self._clock.is_time("weigh", WEIGH_EACH_S):
            self._weigh()
        self._look()
        self._do_by_the_clock()
        self._see_to_tickets()

    def _hear(self, news: Sequence[Entry]) -> None:
        """Note which nodes the news are about; trouble on the way to an answer loses none of them."""
        self._rota.soon({entry.node for entry in news if _stirs(entry)})
        self._unanswered |= {entry.node for entry in news if not entry.kind.startswith(NO_NEWS)} & self._mine

    def _answer(self) -> None:
        """Decide about the nodes that are in the news, and act on what comes of it."""
        if concerned := self._share.mine(sorted(self._unanswered)):
            self._decide(concerned, concerned)
            self._missed |= self._swept & set(concerned)
            self._act(set(concerned) - self._swept)
        self._unanswered.clear()

    def _decide(self, names: Collection[str], asked: Collection[str] | None = None) -> None:
        if self._signed:
            accept_commit(self._memory.desk)
        with self._share.deciding():
            decide_now(self._memory, names, asked)

    def _act(self, names: Collection[str]) -> None:
        """Bring about what is owed to these nodes; what takes long goes on beside the loop."""
        if busy := at_work(self._memory, names) & set(names):
            stories = self._memory.stories()
            act(self._memory.desk, sorted(busy), {name: stories[name] for name in busy}, wait=False)

    def _weigh(self) -> None:
        """Decide about everything that time alone may have changed: silence, deadlines, what waits for a job to end."""
        ours = self._share.mine(self._names)
        look_for_silence(self._memory.desk, self._memory.everybody())
        self._decide(ours)
        if self._hands.free and (open_ := at_work(self._memory, ours)):
            self._swept = frozenset(open_)
            self._hands.begin(partial(self._sweep, open_))

    def _sweep(self, names: Collection[str]) -> None:
        """Go on with what is owed and waits: for a job, for its time to come, for a reading of the world."""
        try:
            act(self._memory.desk, sorted(names), wait=False)
        finally:
            self._swept = frozenset()

    def _look(self) -> None:
        """Begin a round of looking at the nodes whose turn it is."""
        now = self._now()
        names = self._share.mine(self._rota.due(now)) if self._eyes.free else []
        if names and self._clock.is_time("look", self._rota.gap_s, now):
            self._rota.looked(names, now)
            self._eyes.begin(partial(self._round, names, self._fabrics_due(now)))

    def _round(self, names: list[str], fabrics: Collection[str]) -> None:
        memory = self._memory
        if fabrics:
            nodes = memory.desk.fleet.nodes
            look_at_fabrics(memory.desk, [name for name in nodes if nodes[name].variables.get("fabric") in fabrics])
        look(memory, names, judged=self._current.usable)
        self._look_again_in_time(names)
        self._clock.now("weigh")

    def _look_again_in_time(self, names: Collection[str]) -> None:
        """Let nobody's evidence become too old for what its state requires."""
        states, stories, now = self._memory.desk.policy.states, self._memory.stories(), self._now()
        for name in names:
            if name in stories and (every_s := freshest_s(states[stories[name].state])):
                self._rota.more_often(name, every_s, now)

    def _fabrics_due(self, now: float) -> Collection[str]:
        """Return the fabrics to be scanned with this round: those that no schedule has scanned, once an interval."""
        if not self._clock.is_time("scan", self._interval_s or INTERVAL_S, now):
            return ()
        fleet = self._memory.desk.fleet
        return unscheduled_fabrics(fleet, [fleet.nodes[name] for name in self._share.mine(self._names)])

    def _do_by_the_clock(self) -> None:
        """Begin what the timetable says is due."""
        free = [lane for lane in self._chores if lane.free]
        if not free or not self._clock.is_time("tasks", TASKS_EACH_S):
            return
        self._tasks = {ident: lane for ident, lane in self._tasks.items() if lane.busy}
        desk = self._memory.desk
        waiting = [task for task in due(desk, desk.clock.now()) if task.id not in self._tasks]
        for lane, task in zip(free, waiting, strict=False):
            self._tasks[task.id] = lane
            lane.begin(partial(self._carry_out, task))

    def _carry_out(self, task: Task) -> None:
        if self._signed:
            accept_commit(self._memory.desk)
        carry_out(self._memory.desk, task)

    def _see_to_tickets(self) -> None:
        if self._post.free and (self._clock.is_time("post", POST_EACH_S) or self._changed):
            self._changed = False
            self._post.begin(self._tickets)

    def _tickets(self) -> None:
        """Bring tickets and sinks to what there is work for; of several controllers, one does."""
        desk = self._memory.desk
        if desk.ledger.claim("tickets", me(), 2 * POST_EACH_S):
            update_tickets(desk, self._memory)
            deliver_tickets(desk)

    def _read_again(self) -> None:
        """Take up the fleet as it is declared now, where that changed."""
        if (fleet := self._current.changed()) is None:
            return
        memory, before = self._memory, self._memory.desk.fleet
        desk, names = replace(memory.desk, fleet=fleet), self._chosen(fleet)
        accept_commit(desk)
        memory.look_after(desk)
        enroll(memory)
        self._look_after(fleet, names)
        self._clock.now("weigh")
        what = "its files changed" if before.commit == fleet.commit else f"{before.commit[:12]} → {fleet.commit[:12]}"
        self._told.say(f"read the fleet again ({what}): goes on with {counted(len(self._names), 'node')}")

    def _end(self) -> None:
        """Wait a little for what is under way."""
        until = time.monotonic() + GRACE_S
        for lane in self._lanes():
            lane.join(max(0.0, until - time.monotonic()))
        self._told.changes(self._memory.news())

    def _lanes(self) -> Iterator[Lane]:
        yield from (self._eyes, self._hands, self._post, *self._chores)

    def _now(self) -> float:
        return self._memory.desk.clock.now().timestamp()


def asks_for_signatures(desk: Desk) -> bool:
    """Whether this fleet is acted on only where its commit is signed."""
    written = any(policy.commits and policy.commits.signed for policy in desk.fleet.policies.values())
    return written or bool(last_accepted(desk))


def looked_at(desk: Desk) -> dict[str, float]:
    """Return when each node was looked at last, in seconds of the fleet's clock."""
    found: dict[str, float] = {}
    for (node, source), word in heard_of(desk).words().items():
        if source != "agent":
            found[node] = max(found.get(node, 0.0), word.looked.timestamp())
    return found


def _stirs(entry: Entry) -> bool:
    repaired = entry.kind == "effect.verified" and entry.body["action"] in REPAIRS
    return repaired or entry.kind in STIRS


def _stirred_at(story: Story) -> float:
    return max(moment(story.since), moment(story.repaired_at)).timestamp()
