"""What no history can make `decide` do: a state machine walks a small fleet through thousands of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.decide.moves.decide import decide

NODES = [f"n{i}" for i in range(8)]
FOREIGN = ["u0", "u1"]
FAULTS = ["gpu.xid.79", "gpu.xid.48", "gpu.xid.13", "gpu.xid.7777", "gpu.thermal", "psu.failed", "ib.link.flap"]
VERDICTS = ["pass", "pass", "fail", "error", "skip"]
PHASES = ["seatrial", "zap", "test", "production"]
QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck))

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
    paper.burn_in("n0", "day")
    paper.later(hours=25)
    for phase in {"test", "production"} - missing:
        paper.judge("n0", phase)
    assert [one for one in paper.step() if one.timing != "record"] == []
    for phase in missing:
        paper.judge("n0", phase)
    assert [one.to_state for one in paper.step()] == ["production"]


def test_a_phase_without_any_declared_check_admits_nobody(paper):
    paper.add("n0", "test")
    paper.burn_in("n0", "day")
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


@pytest.mark.parametrize("state", ["zapfail", "triage", "debug", "rma", "onboard", "discovered"])
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
