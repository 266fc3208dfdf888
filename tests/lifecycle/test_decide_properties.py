"""What no history can make `decide` do: a state machine walks a small fleet through thousands of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from assay.lifecycle.decide import decide
from assay.lifecycle.owed import owed

NODES = [f"n{i}" for i in range(8)]
FOREIGN = ["u0", "u1"]
FAULTS = ["gpu.xid.79", "gpu.xid.48", "gpu.xid.13", "gpu.xid.7777", "gpu.thermal", "psu.failed", "ib.link.flap"]
VERDICTS = ["pass", "pass", "fail", "error", "skip"]
PHASES = ["seatrial", "zap", "test", "production"]
QUICK = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))

nodes = st.sampled_from(NODES + FOREIGN)
AGES = st.sampled_from([0, 0, 2, 30])
PLACES = st.sampled_from(["seatrial", "test", "production", "production-reboot", "triage"])


def build(paper, states):
    limits = paper.policy.limits.model_copy(update={"pool_percent": 40, "reboots_per_hour": 2})
    paper.policy = paper.policy.model_copy(update={"limits": limits})
    for index, name in enumerate(NODES):
        paper.add(name, states[index], rack=f"r{index // 4}")
    for index, name in enumerate(FOREIGN):
        paper.add(name, states[len(NODES) + index], pool="b", rack="r9", profile="unmanaged")
    return paper


def admissible(paper, name, state, at):
    """Say, from the raw outcomes alone, whether a node may enter production from `state`."""
    story = paper.story(name)
    repaired = max((datetime.fromisoformat(repair.at) for repair in story.repairs), default=None)
    for wanted in paper.policy.states[state].requires:
        judged = [one for one in paper.outcomes[name].values() if wanted.phase in one.outcome.phases]
        if len(judged) != 1 or judged[0].outcome.verdict != "pass":
            return False
        seen = datetime.fromisoformat(judged[0].outcome.evidence_at)
        if at - seen > timedelta(hours=wanted.fresh_hours) or (repaired and seen <= repaired):
            return False
    return bool(paper.policy.states[state].requires)


def taken_out(paper):
    """Return the nodes that automation has out of service, by walking every transition."""
    out = set()
    for entry in paper.log.values():
        if entry.kind == "transition":
            old, new = (paper.policy.states[entry.body[end]] for end in ("from", "to"))
            if old.in_service and new.counts_out:
                out.add(entry.node)
            elif not new.counts_out:
                out.discard(entry.node)
    pending = {name for name, story in paper.stories().items() if story.pending}
    return out | pending


def restarts(paper, since):
    moves = [entry for entry in paper.log.values() if entry.kind == "transition"]
    recent = [entry for entry in moves if datetime.fromisoformat(entry.at) > since]
    return [entry for entry in recent if {"reboot", "powercycle"} & set(paper.policy.states[entry.body["to"]].entry)]


class History(RuleBasedStateMachine):
    """Anything may happen to the fleet, in any order, and between any two decisions."""

    def __init__(self, paper):
        super().__init__()
        self.paper = build(paper, ["production"] * 6 + ["test", "seatrial", "production", "production"])

    @rule(names=st.sets(nodes, min_size=1, max_size=3), fault_class=st.sampled_from(FAULTS))
    def faults_are_seen(self, names, fault_class):
        for name in sorted(names):
            self.paper.fault(name, fault_class, "gpu0")
        self._decide()

    @rule(name=nodes, again=st.booleans())
    def a_node_is_repaired(self, name, again):
        for phase in ("test", "production"):
            self.paper.judge(name, phase)
        self.paper.fault(name, "gpu.xid.79", "gpu0")
        self._decide()
        self.paper.settle(name)
        self._decide()
        if again:
            self.paper.pass_all(name)
            self._decide()

    @rule(
        name=nodes,
        phase=st.sampled_from(PHASES),
        verdict=st.sampled_from(VERDICTS),
        hours=AGES,
    )
    def a_check_is_judged(self, name, phase, verdict, hours):
        self.paper.judge(name, phase, verdict, age=timedelta(hours=hours))

    @rule(name=nodes)
    def everything_due_passes(self, name):
        self.paper.pass_all(name)

    @rule(name=nodes)
    def what_is_owed_is_verified(self, name):
        self.paper.settle(name)

    @rule(name=nodes, standing=st.sampled_from(["intent", "done", "unknown", "failed"]))
    def an_effect_gets_stuck(self, name, standing):
        for one in owed(self.paper.policy, self.paper.story(name))[:1]:
            self.paper.effect(name, standing, one.decision, one.action, "as planted")

    @rule(name=nodes, jobs=st.sampled_from([(), ("train",), None]))
    def its_jobs_change(self, name, jobs):
        self.paper.jobs[name] = jobs

    @rule(name=nodes, word=st.sampled_from(["hold", "release", "certified"]))
    def a_person_speaks(self, name, word):
        self.paper.say(word, name)

    @rule(hours=st.sampled_from([0.01, 0.3, 2, 25]))
    def time_passes(self, hours):
        self.paper.later(hours=hours)

    @rule(shuffle=st.randoms(use_true_random=False))
    def it_is_decided(self, shuffle):
        self._same_whatever_the_order(self.paper.situation(), shuffle)
        self._decide()

    def _decide(self):
        situation = self.paper.situation()
        before = self.paper.stories()
        held = {name for name, story in before.items() if story.held}
        for one in self.paper.step():
            if one.timing == "record":
                continue
            profile = self.paper.profiles[self.paper.nodes[one.node].profile]
            target = self.paper.policy.states[one.to_state]
            assert one.node not in held, "a held node was moved"
            assert self.paper.policy.may_go(one.from_state, one.to_state), "there is no such edge"
            assert one.timing == "pending" or set(target.entry) <= set(profile.actions), "beyond the profile"
            if one.node in FOREIGN and before[one.node].state == "production":
                raise AssertionError(f"an unmanaged node was moved: {one}")
            if target.in_service:
                assert admissible(self.paper, one.node, one.from_state, situation.now), one

    @invariant()
    def the_blast_radius_is_kept(self):
        out, limits = taken_out(self.paper), self.paper.policy.limits
        assert len(out & set(NODES)) <= max(1, int(len(NODES) * limits.pool_percent / 100)), out
        for rack in (NODES[:4], NODES[4:]):
            assert len(out & set(rack)) <= limits.rack_concurrent, out
        hour_ago = self.paper.now - timedelta(hours=1)
        assert len(restarts(self.paper, hour_ago)) <= limits.reboots_per_hour

    @staticmethod
    def _same_whatever_the_order(situation, shuffle):
        mixed = [replace(view, latest=tuple(shuffle.sample(view.latest, len(view.latest)))) for view in situation.nodes]
        shuffle.shuffle(mixed)
        assert decide(replace(situation, nodes=tuple(mixed))) == decide(situation) == decide(situation)


def test_no_history_admits_on_anything_but_fresh_passes_or_breaks_a_limit_a_hold_or_a_profile(new_paper):
    run_state_machine_as_test(
        lambda: History(new_paper()), settings=settings(QUICK, max_examples=60, stateful_step_count=40)
    )


@QUICK
@given(
    states=st.lists(PLACES, min_size=10, max_size=10),
    verdicts=st.lists(st.sampled_from(["error", "skip"]), min_size=4, max_size=4),
    jobs=st.sampled_from([(), ("train",), None]),
    hours=st.integers(0, 400),
)
def test_losing_telemetry_alone_moves_nothing_however_long_it_lasts(new_paper, states, verdicts, jobs, hours):
    paper = build(new_paper(), states)
    for name in NODES + FOREIGN:
        paper.jobs[name] = jobs
        for phase, verdict in zip(PHASES, verdicts, strict=True):
            paper.judge(name, phase, verdict)
        paper.fault(name, "telemetry.lost")
    paper.later(hours=hours)
    assert [one for one in paper.step() if one.timing != "record"] == []


@QUICK
@given(
    missing=st.sets(st.sampled_from(["test", "production"]), min_size=1),
    state=st.sampled_from(["test", "production-reboot"]),
)
def test_a_check_without_an_outcome_keeps_a_node_out_of_production(new_paper, missing, state):
    paper = new_paper()
    paper.add("n0", state)
    paper.later(hours=25)
    for phase in {"test", "production"} - missing:
        paper.judge("n0", phase)
    assert [one for one in paper.step() if one.timing != "record"] == []
    for phase in missing:
        paper.judge("n0", phase)
    assert [one.to_state for one in paper.step()] == ["production"]


def test_a_phase_without_any_declared_check_admits_nobody(paper):
    paper.add("n0", "test")
    paper.later(hours=25)
    for phase in ("test", "production"):
        paper.judge("n0", phase)
    situation = paper.situation()
    bare = replace(situation.nodes[0], declared=())
    assert decide(replace(situation, nodes=(bare,))) == []
    passive = tuple(
        (check.model_copy(update={"active": False}), subject) for check, subject in situation.nodes[0].declared
    )
    assert decide(replace(situation, nodes=(replace(situation.nodes[0], declared=passive),))) == []
    assert [one.to_state for one in decide(situation)] == ["production"]


@pytest.mark.parametrize("state", ["zapfail", "triage", "debug", "rma", "onboard", "discovered", "initializing"])
def test_where_automation_stops_a_person_can_go_on(paper, state):
    paper.add("n0", state)
    paper.say("certified", "n0")
    assert [one.timing for one in paper.step()] == ["immediate"]


def test_the_same_reasons_make_the_same_decision_at_any_time(new_paper):
    ids = set()
    for minutes in (0, 5, 50):
        paper = new_paper()
        paper.add("n0")
        paper.fault("n0", "gpu.xid.79")
        paper.later(minutes=minutes)
        ids.add(paper.step()[0].id)
    assert len(ids) == 1
