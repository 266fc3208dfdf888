"""What automation took out of service counts against its limits until it serves again, wherever it is now."""

from __future__ import annotations

import random

import pytest

from assay.decide.moves.blast_radius_limits import is_out_of_service


def left(paper, pool="a"):
    """Return how many nodes of a pool still serve."""
    return sum(paper.story(name).state == "production" for name, node in paper.nodes.items() if node.pool == pool)


def turn(paper, *, certify=False):
    """Let everything that is decided happen, and let checks pass, until nothing is decided any more."""
    for _ in range(12):
        made = paper.step()
        for name, story in paper.stories().items():
            if story.state != "production" or story.pending:
                paper.settle(name)
                paper.pass_all(name)
                if certify and story.state == "triage":
                    paper.say("certified", name)
        if not made:
            return


@pytest.mark.parametrize("certify", [False, True])
def test_a_driver_bug_does_not_empty_a_pool_within_a_week(paper, certify):
    names = [f"n{number:03}" for number in range(40)]
    for number, name in enumerate(names):
        paper.add(name, rack=f"r{number:03}")
    chance, refused = random.Random(7), []
    for _ in range(7 * 12):
        paper.later(hours=2)
        for name in names:
            if paper.story(name).state == "production" and chance.random() < 2 / 24:
                paper.fault(name, "gpu.xid.119", "gpu0")
        made = paper.step()
        refused += [one.causes[0].kind for one in made if one.remedy == "wait"]
        turn(paper, certify=certify)
        assert left(paper) >= 30
    assert refused, "and it is said why nothing more happens"


def test_a_pool_is_as_large_as_what_is_meant_to_serve(paper):
    for number in range(12):
        paper.add(f"n{number:02}", rack=f"r{number:02}")
    for number in range(36):
        paper.add(f"old{number:02}", ("retired", "onboard", "rma")[number % 3], rack=f"s{number:02}")
    for number in range(12):
        paper.later(minutes=61)
        paper.fault(f"n{number:02}", "gpu.xid.79")
        paper.step()
    assert left(paper) == 9, "25 % of 12"
    notes = {paper.story(f"n{number:02}").note for number in range(12)}
    assert any(note.startswith(("held back: 3 of 12 already out of pool a, 3 may be", "breaker")) for note in notes)


def out_in(paper, name, *states, then="gpu.bus.lost"):
    """Take a node out by a fault, and lead it through states as automation and certifications do."""
    paper.add(name, pool=name)
    paper.fault(name, "gpu.bus.lost", "gpu1")
    for state in states:
        for _ in range(6):
            if paper.story(name).state == state:
                break
            paper.settle(name)
            if state == "seatrial":
                paper.say("certified", name)
            elif paper.story(name).state == "production-reboot":
                paper.fault(name, then, "gpu1")
            paper.step()
        assert paper.story(name).state == state
        assert is_out_of_service(paper.policy, paper.story(name)), state


def test_a_node_counts_in_every_state_until_it_serves_again(paper):
    out_in(paper, "n1", "production-reboot", "draining", "triage", "rma", "seatrial")
    out_in(paper, "n2", "production-reboot", "draining", "triage", "seatrial", then="gpu.xid.79")


def test_a_node_that_a_person_takes_over_counts_as_automations_no_longer(paper):
    out_in(paper, "n1", "production-reboot", "draining", "triage")
    paper.say("move", "n1", to="retired", reason="sold")
    paper.step()
    assert not is_out_of_service(paper.policy, paper.story("n1"))
    out_in(paper, "n2", "production-reboot", "draining", "triage")
    paper.say("move", "n2", to="zap", reason="I take it")
    paper.step()
    assert paper.story("n2").state == "zap"
    assert not is_out_of_service(paper.policy, paper.story("n2"))


def test_what_a_person_takes_out_leaves_automation_its_room(paper):
    for number in range(4):
        paper.add(f"n{number}", rack=f"r{number}")
    paper.say("move", "n0", to="draining", reason="mine")
    paper.step()
    assert paper.story("n0").state == "draining"
    paper.fault("n1", "gpu.xid.79")
    paper.step()
    assert paper.story("n1").state == "production-reboot"
