"""A node that somebody else drained or cordoned is left alone: assay says what it would do, and waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.decide.moves.decide import decide
from assay.tell.views.next_step import find_next_step

FANS = "bob: fans"


def closed(reason, name="n1"):
    """Return `decide` for a fleet in which somebody else closed a node."""

    def decide_closed(snapshot):
        views = (replace(one, foreign_cordon=reason if one.name == name else "") for one in snapshot.nodes)
        return decide(replace(snapshot, nodes=tuple(views)))

    return decide_closed


@pytest.mark.parametrize("fault", ["gpu.xid.62", "gpu.xid.79", "gpu.xid.119"])
def test_a_node_under_a_persons_hands_is_not_restarted(paper, fault):
    paper.add("n1")
    paper.fault("n1", fault)
    (made,) = paper.step(closed(FANS))
    assert (made.timing, made.remedy, made.causes[0].kind) == ("record", "wait", "foreign")
    assert made.causes[0].text.startswith("closed by others (bob: fans): assay waits, and would go to production-")
    assert paper.story("n1").note.startswith("closed by others (bob: fans)")
    assert paper.step(closed(FANS)) == [], "it is said once"
    assert paper.settle("n1") == [], "and nothing is done"


def test_a_wait_for_others_is_told_again_and_ends_with_their_drain(paper):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79")
    told = []
    for _ in range(3):
        told += paper.step(closed(FANS))
        paper.later(hours=25)
    assert len(told) == 3
    assert "assay waits for 50 h" in told[-1].causes[0].text or "assay waits for 2 d" in told[-1].causes[0].text
    assert [one.to_state for one in paper.step()] == ["production-reboot"]


def test_a_rule_that_names_the_reason_overrules_it(paper):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79")
    named = paper.policy.cordons.model_copy(update={"overrule": ["bob: *"]})
    paper.policy = paper.policy.model_copy(update={"cordons": named})
    assert [one.timing for one in paper.step(closed(FANS))] == ["immediate"]


@pytest.mark.parametrize("reason", ["Kill task failed", "DOWN in Slurm: Not responding", "Prolog error"])
def test_what_slurm_itself_drained_is_repaired(paper, reason):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79")
    assert [one.timing for one in paper.step(closed(reason))] == ["immediate"]


def test_a_persons_order_goes_on(paper):
    paper.add("n1")
    paper.say("move", "n1", to="zap", reason="new BIOS, bob knows")
    assert [one.to_state for one in paper.step(closed(FANS))] == ["draining"]


def test_a_failed_burn_in_under_a_drain_of_others_still_goes_to_triage(paper):
    paper.add("n1", "test")
    paper.fault("n1", "gpu.xid.48")
    assert [one.to_state for one in paper.step(closed(FANS))] == ["triage"], "it disturbs nobody"


def test_no_flash_begins_under_a_drain_of_others(paper):
    paper.add("n1", "seatrial")
    paper.judge("n1", "seatrial")
    (made,) = paper.step(closed(FANS))
    assert (made.timing, made.causes[0].kind, made.to_state) == ("record", "foreign", "zap")


@pytest.mark.parametrize(
    ("patterns", "timing"),
    [
        (["tainted dedicated=*"], "record"),
        (["tainted maintenance*"], "record"),
        (["tainted dedicated=*", "tainted maintenance*"], "immediate"),
    ],
)
def test_each_taint_must_be_overruled_by_itself(paper, patterns, timing):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79")
    named = paper.policy.cordons.model_copy(update={"overrule": patterns})
    paper.policy = paper.policy.model_copy(update={"cordons": named})
    both = "tainted dedicated=gpu:NoSchedule; tainted maintenance:NoExecute"
    assert [one.timing for one in paper.step(closed(both))] == [timing]


def test_the_next_step_says_who_closed_it_and_no_fault_again(paper):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79")
    paper.step(closed(FANS))
    step = find_next_step(paper.story("n1"), paper.policy, {})
    assert step.who == "whoever closed the node"
    assert step.detail.startswith("closed by others (bob: fans): assay waits")
    assert "gpu.xid.79" in paper.story("n1").note
    assert "gpu.xid.79" not in step.line
