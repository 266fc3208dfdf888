"""Random histories of a small fleet. After every step it is decided, and the answer is judged."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from assay.decide.moves.held_answers import find_nodes_to_clear
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.evidence import EvidenceBasis
from tests.decide.moves.judged_fleet import JudgedFleet

HGX = [f"h{i}" for i in range(8)]
FOREIGN = ["u0", "u1"]
TRAYS = [f"t{rack}{i}" for rack in range(3) for i in range(4)]
SPARE = ["n0", "n1"]
NAMES = [*HGX, *FOREIGN, *TRAYS, *SPARE]
FAULTS = ["gpu.xid.79", "gpu.xid.79", "gpu.xid.48", "gpu.xid.13", "gpu.thermal", "psu.failed", "telemetry.lost"]
STATES = ["onboard", "zap", "test", "production", "production-reboot", "draining", "triage", "retired", "heaven"]
START = ["production"] * 4 + ["test", "production-reboot", "triage", "zap"]

ALL = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None, phases=[Phase.generate])

anybody = st.sampled_from(NAMES)


class Histories(JudgedFleet):
    """Anything may happen to the fleet, in any order. After every step it is decided, and the answer is judged."""

    @initialize(states=st.lists(st.sampled_from(START), min_size=10, max_size=10))
    def begin(self, states):
        for index, name in enumerate([*HGX, *FOREIGN]):
            foreign = name in FOREIGN
            place = {"pool": "b", "rack": "r9", "profile": "unmanaged"} if foreign else {"rack": f"r{index // 4}"}
            self.paper.add(name, states[index], serial=f"s-{name}", **place)
        for name in TRAYS:
            self.paper.add(name, pool="c", rack=f"rack{name[1]}", kind="tray", serial=f"s-{name}")
        self.paper.boots = {name: f"{name}-first" for name in self.paper.nodes}

    @rule(names=st.sets(anybody, min_size=1, max_size=3), fault=st.sampled_from(FAULTS))
    def faults_are_seen(self, names, fault):
        for name in sorted(self._here(names)):
            self.paper.fault(name, fault, "gpu0")
        self.check()

    @rule(name=anybody)
    def a_fault_is_over(self, name):
        for known in [known for known in self._faults(name) if known.is_open][:1]:
            self._end(name, known.id)
        self.check()

    @rule(name=anybody, fault=st.sampled_from(["gpu.xid.62", "gpu.thermal"]), minutes=st.sampled_from([1, 40, 130]))
    def a_fault_comes_and_goes(self, name, fault, minutes):
        """Let a fault go away again and again, while the node waits for a job that does not end."""
        for here in self._here([name]):
            self.paper.jobs[here] = ("train",)
            for _ in range(5):
                known = self.paper.fault(here, fault, "gpu4")
                self.check()
                self._end(here, known)
                self.paper.later(minutes=minutes)
                self.check()

    @rule(pool=st.sampled_from("abc"))
    def a_person_clears_the_breaker(self, pool):
        stories = [self.paper.story(name) for name in self.paper.nodes]
        for story in find_nodes_to_clear(stories, pool, ""):
            self.paper.say("breaker.cleared", story.node, pool=pool)
        self.check()

    @rule(
        names=st.sets(anybody, min_size=1, max_size=4),
        reason=st.sampled_from(["bob: fans", "tainted maintenance=bob:NoSchedule", "Kill task failed", ""]),
    )
    def others_close_or_open(self, names, reason):
        self.paper.foreign |= dict.fromkeys(names, reason)
        self.check()

    @rule(name=anybody)
    def a_closed_node_breaks(self, name):
        for here in self._here([name]):
            self.paper.foreign[here] = "bob: fans"
            self.paper.fault(here, "gpu.xid.79", "gpu5")
        self.check()

    @rule(name=anybody, new=st.sampled_from(SPARE))
    def a_machine_is_renamed(self, name, new):
        if name in self.paper.nodes and new not in self.paper.nodes:
            machine, paper = self.paper.story(name), self.paper
            paper.nodes[new] = replace(paper.nodes.pop(name), name=new)
            paper.write(
                decision_and_fault_entries.make_rename_entry(machine, paper.nodes[new], paper.now),
                decision_and_fault_entries.make_left_entry(machine, new, paper.now),
            )
            paper.jobs[new], paper.boots[new], paper.outcomes[new] = paper.jobs[name], paper.boots[name], {}
            paper.foreign[new] = paper.foreign.pop(name, "")
        self.check()

    @rule(name=anybody, start=st.sampled_from(["onboard", "seatrial", "test"]))
    def a_machine_is_replaced(self, name, start):
        """Put another machine where this one was. Outcomes of the old one are still the newest of this name."""
        for here in self._here([name]):
            self.paper.serial += 1
            serial = f"s-{here}-{self.paper.serial}"
            self.paper.nodes[here] = replace(self.paper.nodes[here], serial=serial)
            self.paper.boots[here] = f"{serial}-first"
            self.enrol(self.paper, here, start, serial)
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

    @rule(name=anybody, late=st.integers(0, 40), boot=st.sampled_from(["", "", "-before"]))
    def evidence_comes_late(self, name, late, boot):
        """Judge evidence that was read many entries ago, or in another boot, though its date is new."""
        for here in self._here([name]):
            for phase in ("test", "production"):
                basis = EvidenceBasis(max(0, len(self.paper.log) - late), f"{self.paper.boots[here]}{boot}")
                self.paper.judge(here, phase, basis=basis)
        self.check()

    @rule(name=anybody)
    def lines_of_the_boot_before_a_repair_come_late(self, name):
        for here in self._here([name]):
            boot = self.paper.boots[here]
            self.paper.fault(here, "gpu.xid.79", "gpu1")
            self.check()
            self.paper.settle(here)
            self.paper.fault(here, "gpu.xid.48", "gpu1", marks={"kernel": f"{boot}:7"})
            for phase in ("test", "production"):
                self.paper.judge(here, phase)
        self.check()

    @rule(name=anybody)
    def passes_of_the_boot_before_a_repair_come_late(self, name):
        """Judge evidence that was read after a repair, according to the ledger, though the boot is the one before."""
        for here in self._here([name]):
            boot = self.paper.boots[here]
            self.paper.fault(here, "gpu.xid.79", "gpu1")
            self.check()
            self.paper.settle(here)
            for phase in ("test", "production"):
                self.paper.judge(here, phase, basis=EvidenceBasis(len(self.paper.log), boot))
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

    @rule(rack=st.sampled_from("012"), fault=st.sampled_from(["gpu.xid.79", "gpu.xid.119"]))
    def a_rack_loses_two(self, rack, fault):
        for name in self._here([f"t{rack}0", f"t{rack}1"]):
            self.paper.fault(name, fault, "gpu2")
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
        for here in self._here([name]):
            for one in list_outstanding_effects(self.paper.policy, self.paper.story(here))[:1]:
                self.paper.effect(here, standing, one.decision, one.action, "as planted")
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
        for here in self._here([name]):
            if pending := self.paper.story(here).pending:
                self.paper.say("decision.withdrawn", here, decision=pending.decision)
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


def walk(new_paper, examples, steps, machine=Histories, **more):
    """Try that many histories of at most so many steps."""
    chosen = settings(ALL, max_examples=examples, stateful_step_count=steps, **more)
    run_state_machine_as_test(lambda: machine(new_paper()), settings=chosen)
