"""Plays a history of faults under a policy: the real decisions, in an idealised world.

Effects take their declared time and succeed. Suites pass as soon as the node has no fault. A person certifies a
repaired node. Deadlines that move no node are left out. The queue of events is the only clock.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from assay.decide.faults.recovery import find_alert_clearances
from assay.decide.moves import circuit_breaker, fault_remedies
from assay.decide.moves.decide import decide
from assay.decide.moves.manual_moves import STILL_WAITING_RULE
from assay.decide.moves.proposed_exits import propose_transitions
from assay.decide.moves.remedy_ladder import find_end_of_wait
from assay.decide.moves.required_checks import are_entry_actions_verified, judge_state_requirements
from assay.decide.replay.exposure import ExposureMeter
from assay.decide.replay.history import HISTORY_EPOCH, HistoryEvent
from assay.decide.replay.replay_nodes import ReplayNodes, ReplayRules, drop_reminder_deadlines
from assay.decide.replay.result import BreakerTrip, ReplayDecision, ReplayResult
from assay.decide.replay.simulated_fleet import ONE_HOUR, SimulatedFleet
from assay.decide.state.decision_and_fault_entries import make_cleared_entry, make_decision_entries
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.outstanding_effects import OutstandingEffect, list_outstanding_effects
from assay.model.decision import DRAIN_ACTIONS, LOAD, PAPERWORK, RESTART_ACTIONS, Decision, DecisionCause
from assay.model.entries.effects import BurnInEndedEntry, BurnInStartedEntry, EffectIntentEntry, EffectVerifiedEntry
from assay.model.entries.node_entries import CertifiedEntry
from assay.model.faults.sightings import FaultSighting
from assay.model.ledger_entry import derive_id
from assay.model.specs.check_catalog import Phase
from assay.model.timestamps import format_time, hours, parse_time

EventType = Literal["effect", "suites", "person", "look", "reset", "reminder"]


@dataclass(frozen=True, slots=True, order=True)
class ScheduledEvent:
    """One due event: `what`, for which node (for a `reset`: which pool), and what it concerns."""

    at: datetime
    order: int
    kind: EventType = field(compare=False)
    name: str = field(compare=False)
    payload: Any = field(compare=False, default=None)


class EventQueue:
    """Due events, the earliest first; events of one moment in the order in which they were added."""

    def __init__(self) -> None:
        self._heap: list[ScheduledEvent] = []
        self._count = self._reminders = 0

    def add(self, at: datetime, kind: EventType, name: str, about: Any = None) -> None:
        """Add one event."""
        self._count += 1
        self._reminders += kind == "reminder"
        heapq.heappush(self._heap, ScheduledEvent(at, self._count, kind, name, about))

    @property
    def next_at(self) -> datetime | None:
        """The time of the next event."""
        return self._heap[0].at if self._heap else None

    @property
    def only_reminders_left(self) -> bool:
        """Whether only reminders are left, which could go on for ever."""
        return len(self._heap) == self._reminders

    def take(self, now: datetime) -> list[ScheduledEvent]:
        """Remove and return the events that are due at that moment."""
        taken = []
        while self._heap and self._heap[0].at <= now:
            taken.append(heapq.heappop(self._heap))
            self._reminders -= taken[-1].kind == "reminder"
        return taken


ONE_SECOND = timedelta(seconds=1)


class BreakerWatch:
    """The open breakers by pool, with the nodes that each holds."""

    def __init__(self, rules: ReplayRules, stage: SimulatedFleet, agenda: EventQueue) -> None:
        self._rules = rules
        self._stage = stage
        self._agenda = agenda
        self._window = timedelta(minutes=rules.policy.breaker.window_minutes) + ONE_SECOND
        self._trips: list[tuple[datetime, str, str, list[str]]] = []
        self._open: dict[str, list[str]] = {}
        self._pools_to_check: set[str] = set()

    @property
    def trips(self) -> tuple[BreakerTrip, ...]:
        """Every breaker that opened so far, in order."""
        return tuple(BreakerTrip(at, pool, reason, tuple(names)) for at, pool, reason, names in self._trips)

    def hold(self, node: str, pool: str, because: str, now: datetime) -> None:
        """Remember a node that the breaker of a pool holds back, or a series."""
        if pool not in self._open:
            self._open[pool] = []
            self._trips.append((now, pool, because.removeprefix("breaker: "), self._open[pool]))
        self._open[pool].append(node)
        if "/" not in pool:  # a series is open until a person answers, and here nobody does
            self.look_again_at(pool, now + self._window)

    def look_again_at(self, pool: str, at: datetime) -> None:
        """Let the checks look again at a pool whose breaker is open, unless they will before."""
        if pool in self._open and pool not in self._pools_to_check:
            self._pools_to_check.add(pool)
            self._agenda.add(at, "reset", pool)

    def close(self, pool: str, now: datetime) -> set[str]:
        """Let the checks look again at what the breaker holds, which closes once that is no wave any more.

        Return the nodes on which they find something then. What only a log told is not replayed.
        """
        self._pools_to_check.discard(pool)
        actors = self._stage.simulated_nodes
        failing = {name for name, actor in actors.items() if actor.node.pool == pool and self._run_checks(name, now)}
        snapshot = self._stage.fleet_snapshot(now, failing)
        finders = (circuit_breaker.find_new_waves, circuit_breaker.find_ongoing_waves, circuit_breaker.find_series)
        if not any(pool in find(snapshot) for find in finders):
            del self._open[pool]
            return failing
        disturbed = (actors[name].last_disturbed_at for name in self._open[pool])
        if any(now - at < self._window for at in disturbed):
            self.look_again_at(pool, now + self._window)
        return set()

    def _run_checks(self, name: str, now: datetime) -> bool:
        """Let the checks look at a node; return whether they find something."""
        actor, known = self._stage.simulated_nodes[name], self._rules.catalog.find_class
        here = [(fault, part) for fault, part in actor.present_faults if (rule := known(fault)) and rule.check]
        news = [actor.still_fails(*present, now, now - self._window) for present in here]
        if any(news):
            self._stage.invalidate(name)
        return bool(here)


MAX_PASSES = 12
REPLAY_HORIZON = timedelta(days=90)
"""So long after the last event a replay ends, even if something is still to come."""


def run_replay(rules: ReplayRules, cast: ReplayNodes, events: Sequence[HistoryEvent]) -> ReplayResult:
    """Return what the policy does with these events. They must be in the order of their times."""
    return ReplaySimulator(replace(rules, policy=drop_reminder_deadlines(rules.policy)), cast, events).run()


class ReplaySimulator:
    """One running replay."""

    def __init__(self, rules: ReplayRules, cast: ReplayNodes, events: Sequence[HistoryEvent]) -> None:
        self._rules = rules
        self._policy = rules.policy
        self._pace = rules.durations
        self._events = deque(events)
        self._start = self._now = self._until = events[0].at if events else HISTORY_EPOCH
        self._end = (events[-1].at if events else HISTORY_EPOCH) + REPLAY_HORIZON
        self._stage = SimulatedFleet(rules, cast, self._start)
        self._agenda = EventQueue()
        self._breakers = BreakerWatch(rules, self._stage, self._agenda)
        self._exposure = ExposureMeter()
        self._waiting: set[str] = set()
        self._made: list[ReplayDecision] = []
        self._tickets = 0
        for name in self._stage.simulated_nodes:
            self._schedule_state_checks(name, self._stage.node_state(name).state)
        self._measure()

    def run(self) -> ReplayResult:
        """Play to the end: until no event is left, or until the horizon."""
        while (now := self._next()) and now <= self._end:
            self._now = now
            stirred = {name for event in self._agenda.take(now) for name in self._handle(event)}
            while self._events and self._events[0].at == now:
                stirred |= self._apply_event(self._events.popleft())
            self._measure()
            if stirred or self._waiting:
                self._settle(stirred | self._waiting)
                self._measure()
        node_states = {name: self._stage.node_state(name) for name in self._stage.simulated_nodes}
        return ReplayResult(
            policy=self._policy,
            start=self._start,
            until=self._until,
            decisions=tuple(self._made),
            trips=self._breakers.trips,
            node_states=node_states,
            tickets=self._tickets,
            exposure=self._exposure,
        )

    def _measure(self) -> None:
        """Tell the meter how the nodes stand that something happened to."""
        for name in self._stage.take_touched():
            if self._exposure.observe(name, self._stage.find_condition(name), self._now):
                self._until = self._now

    def _next(self) -> datetime | None:
        if not self._events and self._agenda.only_reminders_left:
            return None
        times = [at for at in (self._events[0].at if self._events else None, self._agenda.next_at) if at]
        return min(times, default=None)

    def _apply_event(self, event: HistoryEvent) -> set[str]:
        """Apply an event; return the nodes about which a decision may be due."""
        actor, self._until = self._stage.simulated_nodes[event.node], self._now
        used = self._stage.set_use(event.node, event.in_use)
        if event.kind == "fault":
            return {event.node} if self._apply_fault(event) or used else set()
        if event.kind == "clear":
            node_state = self._stage.node_state(event.node)
            for subject in actor.clear(event.fault, event.part):
                ended = find_alert_clearances(
                    node_state, event.fault, subject, f"cleared in the history, line {event.line}"
                )
                self._stage.apply(*(make_cleared_entry(event.node, fault, self._now) for fault in ended))
            self._stage.invalidate(event.node)
            if end := find_end_of_wait(self._policy, self._stage.node_state(event.node), self._now):
                self._agenda.add(end, "look", event.node)
            self._breakers.look_again_at(actor.node.pool, self._now)
        return {event.node}

    def _apply_fault(self, event: HistoryEvent) -> bool:
        """Apply a fault that a node shows; return whether that is news."""
        actor, at = self._stage.simulated_nodes[event.node], format_time(self._now)
        actor.present_faults[event.fault, event.part] = None
        self._stage.touch(event.node)
        sighting = FaultSighting(event.fault, event.part, at, event.detail, "alert", f"{at}|{event.line:012}")
        seen = self._stage.add_sighting(event.node, sighting)
        if any(fault.severity != "informational" for fault in seen):
            actor.last_disturbed_at = self._now
        if seen and actor.is_blocked(self._stage.node_state(event.node)):
            actor.verifying = ""
        return bool(seen)

    def _handle(self, event: ScheduledEvent) -> set[str]:
        """Apply a due event; return the nodes about which a decision may be due."""
        match event.kind:
            case "effect":
                self._finish_effect(event.name, event.payload)
            case "suites":
                self._suites_end(event.name, *event.payload)
            case "person":
                self._certify(event.name, event.payload)
            case "reset":
                return self._breakers.close(event.name, self._now)
        return {event.name} if event.name else set()

    def _settle(self, asked: set[str]) -> None:
        """Decide about the nodes until no more decision is due at this moment."""
        asked = asked | self._stage.rack_companions(asked) | self._stage.spares_beside(asked)
        for _ in range(MAX_PASSES):
            for name in sorted(asked):
                self._advance(name)
            snapshot = self._stage.fleet_snapshot(self._now, asked)
            made = decide(snapshot, asked)
            if not made:
                break
            views = {view.name: view for view in snapshot.nodes}
            for decision in made:
                self._apply_decision(views[decision.node], decision)
        self._waiting = {name for name in self._waiting if self._still_has_proposals(name)}

    def _still_has_proposals(self, name: str) -> bool:
        """Whether a node that lacked room still has a move: it is asked again whenever anything changes."""
        bare, view = self._empty_snapshot(), self._stage.node_snapshot(name)
        return any(
            wish.timing != "record"
            for wish in (*fault_remedies.propose_fault_remedies(bare, view), *propose_transitions(bare, view))
        )

    def _apply_decision(self, view: NodeSnapshot, decision: Decision) -> None:
        self._made.append(ReplayDecision(self._now, decision))
        if decision.timing != "record":
            self._until = self._now
        if decision.timing == "pending" or decision.rule.endswith(STILL_WAITING_RULE):
            self._agenda.add(self._now + hours(self._policy.waiting.remind_hours), "reminder", decision.node)
        self._stage.apply(*make_decision_entries(self._policy, view, decision, self._now))
        if decision.remedy == "ticket":
            self._tickets += 1
        if decision.remedy == "wait":
            self._record_refusal(decision.node, decision.causes[0])
        if decision.timing == "immediate":
            self._apply_transition(view, decision.to_state)

    def _apply_transition(self, view: NodeSnapshot, to: str) -> None:
        actor, state = self._stage.simulated_nodes[view.name], self._policy.states[to]
        actor.verifying, actor.last_disturbed_at = "", self._now
        if RESTART_ACTIONS & set(state.entry):
            self._agenda.add(self._now + ONE_HOUR, "look", "")
        if "ticket" in view.profile.actions:
            self._tickets += bool(PAPERWORK & set(state.entry))
        self._schedule_state_checks(view.name, to)

    def _schedule_state_checks(self, name: str, where: str) -> None:
        """Schedule the checks of a new state: when it is replaced, at the end of its soak time, and at its deadline."""
        state = self._policy.states[where]
        if state.replace_after_hours is not None:
            self._agenda.add(self._now + hours(state.replace_after_hours), "look", name)
        if not state.in_service:
            self._agenda.add(self._now + hours(state.soak_hours), "look", name)
        if state.deadline:
            self._agenda.add(self._now + hours(state.deadline.hours) + ONE_SECOND, "look", name)

    def _record_refusal(self, name: str, cause: DecisionCause) -> None:
        """Remember a node that lacks room, or that the breaker holds. A profile's prohibition never changes."""
        if cause.kind == "limit":
            self._waiting.add(name)
        if cause.kind == "breaker":
            self._breakers.hold(name, cause.id, cause.text, self._now)
            if cause.id == self._stage.simulated_nodes[name].node.pool:
                self._agenda.add(self._now + hours(self._policy.breaker.held_hours) + ONE_SECOND, "look", name)

    def _advance(self, name: str) -> None:
        """Do the next step for a node: its outstanding effects, else its suites, else the certification by a person."""
        while waiting := list_outstanding_effects(self._policy, self._stage.node_state(name)):
            if waiting[0].is_started or not self._start_effect(name, waiting[0]):
                return
        view, actor = self._stage.node_snapshot(name), self._stage.simulated_nodes[name]
        if not actor.is_blocked(view.node_state) and are_entry_actions_verified(self._empty_snapshot(), view):
            self._start_suites(view)
            self._schedule_certification(view)

    def _start_effect(self, name: str, outstanding: OutstandingEffect) -> bool:
        """Begin an effect; return whether it takes no time and has ended."""
        actor, effect = self._stage.simulated_nodes[name], derive_id(outstanding.decision, outstanding.action)
        intent = EffectIntentEntry(effect, outstanding.action, outstanding.decision)
        self._stage.apply(intent.make_entry(effect, format_time(self._now), name))
        span = self._pace.actions.get(outstanding.action)
        lasts = span.as_timedelta if span and (actor.in_use or outstanding.action not in DRAIN_ACTIONS) else timedelta()
        if lasts:
            self._agenda.add(self._now + lasts, "effect", name, (effect, outstanding.action))
            return False
        self._finish_effect(name, (effect, outstanding.action))
        return True

    def _finish_effect(self, name: str, about: tuple[str, str]) -> None:
        effect, action = about
        self._until = self._now
        verified = EffectVerifiedEntry(effect, action, "as declared")
        self._stage.apply(verified.make_entry(derive_id(effect, "verified"), format_time(self._now), name))
        if action == LOAD:  # it ends well; the soak time has its hours
            for entry in (BurnInStartedEntry(effect, "", 0.0), BurnInEndedEntry(effect, "done", "", 0.0)):
                self._stage.apply(entry.make_entry(derive_id(effect, entry.kind), format_time(self._now), name))
        self._stage.finish_action(name, action)

    def _start_suites(self, view: NodeSnapshot) -> None:
        """Begin the suites that the node's state requires: once per stay, and again after its soak time."""
        actor, state = self._stage.simulated_nodes[view.name], self._policy.states[view.node_state.state]
        soaks = self._now - parse_time(view.node_state.since) < hours(state.soak_hours)
        if actor.verifying or (soaks and actor.verified_stay_id == view.node_state.stay_id):
            return
        results = judge_state_requirements(self._empty_snapshot(), view)
        phases = list(dict.fromkeys(result.requirement.phase for result in results if not result.is_met))
        if phases:
            actor.verifying = f"{view.node_state.stay_id} {self._now}"
            loads = any(self._rules.checks[phase].active for phase in phases)
            lasts = max((self._pace.suites if loads else self._pace.look).as_timedelta, ONE_SECOND)
            self._agenda.add(self._now + lasts, "suites", view.name, (actor.verifying, phases))

    def _suites_end(self, name: str, verification: str, phases: list[Phase]) -> None:
        actor = self._stage.simulated_nodes[name]
        if actor.verifying == verification:
            actor.verifying, actor.verified_stay_id = "", self._stage.node_state(name).stay_id
            actor.passes([self._rules.checks[phase] for phase in phases], self._now)
            self._stage.invalidate(name)

    def _schedule_certification(self, view: NodeSnapshot) -> None:
        """Schedule a person's certification of a node that automation took out; nobody certifies any other node."""
        actor, state = self._stage.simulated_nodes[view.name], self._policy.states[view.node_state.state]
        if state.certified_to and not state.pass_to and view.node_state.transitions and not actor.verifying:
            actor.verifying = f"{view.node_state.stay_id} {self._now}"
            span = self._pace.vendor if "dossier" in state.entry else self._pace.person
            self._agenda.add(self._now + max(span.as_timedelta, ONE_SECOND), "person", view.name, actor.verifying)

    def _certify(self, name: str, call: str) -> None:
        if self._stage.simulated_nodes[name].verifying == call:
            self._stage.simulated_nodes[name].verifying = ""
            certified = CertifiedEntry("a person", "the fault is cleared")
            self._stage.apply(certified.make_entry(derive_id("certified", name, call), format_time(self._now), name))

    def _empty_snapshot(self) -> FleetSnapshot:
        """Return a snapshot with the time and the policy only, for questions about one node."""
        return FleetSnapshot(self._now, self._policy, (), self._rules.lines)
