"""What waits for a node to be idle: brought to mind with its blockers and its age, and taken back with its cause."""

from __future__ import annotations

from datetime import timedelta

import pytest

from assay.decide.state import decision_and_fault_entries
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.entries.faults import FaultClearedEntry


def moved(made):
    return [(one.from_state, one.to_state, one.timing) for one in made if one.timing != "record"]


def hot(paper):
    """Let a hot GPU wait for a job, cordoned; return the fault."""
    paper.add("n1")
    paper.jobs["n1"] = ("job 17 (train)",)
    fault = paper.fault("n1", "gpu.thermal", "gpu3", marks={"check": paper.now.isoformat()})
    assert moved(paper.step()) == [("production", "draining", "pending")]
    assert paper.settle("n1") == ["cordon"]
    return fault


def clear(paper, fault):
    paper.write(
        decision_and_fault_entries.make_cleared_entry("n1", FaultClearedEntry(fault, "it passes again"), paper.now)
    )
    paper.later(seconds=1)


def test_what_waits_names_its_blockers_and_its_age_once_a_day(paper):
    hot(paper)
    said = []
    for _ in range(5):
        paper.later(hours=12)
        said += [(one.timing, one.causes[0].text, one.blockers) for one in paper.step()]
    text = "has waited {} h to go to draining, for job 17 (train)"
    assert said == [("record", text.format(hours), ("job 17 (train)",)) for hours in (24, 48)]
    paper.jobs["n1"] = None
    paper.later(hours=24)
    (made,) = paper.step()
    assert made.causes[0].text.endswith("unknown: nothing tells which jobs run there")


def test_a_cordon_whose_cause_is_over_is_undone_and_the_next_fault_waits_anew(paper):
    clear(paper, hot(paper))
    (made,) = paper.step()
    assert (made.timing, made.remedy, made.causes[0].text) == (
        "record",
        "withdraw",
        "what it waited to answer is over",
    )
    assert paper.story("n1").pending is None
    assert paper.settle("n1") == ["uncordon"]
    assert paper.step() == []
    paper.fault("n1", "gpu.thermal", "gpu3")
    assert moved(paper.step()) == [("production", "draining", "pending")]
    assert paper.settle("n1") == ["cordon"]


def test_what_is_over_moves_nothing_when_the_job_ends_later(paper):
    clear(paper, hot(paper))
    paper.jobs["n1"] = ()
    assert moved(paper.step()) == []
    assert paper.story("n1").state == "production"


@pytest.mark.parametrize("kind", ["certified", "part.replaced"])
def test_a_certification_and_a_new_part_take_back_what_waits(paper, kind):
    hot(paper)
    paper.say(kind, "n1", reason="the fan was blocked")
    assert [one.remedy for one in paper.step()] == ["withdraw"]


def test_one_of_two_causes_is_cause_enough(paper):
    fault = hot(paper)
    paper.fault("n1", "ib.link.down", "mlx5_0")
    paper.step()
    clear(paper, fault)
    paper.jobs["n1"] = ()
    assert moved(paper.step()) == [("production", "draining", "immediate")]


def test_a_policy_that_no_longer_leads_there_leaves_nobody_waiting(paper):
    hot(paper)
    edges = {**paper.policy.edges, "production": ["production-reboot"]}
    paper.policy = paper.policy.model_copy(update={"edges": edges})
    (made,) = [one for one in paper.step() if one.remedy == "withdraw"]
    assert made.causes[0].text == "the policy no longer leads from production to draining"


def test_nothing_is_taken_back_on_a_held_node(paper):
    fault = hot(paper)
    paper.say("hold", "n1")
    clear(paper, fault)
    assert paper.step() == []
    paper.say("release", "n1")
    assert [one.remedy for one in paper.step()] == ["withdraw"]


def test_a_hold_ends_when_its_time_is_over_and_says_whose_it_was(paper):
    paper.add("n1")
    paper.say("hold", "n1", reason="bisecting", until=(paper.now + timedelta(hours=5)).isoformat())
    paper.fault("n1", "gpu.xid.79")
    assert moved(paper.step()) == []
    paper.later(hours=4)
    assert [one.remedy for one in paper.step()] == ["none"], "its end is said before"
    paper.later(hours=1)
    made = paper.step()
    assert [(one.remedy, one.causes[0].text) for one in made] == [
        ("release", "ann held it until 2026-11-21 17:00 UTC: bisecting")
    ]
    assert paper.story("n1").hold is None
    assert moved(paper.step()) == [("production", "production-reboot", "immediate")]


@pytest.mark.parametrize(
    ("state", "hours"),
    [("initializing", 2), ("seatrial", 24), ("test", 48), ("production-reboot", 2), ("draining", 1), ("triage", 72)],
)
def test_a_missed_deadline_asks_a_person_to_look_once_and_leaves_the_node_alone(paper, state, hours):
    paper.add("n1", state)
    paper.jobs["n1"] = None
    paper.later(hours=hours)
    assert paper.step() == []
    (made,) = paper.step()
    assert (made.timing, made.remedy, made.to_state) == ("record", "ticket", state)
    assert made.causes[0].text == f"{state} took longer than {hours} h"
    paper.later(hours=hours)
    assert paper.step() == []


def test_every_deadline_says_where_it_comes_from_and_every_state_but_those_of_rest_has_one(policy):
    without = {name for name, state in policy.states.items() if state.deadline is None}
    assert without == {"production", "retired", "spare"}
    assert all(state.deadline.source for state in policy.states.values() if state.deadline)


def test_a_clock_that_jumps_sends_nobody_out_of_zap_and_says_so(paper):
    for index in range(12):
        paper.add(f"n{index:02}", "zap", rack=f"r{index}")
    paper.later(hours=30)
    made = paper.step()
    assert {(one.timing, one.causes[0].kind) for one in made} == {("record", "breaker")}
    assert made[0].causes[0].text == (
        "breaker: 12 of 12 nodes of pool a miss their deadline at once (zap on 12): either the clock jumped, or what "
        "they wait for is down"
    )
    assert paper.step() == [], "and it counts anew from there"
    for index in range(11):
        paper.judge(f"n{index:02}", "zap")
    assert len(moved(paper.step())) == 11
    paper.later(hours=6, minutes=1)
    assert moved(paper.step()) == [("zap", "zapfail", "immediate")], "one alone is late, and no wave"


def test_few_that_are_late_among_many_are_no_wave(paper):
    for index in range(3):
        paper.add(f"late{index}", "zap", rack=f"l{index}")
    paper.later(hours=5)
    for index in range(20):
        paper.add(f"n{index:02}", "zap", rack=f"r{index}")
    paper.later(hours=1, minutes=1)
    assert len(moved(paper.step())) == 3


def test_a_cordon_that_could_not_be_undone_is_undone_once_a_person_has_looked(paper):
    clear(paper, hot(paper))
    (made,) = paper.step()
    paper.effect("n1", "failed", made.id, "uncordon", "slurmctld did not answer")
    paper.later(minutes=1)
    assert paper.settle("n1") == []
    for _ in range(2):
        paper.say("certified", "n1", reason="slurmctld is back")
        (again,) = list_outstanding_effects(paper.policy, paper.story("n1"))
        assert again.action == "uncordon"
        paper.effect("n1", "failed", again.decision, "uncordon", "slurmctld did not answer")
        paper.later(minutes=1)
        assert paper.settle("n1") == []
    paper.say("certified", "n1", reason="now it is")
    assert paper.settle("n1") == ["uncordon"]
    assert paper.settle("n1") == []
