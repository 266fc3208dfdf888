"""A node that is out and that its scheduler reads as open is closed again; who opens it again and again is told of."""

from __future__ import annotations

import pytest

from assay.decide.state import decision_and_fault_entries
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.entries.faults import FaultClearedEntry

OURS = "assay: as planted"


@pytest.fixture
def n1(paper):
    """Add a node that a job runs on and that waits, cordoned, for its end."""
    paper.add("n1")
    paper.jobs["n1"] = ("job 17 (train)",)
    paper.fault("n1", "gpu.thermal", "gpu3", marks={"check": paper.now.isoformat()})
    paper.step()
    assert paper.settle("n1") == ["cordon"]
    paper.cordons["n1"] = OURS
    return "n1"


def out(paper, state="production-reboot"):
    """Add a node that has left service for a reboot, or gone on from there."""
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79")
    paper.step()
    assert paper.story("n1").state == "production-reboot"
    paper.cordons["n1"] = OURS
    while paper.story("n1").state != state:
        paper.settle("n1")
        paper.later(minutes=3)
        paper.judge("n1", "test", "fail")
        paper.step()
    return "n1"


def do(paper, *actions):
    """Let the next of what is owed be done."""
    for action in actions:
        one = list_outstanding_effects(paper.policy, paper.story("n1"))[0]
        assert one.action == action
        paper.effect("n1", "verified", one.decision, one.action)
        if action == "cordon":
            paper.cordons["n1"] = OURS
        paper.later(seconds=1)


def opens(paper):
    """Let somebody open the node; return what is decided of that: its remedy and its words."""
    paper.cordons["n1"] = ""
    return [(one.remedy, one.causes[0].text) for one in paper.step() if one.rule == "cordons"]


def owes(paper):
    return [one.action for one in list_outstanding_effects(paper.policy, paper.story("n1"))]


def test_what_waits_closed_and_was_opened_is_closed_again_once(paper, n1):
    ((remedy, said),) = opens(paper)
    assert remedy == "cordon"
    assert said.startswith("cordon of 2026-11-21 12:00 UTC is gone: its scheduler reads it as open for jobs, ")
    assert said.endswith("with job 17 (train) on it; closed again (1 of 3 in 24 h)")
    assert paper.step() == [], "it is said once"
    assert owes(paper) == ["cordon"]
    do(paper, "cordon")
    assert (owes(paper), paper.step()) == ([], [])


def test_before_a_reboot_the_jobs_that_came_in_are_ended_as_the_state_says(paper):
    out(paper)
    do(paper, "cordon", "drain-now")
    assert opens(paper)
    assert owes(paper) == ["cordon", "drain-now", "collect", "reboot"]


def test_after_the_repair_the_node_is_closed_and_nobody_is_hurt(paper):
    out(paper)
    do(paper, "cordon", "drain-now", "collect", "reboot")
    assert opens(paper)
    assert owes(paper) == ["cordon"]


def test_a_state_that_is_left_when_idle_ends_what_came_in(paper):
    out(paper, "draining")
    do(paper, "cordon", "drain-now")
    paper.jobs["n1"] = ("job 18 (late)",)
    assert opens(paper)
    do(paper, "cordon", "drain-now", "collect")
    assert owes(paper) == []


def test_states_that_cordon_nothing_themselves_stay_closed_from_the_cordon_before(paper):
    out(paper, "draining")
    do(paper, "cordon", "drain-now", "collect")
    paper.step()
    assert paper.story("n1").state == "triage"
    assert [remedy for remedy, _ in opens(paper)] == ["cordon"]
    assert owes(paper) == ["cordon"]


@pytest.mark.parametrize("told", [None, OURS, "bob: fans"])
def test_a_node_that_somebody_closes_or_of_which_nobody_can_tell_is_left_as_it_is(paper, n1, told):
    paper.cordons[n1] = told
    assert paper.step() == []


def test_a_foreign_cordon_that_did_for_ours_is_replaced_when_it_is_lifted(paper, n1):
    paper.cordons[n1] = "bob: fans"
    assert paper.step() == []
    assert opens(paper)
    do(paper, "cordon")
    assert paper.cordons[n1] == OURS


def test_who_opens_it_again_and_again_is_left_to_people_until_the_window_has_room(paper, n1):
    for number in (1, 2, 3):
        ((remedy, said),) = opens(paper)
        assert (remedy, said.rpartition("; ")[2]) == ("cordon", f"closed again ({number} of 3 in 24 h)")
        do(paper, "cordon")
        paper.later(minutes=5)
    ((remedy, said),) = opens(paper)
    assert remedy == "ticket"
    assert "opened 3 times in 15 min and closed again each time, so it is left open until 2026-11-22 12:00 UTC" in said
    assert "slurmctld's log" in said
    assert (owes(paper), opens(paper)) == ([], [])
    assert "left open" in paper.story(n1).note

    paper.later(hours=23, minutes=50)
    ((remedy, _),) = opens(paper)
    assert remedy == "cordon"
    do(paper, "cordon")


def test_a_cordon_that_fails_is_tried_as_often_and_no_oftener(paper, n1):
    tries = 0
    while [remedy for remedy, _ in opens(paper)] == ["cordon"]:
        (one,) = list_outstanding_effects(paper.policy, paper.story(n1))
        paper.effect(n1, "failed", one.decision, "cordon", "scontrol refuses")
        tries += 1
    assert tries == 3


def test_a_held_node_is_left_to_who_holds_it(paper, n1):
    paper.say("hold", n1)
    assert opens(paper) == []


def test_what_waits_no_longer_is_not_closed_again(paper, n1):
    assert opens(paper)
    (known,) = paper.story(n1).faults
    paper.write(
        decision_and_fault_entries.make_cleared_entry(n1, FaultClearedEntry(known.id, "it passes again"), paper.now)
    )
    paper.step()
    assert owes(paper) == ["uncordon"]
    do(paper, "uncordon")
    assert (owes(paper), opens(paper)) == ([], [])


def test_a_node_that_serves_again_is_open_as_it_should_be(paper):
    out(paper)
    do(paper, "cordon", "drain-now", "collect", "reboot")
    paper.later(minutes=3)
    paper.pass_all("n1")
    paper.step()
    assert (paper.story("n1").state, owes(paper)) == ("production", ["uncordon"])
    assert opens(paper) == [], "before it is given back, and after"
    do(paper, "uncordon")
    assert opens(paper) == []
