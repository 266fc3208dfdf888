"""Whole histories of a small fleet, in any order, and what must hold after every step of them.

The judge below reads the ledger's entries and the raw outcomes, and shares no code with what it judges.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from assay.lifecycle import decision_and_fault_entries
from assay.lifecycle.decisions import (
    fault_remedies,
    manual_moves,
    rack_cordons,
    required_checks,
    state_transitions,
)
from assay.lifecycle.decisions.blast_radius_limits import LimitCapacity
from assay.lifecycle.decisions.decide import decide
from assay.lifecycle.decisions.proposals import Proposal, grant_proposal
from assay.lifecycle.faults.recovery import FaultClearance
from assay.lifecycle.outstanding_effects import list_outstanding_effects
from assay.model.decision import DecisionCause
from assay.model.evidence import EvidenceBasis
from assay.model.specs.policy_sections import RackRule

HGX = [f"h{i}" for i in range(8)]
FOREIGN = ["u0", "u1"]
TRAYS = [f"t{rack}{i}" for rack in range(3) for i in range(4)]
NAMES = [*HGX, *FOREIGN, *TRAYS]
FAULTS = ["gpu.xid.79", "gpu.xid.79", "gpu.xid.48", "gpu.xid.13", "gpu.thermal", "psu.failed", "telemetry.lost"]
STATES = ["onboard", "zap", "test", "production", "production-reboot", "draining", "triage", "retired", "heaven"]
START = ["production"] * 4 + ["test", "production-reboot", "triage", "zap"]
EVERY = ["cordon", "uncordon", "drain", "drain-now", "reboot", "powercycle", "zap", "ticket", "dossier"]
REPAIRED = {"effect.verified", "certified", "part.replaced"}
ALL = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None, phases=[Phase.generate])

anybody = st.sampled_from(NAMES)


class Judge:
    """Says what no pass may have done, from the ledger's lines alone."""

    def __init__(self, paper):
        self.paper, self.policy = paper, paper.policy

    def repaired(self, name):
        times = []
        for entry in self.paper.log.values():
            if entry.node == name and entry.kind in REPAIRED:
                effect = self.paper.log.get(entry.body.get("effect", ""))
                if effect is None or effect.body["action"] in ("reboot", "powercycle", "zap"):
                    times.append(datetime.fromisoformat(entry.at))
        return max(times, default=None)

    def proved(self, name, state, at):
        """Whether raw outcomes allow a node to serve: one fresh pass of each phase, newer than the last repair."""
        repaired = self.repaired(name)
        for wanted in self.policy.states[state].requires:
            judged = [one for one in self.paper.outcomes[name].values() if wanted.phase in one.outcome.phases]
            if len(judged) != 1 or judged[0].outcome.verdict != "pass":
                return False
            seen = datetime.fromisoformat(judged[0].outcome.evidence_at)
            if abs(at - seen) > timedelta(hours=wanted.fresh_hours) or (repaired and seen <= repaired):
                return False
        return bool(self.policy.states[state].requires)

    def later_faults(self, name, state):
        """Return the open faults of a node whose entry follows the evidence that its state requires."""
        wanted = {requirement.phase for requirement in self.policy.states[state].requires}
        judged = [one.outcome.basis for one in self.paper.outcomes[name].values() if wanted & set(one.outcome.phases)]
        least = min((basis.after_entry or 0 for basis in judged), default=0)
        last, repaired = {}, 0
        for entry in (entry for entry in self.paper.log.values() if entry.node == name):
            if entry.kind == "fault":
                last[entry.body["fault"]] = entry
            elif entry.kind == "fault.cleared" and entry.body.get("seen_up_to", 0) in (0, _seq(last, entry)):
                last.pop(entry.body["fault"], None)
            elif entry.kind in REPAIRED and self.repairs(entry):
                repaired = entry.seq
        told = [entry for entry in last.values() if entry.body["severity"] != "informational"]
        return [entry for entry in told if entry.seq > max(least, repaired)]

    def repairs(self, entry):
        effect = self.paper.log.get(entry.body.get("effect", ""))
        return effect is None or effect.body["action"] in ("reboot", "powercycle", "zap")

    def out(self):
        """Return the nodes that were taken out of service and are not back, or wait cordoned for their own reason."""
        taken, waits = set(), set()
        for entry in self.paper.log.values():
            if entry.kind == "transition":
                old, new = (self.policy.states[entry.body[end]] for end in ("from", "to"))
                if new.in_service or new.final or self.is_order(entry):
                    taken.discard(entry.node)
                elif old.in_service:
                    taken.add(entry.node)
                waits.discard(entry.node)
            elif entry.kind == "decision" and entry.body["timing"] == "pending":
                words = entry.body["rule"].rpartition(" ")[2]
                (waits.discard if words.startswith("racks.") or words == "person" else waits.add)(entry.node)
            elif entry.kind == "decision.withdrawn" and self.paper.story(entry.node).pending is None:
                waits.discard(entry.node)
        return {name for name in taken | waits if name in self.paper.nodes}

    def is_order(self, transition):
        """Whether a person ordered the move."""
        decision = self.paper.log.get(transition.body["decision"])
        return decision is None or decision.body["rule"].endswith("person")

    def restarts(self, since):
        here = [entry for entry in self.paper.log.values() if entry.node in self.paper.nodes]
        moves = [entry for entry in here if entry.kind == "transition"]
        recent = [entry for entry in moves if datetime.fromisoformat(entry.at) > since]
        return [one for one in recent if {"reboot", "powercycle"} & set(self.policy.states[one.body["to"]].entry)]

    def cordoned_racks(self):
        found = defaultdict(set)
        for name in set(self.paper.nodes) & set(TRAYS):
            pending = self.paper.story(name).pending
            if pending and pending.rule.startswith("racks."):
                found[self.paper.nodes[name].rack].add(name)
        return found


def _seq(last, cleared):
    known = last.get(cleared.body["fault"])
    return known.seq if known else 0


class Histories(RuleBasedStateMachine):
    """Anything may happen to the fleet, in any order. After every step it is decided, and the answer is judged."""

    decide = staticmethod(decide)

    def __init__(self, paper):
        super().__init__()
        limits = {"pool_percent": 40, "reboots_per_hour": 2, "rack_concurrent": 2}
        update = {
            "limits": paper.policy.limits.model_copy(update=limits),
            "racks": {"pairs": RackRule(node_specs=["tray"], of=4, more_than=1, at_once=1)},
        }
        paper.policy = paper.policy.model_copy(update=update)
        self.paper, self.judge = paper, Judge(paper)

    @initialize(states=st.lists(st.sampled_from(START), min_size=10, max_size=10))
    def begin(self, states):
        for index, name in enumerate([*HGX, *FOREIGN]):
            foreign = name in FOREIGN
            place = {"pool": "b", "rack": "r9", "profile": "unmanaged"} if foreign else {"rack": f"r{index // 4}"}
            self.paper.add(name, states[index], **place)
        for name in TRAYS:
            self.paper.add(name, pool="c", rack=f"rack{name[1]}", kind="tray")

    @rule(names=st.sets(anybody, min_size=1, max_size=3), fault=st.sampled_from(FAULTS))
    def faults_are_seen(self, names, fault):
        for name in sorted(self._here(names)):
            self.paper.fault(name, fault, "gpu0")
        self.check()

    @rule(name=anybody)
    def a_fault_is_over(self, name):
        for known in [known for known in self.paper.story(name).faults if known.is_open][:1]:
            self.paper.write(
                decision_and_fault_entries.make_cleared_entry(name, FaultClearance(known.id, "over"), self.paper.now)
            )
        self.check()

    @rule(
        name=anybody,
        phase=st.sampled_from(["seatrial", "zap", "test", "production"]),
        verdict=st.sampled_from(["pass", "pass", "fail", "error", "skip"]),
        hours=st.sampled_from([0, 0, 2, 30]),
    )
    def a_check_is_judged(self, name, phase, verdict, hours):
        for here in self._here([name]):
            self.paper.judge(here, phase, verdict, age=timedelta(hours=hours))
        self.check()

    @rule(name=anybody, fault=st.sampled_from(["gpu.thermal", "gpu.xid.48", "psu.failed"]), hours=st.integers(-30, 30))
    def a_fault_comes_after_the_evidence(self, name, fault, hours):
        """Repair a node and prove it, set the clock, and let a fault come in before anybody decides."""
        for here in self._here([name]):
            self.paper.fault(here, "gpu.xid.79", "gpu1")
            self.check()
            self.paper.settle(here)
            self.paper.later(minutes=5)
            for phase in ("test", "production"):
                self.paper.judge(here, phase)
            self.paper.later(hours=hours / 60)
            self.paper.fault(here, fault, "gpu2")
        self.check()

    @rule(name=anybody, late=st.integers(0, 40))
    def evidence_comes_late(self, name, late):
        """Judge evidence that was read many entries ago, though its date is new."""
        for here in self._here([name]):
            for phase in ("test", "production"):
                self.paper.judge(here, phase, basis=EvidenceBasis(max(0, len(self.paper.log) - late)))
        self.check()

    @rule(name=anybody, number=st.integers(0, 5))
    def a_message_about_a_fault_is_repeated(self, name, number):
        for known in [one for one in self.paper.log.values() if one.kind == "fault" and one.node == name][number:][:1]:
            again = {**known.body, "count": known.body["count"] + 1}
            self.paper.write(replace(known, id=f"{known.id}-{len(self.paper.log)}", body=again))
        self.check()

    @rule(name=anybody)
    def a_held_node_breaks(self, name):
        for here in self._here([name]):
            self.paper.say("hold", here)
            self.paper.fault(here, "gpu.xid.48", "gpu3")
        self.check()

    @rule(name=anybody)
    def a_repair_comes_after_its_passes(self, name):
        for here in self._here([name]):
            for phase in ("test", "production"):
                self.paper.judge(here, phase)
            self.paper.fault(here, "gpu.xid.79", "gpu1")
            self.check()
            self.paper.settle(here)
        self.check()

    @rule(rack=st.sampled_from("012"))
    def a_rack_loses_two(self, rack):
        for name in self._here([f"t{rack}0", f"t{rack}1"]):
            self.paper.fault(name, "gpu.xid.79", "gpu2")
        self.check()
        self.paper.later(hours=1.1)
        self.check()

    @rule(names=st.sets(anybody, min_size=1, max_size=4))
    def what_is_owed_is_verified_and_everything_due_passes(self, names):
        for name in sorted(self._here(names)):
            self.paper.settle(name)
            self.paper.pass_all(name)
        self.check()

    @rule(name=anybody, standing=st.sampled_from(["intent", "done", "unknown", "failed", "verified"]))
    def an_effect_comes_so_far(self, name, standing):
        for one in list_outstanding_effects(self.paper.policy, self.paper.story(name))[:1]:
            self.paper.effect(name, standing, one.decision, one.action, "as planted")
        self.check()

    @rule(names=st.sets(anybody, min_size=1, max_size=6), jobs=st.sampled_from([(), ("train",), None]))
    def jobs_change(self, names, jobs):
        for name in names:
            self.paper.jobs[name] = jobs
        self.check()

    @rule(
        name=anybody, word=st.sampled_from(["hold", "release", "certified", "part.replaced"]), hours=st.integers(0, 9)
    )
    def a_person_speaks(self, name, word, hours):
        until = {"until": (self.paper.now + timedelta(hours=hours)).isoformat()} if hours else {}
        self.paper.say(word, name, **(until if word == "hold" else {}))
        self.check()

    @rule(name=anybody, to=st.sampled_from(STATES), now=st.booleans())
    def a_person_moves(self, name, to, now):
        self.paper.say("move", name, to=to, now=now)
        self.check()

    @rule(name=anybody)
    def a_person_withdraws(self, name):
        if pending := self.paper.story(name).pending:
            self.paper.say("decision.withdrawn", name, decision=pending.decision)
        self.check()

    @rule(hours=st.sampled_from([0.01, 0.3, 2, 25, -0.5, -30]))
    def the_clock_goes_on_or_is_set(self, hours):
        self.paper.later(hours=hours)
        self.check()

    @precondition(lambda self: len(self.paper.nodes) > 12)
    @rule(name=anybody)
    def a_node_leaves_the_inventory(self, name):
        self.paper.nodes.pop(name, None)
        self.check()

    def _here(self, names):
        return [name for name in names if name in self.paper.nodes]

    def check(self):
        """Decide, write it down, and hold the answer to everything that must be true."""
        situation = self.paper.situation()
        self._the_same_in_any_order(situation)
        self._blind(situation)
        before = {view.name: view.node_state for view in situation.nodes}
        lost = self.judge.out() | self._broken(before)
        later = {view.name: self.judge.later_faults(view.name, view.node_state.state) for view in situation.nodes}
        made = self.paper.step(type(self).decide)
        for one in made:
            self._allowed(one, before[one.node], situation.now, later[one.node])
        self._within_limits([one for one in made if one.timing != "record"], before, lost)
        for name in self.paper.nodes:
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
        moved = one.node in FOREIGN and "person" not in kinds
        assert not (moved and states[story.state].in_service), "beyond the profile: faults are only tracked"
        if arrives and states[one.to_state].in_service:
            assert self.judge.proved(one.node, one.from_state, now), "admits without a proof"
            assert not later, "admits over a later fault"

    def _within_limits(self, made, before, lost):
        limits, states = self.paper.policy.limits, self.paper.policy.states
        out = self.judge.out()
        newly = [
            one.node for one in made if states[before[one.node].state].in_service and not one.rule.startswith("racks.")
        ]
        for name in newly:
            pool, rack = self.paper.nodes[name].pool, self.paper.nodes[name].rack
            mates = [node.name for node in self.paper.nodes.values() if node.pool == pool]
            allowed = max(1, int(len(mates) * limits.pool_percent / 100))
            assert len(out & set(mates)) <= allowed, "exceeds the limit of a pool"
            mates = [node.name for node in self.paper.nodes.values() if node.rack == rack]
            assert len(out & set(mates)) <= limits.rack_concurrent, "exceeds the limit of a rack"
        restarts = [one for one in made if {"reboot", "powercycle"} & set(states[one.to_state].entry)]
        if any(one.timing == "immediate" for one in restarts):
            recent = self.judge.restarts(self.paper.now - timedelta(hours=1))
            assert len(recent) <= limits.reboots_per_hour, "exceeds the limit of restarts"
        by_rack = {self.paper.nodes[one.node].rack for one in made if one.rule.startswith("racks.")}
        for rack in by_rack - self._cordoned(before):
            short = [name for name in self.judge.cordoned_racks() if self._lacks(name, out & lost) > 1]
            assert rack not in short or len(short) <= 1, "exceeds the limit of racks"

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
        stuck = any(effect.standing == "failed" for effect in story.effects if effect.decision == story.decision)
        if (state.certified_to and not state.pass_to) or state.in_service or stuck:
            self.paper.say("certified", name)


def walk(new_paper, examples, steps, machine=Histories, **more):
    chosen = settings(ALL, max_examples=examples, stateful_step_count=steps, **more)
    run_state_machine_as_test(lambda: machine(new_paper()), settings=chosen)


def test_no_history_breaks_what_must_hold(new_paper):
    walk(new_paper, examples=15, steps=25)


@pytest.mark.slow
def test_no_history_out_of_thousands_breaks_what_must_hold(new_paper):
    walk(new_paper, examples=200, steps=50)


def without(*parts):
    """Return the machine's `decide` without some of its parts, which a defect has replaced."""

    def deciding_with(situation):
        with pytest.MonkeyPatch.context() as patch:
            for home, name, defect in parts:
                patch.setattr(home, name, defect)
            return decide(situation)

    return deciding_with


def lost_telemetry_drains(situation):
    """Drain who is silent, as no rule of the policy says."""
    made = decide(situation)
    for view in sorted(situation.nodes, key=lambda view: view.name):
        told = [one for one in view.node_state.faults if one.fault_class == "telemetry.lost" and one.is_open]
        if (
            told
            and view.node_state.state == "production"
            and view.name not in {one.node for one in made if one.timing != "record"}
        ):
            because = (DecisionCause("fault", told[0].id, "silent"),)
            made.append(
                grant_proposal(
                    situation, view, Proposal("draining", "immediate", "", "silence", because, (told[0].id,))
                )
            )
    return made


def idle_where_nobody_answers(situation):
    """Take a scheduler that does not answer for an idle node."""
    return decide(replace(situation, nodes=tuple(replace(view, jobs=view.jobs or ()) for view in situation.nodes)))


def nobody_holds(situation):
    """Forget who holds what."""
    free = (replace(view, node_state=replace(view.node_state, hold=None)) for view in situation.nodes)
    return decide(replace(situation, nodes=tuple(free)))


def everything_is_allowed(situation):
    """Let every profile allow everything."""
    every = {"acts_on_faults": True, "actions": EVERY}
    views = (replace(view, profile=view.profile.model_copy(update=every)) for view in situation.nodes)
    return decide(replace(situation, nodes=tuple(views)))


def any_edge(situation):
    """Send a node straight to where a person wants it."""
    straight = (manual_moves, "find_next_step", lambda policy, _, to: to if to in policy.states else "")
    no_obstacle = (manual_moves, "_find_obstacle", lambda *given: "" if given[-1] else "no such state")
    return without(straight, no_obstacle)(situation)


def as_they_come(situation):
    """Give room to who is named first, and not to who needs it most."""
    order = {view.name: number for number, view in enumerate(situation.nodes)}
    return without((fault_remedies, "urgency_key", lambda view: (order[view.name], "", "")))(situation)


DEFECTS = {
    "stale passes count": (
        "admits without a proof",
        without(
            (required_checks, "_find_shortcoming", lambda *_, **__: ""),
            (required_checks, "_find_disorder", lambda *_: ""),
        ),
    ),
    "later faults are forgotten": (
        "admits over a later fault",
        without((required_checks, "find_unproved_fault", lambda *_: None)),
    ),
    "room without end": ("exceeds the limit", without((LimitCapacity, "find_refusal", lambda *_, **__: None))),
    "any number of racks": ("exceeds the limit of racks", without((rack_cordons, "_is_cordoned", lambda _: True))),
    "holds are ignored": ("acts on a held node", nobody_holds),
    "profiles are ignored": ("beyond the profile", everything_is_allowed),
    "silence is idleness": ("acts on missing data", idle_where_nobody_answers),
    "lost telemetry drains": ("acts on lost telemetry", lost_telemetry_drains),
    "certifications are not read": ("no way out", without((state_transitions, "_certified", lambda *_: None))),
    "first come, first served": ("the order changes the answer", as_they_come),
    "any edge will do": ("there is no such edge", any_edge),
}


def defective(defect):
    said, broken = DEFECTS[defect]
    return said, type("Defective", (Histories,), {"decide": staticmethod(broken)})


def three(machine):
    machine.faults_are_seen(names={"h0", "h1", "h2"}, fault="gpu.xid.79")


LEADS_TO = {
    "stale passes count": lambda machine: machine.a_repair_comes_after_its_passes(name="h0"),
    "later faults are forgotten": lambda machine: machine.a_fault_comes_after_the_evidence(
        name="h0", fault="psu.failed", hours=0
    ),
    "room without end": three,
    "any number of racks": lambda machine: [machine.a_rack_loses_two(rack=rack) for rack in "01"],
    "holds are ignored": lambda machine: machine.a_held_node_breaks(name="h0"),
    "profiles are ignored": lambda machine: machine.faults_are_seen(names={"u0"}, fault="gpu.xid.79"),
    "silence is idleness": lambda machine: machine.faults_are_seen(names={"h0"}, fault="gpu.thermal"),
    "lost telemetry drains": lambda machine: machine.faults_are_seen(names={"h0"}, fault="telemetry.lost"),
    "certifications are not read": lambda machine: machine.a_person_moves(name="h0", to="draining", now=True),
    "first come, first served": three,
    "any edge will do": lambda machine: machine.a_person_moves(name="h0", to="test", now=True),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_does_not_survive_the_history_that_shows_it(new_paper, defect):
    said, machine = defective(defect)
    for kind in (Histories, machine):
        walked = kind(new_paper())
        walked.begin(states=["production"] * 10)
        with pytest.raises(AssertionError, match=said) if kind is machine else nullcontext():
            LEADS_TO[defect](walked)
            walked.teardown()


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found_by_histories_that_know_nothing_of_it(new_paper, defect):
    said, machine = defective(defect)
    with pytest.raises(AssertionError, match=said):
        walk(new_paper, examples=400, steps=25, machine=machine, derandomize=True)
