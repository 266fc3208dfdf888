"""A person moves a node: along the policy's edges, through a drain where it serves, and never past the proof."""

from __future__ import annotations

import pytest

from assay.decide.moves.manual_moves import find_next_step


def moved(made):
    return [(one.from_state, one.to_state, one.timing) for one in made if one.timing != "record"]


def held_back(made):
    return [one.causes[0].text for one in made if one.remedy == "wait"]


def test_a_busy_node_is_drained_when_it_is_idle_and_then_flashed(paper):
    paper.add("n1")
    paper.jobs["n1"] = ("train",)
    paper.say("move", "n1", to="zap", reason="new BIOS")
    (made,) = paper.step()
    assert (made.to_state, made.timing, made.rule, made.blockers) == ("draining", "pending", "person", ("train",))
    assert made.causes[0].text == "ann asked for zap: new BIOS"
    assert paper.settle("n1") == ["cordon"]
    paper.jobs["n1"] = ()
    assert moved(paper.step()) == [("production", "draining", "immediate")]
    assert moved(paper.step()) == [], "not before it is drained"
    paper.settle("n1")
    assert moved(paper.step()) == [("draining", "zap", "immediate")], "and not to triage"
    assert paper.story("n1").move_request is None


def test_a_person_may_say_that_nobody_is_waited_for(paper):
    paper.add("n1")
    paper.jobs["n1"] = ("train",)
    paper.say("move", "n1", to="draining", now=True)
    assert moved(paper.step()) == [("production", "draining", "immediate")]


def test_a_cordoned_node_keeps_its_jobs_and_faults_do_not_restart_it(paper):
    paper.add("n1")
    paper.jobs["n1"] = ("train",)
    rule = paper.policy.operations["cordon"]
    paper.say("move", "n1", to=rule.to, now=rule.now)
    assert moved(paper.step()) == [("production", "cordoned", "immediate")]
    assert paper.settle("n1") == ["cordon"], "nothing ends its jobs"
    paper.fault("n1", "gpu.xid.79")
    assert moved(paper.step()) == [], "a person has it in hand"
    paper.fault("n1", "gpu.sdc")
    assert moved(paper.step()) == [("cordoned", "confirmation", "immediate")], "wrong results go out at once"


def test_a_node_is_switched_off_when_it_is_idle_and_only_switched_on_again(paper):
    paper.add("n1")
    paper.say("move", "n1", to=paper.policy.operations["power-off"].to)
    assert moved(paper.step())[-1][:2] == ("production", "powered-off")
    assert paper.settle("n1") == ["cordon", "drain-now", "collect", "poweroff"]
    assert paper.step() == [], "it stays off"
    paper.say("move", "n1", to=paper.policy.operations["power-on"].to)
    assert moved(paper.step()) == [("powered-off", "production-poweron", "immediate")]
    assert paper.settle("n1") == ["cordon", "powercycle"]


def test_another_wish_takes_the_place_of_what_waits(paper):
    paper.add("n1")
    paper.jobs["n1"] = ("train",)
    paper.say("move", "n1", to="zap")
    paper.step()
    paper.settle("n1")
    paper.say("move", "n1", to="production", reason="not after all")
    made = paper.step()
    assert [(one.remedy, one.causes[0].text) for one in made] == [("withdraw", "nobody asks for it any more")]
    assert paper.settle("n1") == ["uncordon"]


@pytest.mark.parametrize(("state", "to"), [("triage", "production"), ("debug", "production"), ("onboard", "test")])
def test_a_way_that_the_policy_does_not_draw_is_not_gone_and_says_so_once(paper, state, to):
    paper.add("n1", state)
    paper.say("move", "n1", to=to)
    assert held_back(paper.step()) == [f"the policy draws no way from {state} to {to}"]
    assert paper.step() == []


def test_a_person_cuts_the_burn_in_short_but_not_the_proof(paper):
    paper.add("n1", "test")
    paper.say("move", "n1", to="production", reason="needed today")
    assert held_back(paper.step()) == ["phase test and production is not passed"]
    paper.pass_all("n1")
    assert moved(paper.step()) == [("test", "production", "immediate")]


def test_limits_holds_and_profiles_bind_a_persons_move_too_and_the_breaker_does_not(paper):
    for name in ("a0", "a1", "a2", "a3"):
        paper.add(name)
    paper.fault("a0", "gpu.xid.79")
    paper.step()
    paper.say("move", "a1", to="draining")
    assert held_back(paper.step()) == ["held back: 1 of 4 already out of pool a, 1 may be"]
    paper.add("b0", pool="b", rack="r02")
    paper.say("hold", "b0", reason="mine")
    paper.say("move", "b0", to="draining")
    assert held_back(paper.step()) == ["held by ann: mine"]
    paper.add("u0", pool="byo", rack="r03", profile="unmanaged")
    paper.say("move", "u0", to="draining")
    assert held_back(paper.step()) == ["profile unmanaged does not allow: collect, drain-now"]
    for number in range(8):
        paper.add(f"c{number}", pool="c", rack=f"c{number}")
        paper.fault(f"c{number}", "gpu.thermal")
    paper.say("move", "c7", to="draining")
    assert [one.node for one in paper.step() if one.timing == "immediate"] == ["c7"]


def test_what_is_asked_for_and_does_not_happen_is_brought_to_mind(paper):
    paper.add("n1", "triage")
    paper.say("move", "n1", to="production", reason="needed")
    paper.step()
    paper.later(hours=25)
    (made,) = paper.step()
    assert made.causes[0].text == "ann asked for production 25 h ago, and it is still in triage: needed"


def test_any_node_may_be_retired_a_serving_one_after_it_is_drained(policy):
    assert find_next_step(policy, "production", "retired") == "draining"
    assert find_next_step(policy, "draining", "retired") == "retired"
    assert find_next_step(policy, "triage", "retired") == "retired"
    assert find_next_step(policy, "triage", "production") == ""
