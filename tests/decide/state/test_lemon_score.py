"""The lemon score counts what a node has cost in its life, says why, and sends a lemon's next fault to people."""

from __future__ import annotations

import pytest

from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.decide.state.lemon_score import compute_lemon_score, find_lemon
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from tests.decide.faults.test_faults_that_return import Breaker, Flapper, changed


def score(paper, name="n1"):
    return compute_lemon_score(paper.policy, paper.story(name))


def live(paper, times, days=100):
    """Let faults come on one GPU after another, each answered by a reboot, so far apart that no window counts them."""
    node = Breaker(paper)
    for number in range(times):
        assert node.break_down("gpu.xid.79", f"gpu{number % 8}") == "production"
        paper.later(days=days)
    return node


def test_each_reboot_counts_with_its_cordon_and_says_what_when_and_why(paper):
    live(paper, 2)
    found = score(paper)
    assert [(one.what, one.weight) for one in found.reasons] == [("cordon", 0.25), ("reboot", 1)] * 2
    assert found.points == 2.5
    assert found.reasons[0].at < found.reasons[-1].at
    assert str(found) == "lemon score 2.5 of 24: 2 × reboot (2), 2 × cordon (0.5)"


def test_the_same_fault_on_all_gpus_far_apart_makes_a_lemon_whose_next_fault_goes_to_people(paper):
    node = live(paper, 20)
    assert score(paper).points == 25
    assert node.answers.count("production-reboot") == 20
    assert node.break_down("gpu.xid.79", "gpu4") == "triage", "no further reboot"
    assert "lemon score 25 of 24: 20 × reboot (20)" in paper.story("n1").reason
    paper.step()
    assert paper.story("n1").state == "triage", "people decide about an RMA"


def test_a_policy_may_return_a_lemon_by_itself(paper):
    triage = paper.policy.states["triage"].model_dump(exclude_unset=True)
    triage["escalate"] = [{"blame": "hardware", "recurred": False, "lemon": True, "to": "rma"}]
    weights = {**paper.policy.lemon.weights.model_dump(), "states": {"triage": 3, "rma": 4}}
    lemon = {"threshold": 5, "weights": weights}
    paper.policy = changed(paper.policy, states={"triage": triage}, lemon=lemon)
    node = live(paper, 4)
    assert node.break_down("gpu.xid.79", "gpu5") == "triage"
    (made,) = [one for one in paper.step() if one.timing == "immediate"]
    assert (made.to_state, made.remedy) == ("rma", "rma")
    assert "lemon score" in made.causes[-1].text
    assert [(one.what, one.weight) for one in score(paper).reasons] == [("rma", 4)], "what came before counts no more"


def test_withdrawn_waits_count_once_each_and_the_cordons_of_waits_too(paper):
    node = Flapper(paper)
    node.flap(1, minutes=5)
    assert [(one.what, one.weight) for one in score(paper).reasons] == [("cordon", 0.25), ("withdrawn wait", 0.5)]
    assert score(paper).reasons[1].because == "gpu.xid.62 on a/n1/gpu3"
    node.flap(500, minutes=5)
    assert score(paper).points == 2.25, "a long wait in which the fault comes and goes 500 times is one wait"


def test_what_a_person_ordered_counts_as_no_action(paper):
    paper.add("n1")
    paper.say("move", "n1", to="production-reboot")
    for _ in range(3):
        paper.step()
        paper.settle("n1")
    assert paper.story("n1").state == "production-reboot"
    assert score(paper).points == 0


def test_a_replaced_node_starts_at_zero(paper):
    live(paper, 20)
    assert find_lemon(paper.policy, paper.story("n1"))
    paper.write(make_enrolled_entry("n1", "a", "production", paper.now, "S-new"))
    assert score(paper).points == 0


def test_a_policy_without_the_section_has_no_score(paper):
    paper.policy = paper.policy.model_copy(update={"lemon": None})
    live(paper, 2)
    assert score(paper) is None


@pytest.mark.parametrize(
    ("section", "values", "said"),
    [
        ("flapping", {"clean_minutes": [30, 10]}, "clean_minutes falls: 30, 10"),
        ("flapping", {"clean_minutes": [0, 1, 2, 3]}, "people are asked after 4 times"),
        ("flapping", {"window_hours": 2}, "must stay away for 120 min, and counts for 120 min"),
        ("flapping", {"then": "zap"}, "flapping.then is zap, which is no rung"),
        ("ladder", {"windows": [{"hours": 168, "times": 1}]}, "the rungs allow no more anyway"),
        ("ladder", {"windows": [{"hours": 400, "times": 1, "remedies": ["zap"]}]}, "which the ladder does not have"),
        ("ladder", {"windows": [{"hours": 200, "times": 3}, {"hours": 400, "times": 2}]}, "never comes before 2 in"),
        ("lemon", {"threshold": 8}, "one rma counts 8, and 8 make a lemon"),
        ("lemon", {"weights": {}}, "no node is ever a lemon"),
        ("lemon", {"weights": {"states": {"limbo": 1}}}, "'limbo' is no state"),
        ("lemon", {"weights": {"states": {"triage": -1, "rma": 1}}}, "cannot earn points back"),
        ("lemon", {"fresh_after": ["limbo"]}, "'limbo' is no state"),
        ("lemon", {"then": "zap"}, "lemon.then is zap, which is no rung"),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(policy, section, values, said):
    with pytest.raises(ValueError, match=said):
        changed(policy, **{section: values})


def test_a_window_that_allows_less_than_a_rung_is_refused(policy):
    plain = policy.model_dump(exclude_unset=True)
    plain["ladder"]["rungs"]["reboot"]["times"] = 3
    with pytest.raises(ValueError, match="allows 2 in 2160 h, and a rung allows 3 in less time"):
        LifecyclePolicy.model_validate(plain)


def test_a_step_for_lemons_needs_the_score(policy):
    plain = policy.model_dump(exclude_unset=True)
    plain["states"]["triage"]["escalate"] = [{"blame": "hardware", "lemon": True, "to": "rma"}]
    del plain["lemon"]
    with pytest.raises(ValueError, match="the policy has no lemon score"):
        LifecyclePolicy.model_validate(plain)
