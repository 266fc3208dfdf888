"""Plays a history: at each event and each thing due, what the controller does in a pass, in a world without luck.

Effects take their declared time and succeed. Suites pass on a node that nothing is wrong with; on another they say
nothing until its fault is cleared, since a history that tells of no failed suite had none. A person certifies what was
taken out and is whole again. Deciding, folding, limits, ladder and breaker are the real ones. Deadlines that move no
node are left out: they tell people of what takes long, and how long things take is not the history's but assumed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from assay.lifecycle import breaker, faulted, journal
from assay.lifecycle.classify import resolved_in
from assay.lifecycle.decide import decide
from assay.lifecycle.owed import Owed, owed
from assay.lifecycle.requirements import arrived, due
from assay.lifecycle.sightings import Sighting
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.waiting import STILL_WAITING
from assay.lifecycle.ways import ways
from assay.lifecycle.when import hours, moment, written
from assay.model.action import RESTARTS
from assay.model.checks import Phase
from assay.model.decision import Cause, Decision
from assay.model.entry import Entry, derived_id
from assay.model.policy import LifecyclePolicy
from assay.trends.replay.agenda import Agenda, Due
from assay.trends.replay.cast import Cast
from assay.trends.replay.events import EPOCH, Event
from assay.trends.replay.played import Made, Played, Trip
from assay.trends.replay.rules import Rules
from assay.trends.replay.stage import HOUR, Stage

PASSES = 12
SECOND = timedelta(seconds=1)
HORIZON = timedelta(days=90)
"""So long after the last event a replay ends, even if something is still to come."""
DRAINS = frozenset({"drain", "drain-now"})
HANDS = frozenset({"ticket", "dossier"})


def play(rules: Rules, cast: Cast, events: Sequence[Event]) -> Played:
    """Return what the policy does with these events, which are in the order of their times."""
    return Play(replace(rules, policy=_without_tickets_for_time(rules.policy)), cast, events).run()


def _without_tickets_for_time(policy: LifecyclePolicy) -> LifecyclePolicy:
    states = {
        name: state if state.deadline is None or state.deadline.to else state.model_copy(update={"deadline": None})
        for name, state in policy.states.items()
    }
    return policy.model_copy(update={"states": states})


class Play:
    """One replay while it goes on."""

    def __init__(self, rules: Rules, cast: Cast, events: Sequence[Event]) -> None:
        self._rules, self._policy, self._pace = rules, rules.policy, rules.pace
        self._coming = deque(events)
        self._start = self._now = self._until = events[0].at if events else EPOCH
        self._end = (events[-1].at if events else EPOCH) + HORIZON
        self._stage = Stage(rules, cast, self._start)
        self._agenda = Agenda()
        self._waiting: set[str] = set()
        self._made: list[Made] = []
        self._trips: list[tuple[datetime, str, str, list[str]]] = []
        self._open: dict[str, list[str]] = {}
        self._to_look: set[str] = set()
        self._window = timedelta(minutes=self._policy.breaker.window_minutes) + SECOND
        self._tickets = 0
        for name in self._stage.actors:
            self._arrives(name, self._stage.story(name).state)

    def run(self) -> Played:
        """Play to the end: until nothing more can come, or the horizon."""
        while (now := self._next()) and now <= self._end:
            self._now = now
            stirred = {name for one in self._agenda.take(now) for name in self._happens(one)}
            while self._coming and self._coming[0].at == now:
                stirred |= self._told(self._coming.popleft())
            if stirred or self._waiting:
                self._settle(stirred | self._waiting)
        stories = {name: self._stage.story(name) for name in self._stage.actors}
        trips = tuple(Trip(at, pool, said, tuple(names)) for at, pool, said, names in self._trips)
        return Played(self._policy, self._start, self._until, tuple(self._made), trips, stories, self._tickets)

    def _next(self) -> datetime | None:
        if not self._coming and self._agenda.over:
            return None
        times = [at for at in (self._coming[0].at if self._coming else None, self._agenda.next) if at]
        return min(times, default=None)

    def _told(self, event: Event) -> set[str]:
        """Take in an event; return the nodes that something may have to be decided about."""
        actor, self._until = self._stage.actors[event.node], self._now
        used = event.in_use not in (None, actor.in_use)
        if used:
            actor.in_use = not actor.in_use
            self._stage.changed(event.node)
        if event.kind == "fault":
            return {event.node} if self._shows(event) or used else set()
        if event.kind == "clear":
            story = self._stage.story(event.node)
            for subject in actor.clear(event.fault, event.part):
                ended = resolved_in(story, event.fault, subject, f"cleared in the history, line {event.line}")
                self._stage.hear(*(journal.cleared(event.node, one, self._now) for one in ended))
            self._stage.changed(event.node)
            self._look_again_at(actor.node.pool, self._now)
        return {event.node}

    def _shows(self, event: Event) -> bool:
        """Take in a fault that a node shows; return whether that is news."""
        actor, at = self._stage.actors[event.node], written(self._now)
        actor.present[event.fault, event.part] = None
        sighting = Sighting(event.fault, event.part, at, event.detail, "alert", f"{at}|{event.line:012}")
        seen = self._stage.see(event.node, sighting)
        if any(fault.severity != "informational" for fault in seen):
            actor.stirred = self._now
        if seen and actor.is_blocked(self._stage.story(event.node)):
            actor.verifying = ""
        return bool(seen)

    def _happens(self, one: Due) -> set[str]:
        """Let happen what was due; return the nodes that something may have to be decided about."""
        match one.what:
            case "effect":
                self._verified(one.name, one.about)
            case "suites":
                self._suites_end(one.name, *one.about)
            case "person":
                self._certifies(one.name, one.about)
            case "reset":
                return self._looks_again(one.name)
        return {one.name} if one.name else set()

    def _settle(self, asked: set[str]) -> None:
        """Take the nodes round the loop until nothing more is decided at this moment."""
        asked = asked | self._stage.companions(asked)
        for _ in range(PASSES):
            for name in sorted(asked):
                self._go_on(name)
            situation = self._stage.situation(self._now, asked)
            made = decide(situation, asked)
            if not made:
                break
            views = {view.name: view for view in situation.nodes}
            for decision in made:
                self._decided(views[decision.node], decision)
        self._waiting = {name for name in self._waiting if self._still_wishes(name)}

    def _still_wishes(self, name: str) -> bool:
        """Whether a node that lacked room wishes to move: it is asked again whenever anything changes."""
        bare, view = self._bare(), self._stage.view(name)
        return any(wish.timing != "record" for wish in (*faulted.wishes(bare, view), *ways(bare, view)))

    def _decided(self, view: NodeView, decision: Decision) -> None:
        self._made.append(Made(self._now, decision))
        if decision.timing != "record":
            self._until = self._now
        if decision.timing == "pending" or decision.rule.endswith(STILL_WAITING):
            self._agenda.enter(self._now + hours(self._policy.waiting.remind_hours), "reminder", decision.node)
        self._stage.hear(*journal.made(self._policy, view, decision, self._now))
        if decision.remedy == "ticket":
            self._tickets += 1
        if decision.remedy == "wait":
            self._held_back(decision.node, decision.because[0])
        if decision.timing == "immediate":
            self._moved(view, decision.to_state)

    def _moved(self, view: NodeView, to: str) -> None:
        actor, state = self._stage.actors[view.name], self._policy.states[to]
        actor.verifying, actor.stirred = "", self._now
        if RESTARTS & set(state.entry):
            self._agenda.enter(self._now + HOUR, "look", "")
        if HANDS & set(state.entry) and "ticket" in view.profile.actions:
            self._tickets += 1
        self._arrives(view.name, to)

    def _arrives(self, name: str, where: str) -> None:
        """Enter when the state that a node comes to will ask for a look: at the end of its soaking, at its deadline."""
        state = self._policy.states[where]
        if not state.in_service:
            self._agenda.enter(self._now + hours(state.soak_hours), "look", name)
        if state.deadline:
            self._agenda.enter(self._now + hours(state.deadline.hours) + SECOND, "look", name)

    def _held_back(self, name: str, why: Cause) -> None:
        """Remember a node that lacks room, and one that the breaker holds. What a profile forbids stays forbidden."""
        if why.kind == "limit":
            self._waiting.add(name)
        if why.kind == "breaker":
            if why.id not in self._open:
                self._open[why.id] = []
                self._trips.append((self._now, why.id, why.text.removeprefix("breaker: "), self._open[why.id]))
            self._open[why.id].append(name)
            self._look_again_at(why.id, self._now + self._window)

    def _look_again_at(self, pool: str, at: datetime) -> None:
        """Let the checks look again at a pool whose breaker is open, unless they will before."""
        if pool in self._open and pool not in self._to_look:
            self._to_look.add(pool)
            self._agenda.enter(at, "reset", pool)

    def _looks_again(self, pool: str) -> set[str]:
        """Let the checks look again at what the breaker holds, which closes once that is no wave any more.

        What only a log told is not replayed.
        """
        self._to_look.discard(pool)
        found = {name for name, actor in self._stage.actors.items() if actor.node.pool == pool and self._finds(name)}
        situation = self._stage.situation(self._now, found)
        if pool not in breaker.tripped(situation) and pool not in breaker.lasting(situation):
            del self._open[pool]
            return found
        if any(self._now - self._stage.actors[name].stirred < self._window for name in self._open[pool]):
            self._look_again_at(pool, self._now + self._window)
        return set()

    def _finds(self, name: str) -> bool:
        """Let the checks look at a node; return whether they find something."""
        actor, known = self._stage.actors[name], self._rules.catalog.class_of
        here = [(fault, part) for fault, part in actor.present if (rule := known(fault)) and rule.check]
        news = [actor.still_fails(*one, self._now, self._now - self._window) for one in here]
        if any(news):
            self._stage.changed(name)
        return bool(here)

    def _go_on(self, name: str) -> None:
        """Do what is next for a node: its owed effects, else its suites, else a person."""
        while waiting := owed(self._policy, self._stage.story(name)):
            if waiting[0].begun or not self._begin(name, waiting[0]):
                return
        view, actor = self._stage.view(name), self._stage.actors[name]
        if not actor.is_blocked(view.story) and arrived(self._bare(), view):
            self._verify(view)
            self._call_a_person(view)

    def _begin(self, name: str, one: Owed) -> bool:
        """Begin an effect; return whether it takes no time and is over."""
        actor, effect = self._stage.actors[name], derived_id(one.decision, one.action)
        body = {"effect": effect, "action": one.action, "decision": one.decision, "before": {}, "params": {}}
        self._stage.hear(Entry(effect, written(self._now), "effect.intent", name, body))
        span = self._pace.actions.get(one.action)
        lasts = span.time if span and (actor.in_use or one.action not in DRAINS) else timedelta()
        if lasts:
            self._agenda.enter(self._now + lasts, "effect", name, (effect, one.action))
            return False
        self._verified(name, (effect, one.action))
        return True

    def _verified(self, name: str, about: tuple[str, str]) -> None:
        effect, action = about
        self._until = self._now
        body = {"effect": effect, "reason": "as declared", "facts": {}}
        self._stage.hear(Entry(derived_id(effect, "verified"), written(self._now), "effect.verified", name, body))
        if action in DRAINS:
            self._stage.actors[name].in_use = False

    def _verify(self, view: NodeView) -> None:
        """Begin the suites that the node's state asks for, once a stay and again when its soaking is over."""
        actor, state = self._stage.actors[view.name], self._policy.states[view.story.state]
        soaks = self._now - moment(view.story.since) < hours(state.soak_hours)
        if actor.verifying or (soaks and actor.judged == view.story.stay):
            return
        required = {want.phase for want in state.requires}
        phases = [phase for phase in due(self._bare(), view) if phase in required]
        if phases:
            actor.verifying = f"{view.story.stay} {self._now}"
            lasts = max(self._rules.verifying(phases).time, SECOND)
            self._agenda.enter(self._now + lasts, "suites", view.name, (actor.verifying, phases))

    def _suites_end(self, name: str, verification: str, phases: list[Phase]) -> None:
        actor = self._stage.actors[name]
        if actor.verifying == verification:
            actor.verifying, actor.judged = "", self._stage.story(name).stay
            actor.passes([self._rules.checks[phase] for phase in phases], self._now)
            self._stage.changed(name)

    def _call_a_person(self, view: NodeView) -> None:
        """Let a person certify, in time, what automation took out; what began elsewhere is nobody's to certify."""
        actor, state = self._stage.actors[view.name], self._policy.states[view.story.state]
        if state.certified_to and not state.pass_to and view.story.moves and not actor.verifying:
            actor.verifying = f"{view.story.stay} {self._now}"
            span = self._pace.vendor if "dossier" in state.entry else self._pace.person
            self._agenda.enter(self._now + max(span.time, SECOND), "person", view.name, actor.verifying)

    def _certifies(self, name: str, call: str) -> None:
        if self._stage.actors[name].verifying == call:
            self._stage.actors[name].verifying = ""
            said = {"who": "a person", "reason": "the fault is cleared"}
            self._stage.hear(Entry(derived_id("certified", name, call), written(self._now), "certified", name, said))

    def _bare(self) -> Situation:
        """Return the moment and the policy, for questions about one node."""
        return Situation(self._now, self._policy, (), self._rules.lines)
