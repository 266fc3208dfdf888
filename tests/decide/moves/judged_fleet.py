"""A small fleet on paper that is decided after every step, and whose decisions are judged."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis.stateful import RuleBasedStateMachine

from assay.decide.moves.decide import decide
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.entries.faults import FaultClearedEntry
from assay.model.specs.policy_sections import RackRule
from tests.decide.moves.history_judge import DISTURBING, Judge


def rule_name_of(decision):
    return decision.rule.rpartition(" ")[2]


def enrol(paper, name, state, serial):
    """Write down that another machine has this name now."""
    pool = paper.nodes[name].pool
    paper.write(decision_and_fault_entries.make_enrolled_entry(name, pool, state, paper.now, serial))


class JudgedFleet(RuleBasedStateMachine):
    """What must be true after every pass of `decide`, and at the end. Subclasses say what happens to the fleet."""

    decide = staticmethod(decide)
    enrol = staticmethod(enrol)

    def __init__(self, paper):
        super().__init__()
        limits = {"pool_percent": 40, "reboots_per_hour": 2, "rack_concurrent": 2}
        update = {
            "limits": paper.policy.limits.model_copy(update=limits),
            "racks": {"pairs": RackRule(node_specs=["tray"], of=4, more_than=1, at_once=1)},
        }
        paper.policy = paper.policy.model_copy(update=update)
        self.paper, self.judge = paper, Judge(paper)

    def _here(self, names):
        return [name for name in names if name in self.paper.nodes]

    def _faults(self, name):
        return self.paper.story(name).faults if name in self.paper.nodes else ()

    def _end(self, name, fault):
        over = decision_and_fault_entries.make_cleared_entry(name, FaultClearedEntry(fault, "over"), self.paper.now)
        self.paper.write(replace(over, id=f"{over.id}-{len(self.paper.log)}"))

    def check(self):
        """Decide, write it down, and hold the answer to everything that must be true."""
        situation = self.paper.situation()
        self._the_same_in_any_order(situation)
        self._blind(situation)
        before = {view.name: view.node_state for view in situation.nodes}
        out = self.judge.out()
        lost, held = out | self._broken(before), self.judge.held(only_breaker=True)
        later = {view.name: self.judge.later_faults(view.name, view.node_state.state) for view in situation.nodes}
        made = self.paper.step(type(self).decide)
        for one in made:
            self._allowed(one, before[one.node], situation.now, later[one.node])
            self._only_a_wave_is_held(one)
        self._within_limits([one for one in made if one.timing != "record"], before, lost, out)
        self._leaves_room(held)
        self._opens_seldom([one.node for one in made if one.remedy == "withdraw"])
        for name in self.paper.nodes:
            self._has_its_own_record(name)
            story = self.paper.story(name)
            assert not story.hold or all(
                one.is_started for one in list_outstanding_effects(self.paper.policy, story)
            ), "acts on a held node"

    def _allowed(self, one, story, now, later):
        if one.timing == "record":
            assert one.to_state != story.state or one.remedy != "withdraw" or not story.hold, "acts on a held node"
            return
        profile, states = self.paper.profiles[self.paper.nodes[one.node].profile], self.paper.policy.states
        arrives = one.timing == "immediate"
        assert not story.hold, "acts on a held node"
        assert one.from_state == story.state
        assert not arrives or self.paper.policy.has_edge(one.from_state, one.to_state), "there is no such edge"
        assert not arrives or set(states[one.to_state].entry) <= set(profile.actions), "beyond the profile"
        kinds = {cause.kind for cause in one.causes}
        moved = profile.name == "unmanaged" and "person" not in kinds
        assert not (moved and states[story.state].in_service), "beyond the profile: faults are only tracked"
        closed = self.paper.foreign.get(one.node, "") not in ("", "Kill task failed")
        disturbs = arrives and DISTURBING & set(states[one.to_state].entry)
        assert not (closed and disturbs and rule_name_of(one) != "person"), "disturbs under a cordon of others"
        if arrives and states[one.to_state].in_service:
            assert self.judge.proved(one, now), "admits without a proof"
            assert not later, "admits over a later fault"

    def _within_limits(self, made, before, lost, was_out):
        limits, states = self.paper.policy.limits, self.paper.policy.states
        out, held = self.judge.out(), self.judge.held()
        serving = [one for one in made if states[before[one.node].state].in_service and one.node not in was_out]
        for one in serving:  # who was out already takes no room, even if the pool has become smaller since
            if one.rule.startswith("racks."):
                continue
            # An order finds the room that nodes take which are only cordoned while their answer is held back.
            counted = out - held if rule_name_of(one) == "person" else out
            mates = self._mates(one.node)
            assert len(counted & mates) <= self._allowed_out(mates), "exceeds the limit of a pool"
            mates = {node.name for node in self.paper.nodes.values() if node.rack == self.paper.nodes[one.node].rack}
            assert len(counted & mates) <= limits.rack_concurrent, "exceeds the limit of a rack"
        restarts = [one for one in made if {"reboot", "powercycle"} & set(states[one.to_state].entry)]
        if any(one.timing == "immediate" for one in restarts):
            recent = self.judge.restarts(self.paper.now - timedelta(hours=1))
            assert len(recent) <= limits.reboots_per_hour, "exceeds the limit of restarts"
        by_rack = {self.paper.nodes[one.node].rack for one in made if one.rule.startswith("racks.")}
        for rack in by_rack - self._cordoned(before):
            short = [name for name in self.judge.cordoned_racks() if self._lacks(name, out & lost) > 1]
            assert rack not in short or len(short) <= 1, "exceeds the limit of racks"

    def _mates(self, name):
        return {node.name for node in self.paper.nodes.values() if node.pool == self.paper.nodes[name].pool}

    def _allowed_out(self, mates):
        return max(1, int(len(mates) * self.paper.policy.limits.pool_percent / 100))

    def _leaves_room(self, before):
        """See that the breaker's own cordons leave half of the room to other faults, whenever there is one more."""
        held = self.judge.held(only_breaker=True)
        for name in held - before:
            mates = self._mates(name)
            assert len(held & mates) <= self._allowed_out(mates) // 2, "takes more than half of the room"

    def _opens_seldom(self, names):
        times = self.paper.policy.flapping.times
        for name in names:
            assert self.judge.openings(name, self.paper.now) < times, "opens a flapping node again and again"

    def _only_a_wave_is_held(self, one):
        kinds = {cause.kind for cause in one.causes}
        if one.timing == "record" and "breaker" in kinds and "deadline" not in kinds:
            pool = self.paper.nodes[one.node].pool
            assert self.judge.can_be_wave(pool), "holds what a person cleared"

    def _has_its_own_record(self, name):
        story, own = self.paper.story(name), self.judge.of(name)
        known = {entry.id for entry in own} | {entry.body.get("fault") for entry in own}
        has = {story.stay_id} | {fault.id for fault in story.faults}
        assert has <= known, "inherits the record of another machine"

    def _broken(self, before):
        """Return the nodes that will leave because they broke, and not because a person moves them."""
        told = {name: [known for known in story.faults if known.is_open] for name, story in before.items()}
        return {name for name, known in told.items() if any(one.severity == "catastrophic" for one in known)}

    def _cordoned(self, before):
        """Return the racks that were cordoned already. One that is held may be from long ago, and shows nothing."""
        waits = {name for name, story in before.items() if story.pending and not story.hold}
        return {self.paper.nodes[name].rack for name in waits if before[name].pending.rule.startswith("racks.")}

    def _lacks(self, rack, out):
        return sum(node.rack == rack and node.name in out for node in self.paper.nodes.values())

    def _the_same_in_any_order(self, situation):
        turned = [replace(view, latest=view.latest[::-1]) for view in reversed(situation.nodes)]
        answer = type(self).decide(situation)
        assert answer == type(self).decide(replace(situation, nodes=tuple(turned))), "the order changes the answer"

    def _blind(self, situation):
        """Take every outcome and every word of the schedulers away: what still moves, moves for another reason."""
        blind = tuple(replace(view, latest=(), jobs=None) for view in situation.nodes)
        faults = {view.name: view.node_state.faults for view in blind}
        lost = {
            name: {one.id for one in known if one.fault_class == "telemetry.lost"} for name, known in faults.items()
        }
        patient = {name for name, answer in self.paper.policy.faults.items() if answer.timing == "pending"}
        for one in type(self).decide(replace(situation, nodes=blind)):
            if one.timing != "record":
                first = one.causes[0]
                idle = first.kind == "decision" and first.text.startswith("idle")
                early = one.timing == "immediate" and one.rule in patient
                assert first.kind != "outcome", "acts on missing data"
                assert not idle, "acts on missing data"
                assert not early, "acts on missing data"
                assert first.id not in lost[one.node], "acts on lost telemetry beyond its own rule"

    def teardown(self):
        """See that every node has a way out: once the world is well again and people do their part, all serve."""
        self.paper.foreign.clear()
        if not self.paper.nodes:
            return
        for _ in range(45):
            if all(self._rests(name) for name in self.paper.nodes):
                return
            for name in self.paper.nodes:
                self._is_looked_after(name)
            self.paper.later(minutes=3)
            for name in self.paper.nodes:
                self.paper.pass_all(name)
            self.paper.step(type(self).decide)
            self.paper.later(hours=9)
        stuck = {name: self.paper.story(name).state for name in self.paper.nodes if not self._rests(name)}
        raise AssertionError(f"no way out: {stuck}")

    def _rests(self, name):
        story = self.paper.story(name)
        state = self.paper.policy.states[story.state]
        return state.final or (state.in_service and story.pending is None and story.hold is None)

    def _is_looked_after(self, name):
        story = self.paper.story(name)
        state = self.paper.policy.states[story.state]
        self.paper.jobs[name] = ()
        if story.hold:
            self.paper.say("release", name)
        if story.move_request:
            self.paper.say("move", name, to=story.state)
        for one in list_outstanding_effects(self.paper.policy, story):
            self.paper.effect(name, "verified", one.decision, one.action)
        if state.burn_in and not story.decision:  # enrolled in the state itself, so nothing started its burn-in
            self.paper.say("move", name, to="zap")
        stuck = any(effect.standing == "failed" for effect in story.effects if effect.decision == story.decision)
        if (state.certified_to and not state.pass_to) or state.in_service or stuck:
            self.paper.say("certified", name)
