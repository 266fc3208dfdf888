"""A drain that nobody can tell to be done is not taken for done: what follows waits for a person's word that it is."""

from __future__ import annotations

import pytest

from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.decide.trust.gate import list_trust_waits
from assay.model.specs.trust_rules import TRUSTED

SAID = "no scheduler places jobs on this node; whether a process holds a GPU is not known: no answer"


def owes(paper) -> list[str]:
    return [one.action for one in list_outstanding_effects(paper.policy, paper.story("n1"))]


def waits(paper):
    return list_trust_waits(paper.policy, TRUSTED, paper.story("n1"))


def drain_is_unknown(paper) -> str:
    """Let the cordon be verified, and the drain be unknown; return the decision that asks for both."""
    cordon, drain, *_ = list_outstanding_effects(paper.policy, paper.story("n1"))
    paper.effect("n1", "verified", cordon.decision, cordon.action)
    paper.effect("n1", "unknown", drain.decision, drain.action, SAID)
    paper.later(seconds=1)
    return drain.decision


@pytest.fixture
def dead(paper):
    """Add a node on which nothing places jobs and that does not answer, out of service for a reboot."""
    paper.add("n1")
    paper.jobs["n1"] = None
    paper.fault("n1", "gpu.xid.79", "gpu4")
    paper.step()
    assert owes(paper) == ["cordon", "drain-now", "collect", "reboot"]
    return paper


def test_the_reset_waits_and_status_says_for_whom_and_why(dead):
    decision = drain_is_unknown(dead)
    for _ in range(3):
        dead.later(hours=1)
        dead.step()
        assert owes(dead) == ["drain-now", "collect", "reboot"], "what was not proved is proved first"
    (wait,) = waits(dead)
    assert (wait.id, wait.kind, wait.actions) == (decision, "order", ("reboot",))
    assert (
        wait.text == f"drain-now is not known to be done: {SAID}; with a person's yes, reboot would go on without proof"
    )


def test_a_yes_from_before_does_not_count_and_a_no_takes_it_back(dead):
    decision = list_outstanding_effects(dead.policy, dead.story("n1"))[0].decision
    dead.say("approved", "n1", decision=decision, within_hours=0)
    drain_is_unknown(dead)
    assert owes(dead) == ["drain-now", "collect", "reboot"]
    dead.say("approved", "n1", decision=decision, within_hours=0)
    assert (owes(dead), waits(dead)) == (["collect", "reboot"], [])
    dead.say("declined", "n1", decision=decision, within_hours=0)
    assert owes(dead) == ["drain-now", "collect", "reboot"]


def test_the_drain_itself_is_never_verified_by_a_yes(dead):
    decision = drain_is_unknown(dead)
    dead.say("approved", "n1", decision=decision, within_hours=0)
    assert dead.settle("n1") == ["collect", "reboot"]
    drain = dead.story("n1").find_effect(decision, "drain-now")
    assert drain is not None
    assert drain.standing == "unknown"


@pytest.mark.parametrize(("now", "left"), [(True, ["collect", "reboot"]), (False, [])])
def test_an_order_goes_on_only_if_it_is_meant_for_a_node_with_jobs(paper, now: bool, left: list[str]):
    paper.add("n1")
    paper.jobs["n1"] = None
    paper.say("move", "n1", to="production-reboot", now=now)
    paper.step()
    if not now:
        pending = paper.story("n1").pending
        assert pending is not None
        assert pending.blockers == ("unknown: nothing tells which jobs run there",)
        return
    drain_is_unknown(paper)
    assert owes(paper) == left


def test_who_leaves_when_idle_leaves_with_a_persons_yes(paper):
    paper.add("n1", "production-reboot")
    paper.jobs["n1"] = None
    paper.fault("n1", "gpu.xid.79", "gpu4")
    paper.step()
    assert paper.story("n1").state == "draining"
    decision = drain_is_unknown(paper)
    paper.step()
    assert paper.story("n1").state == "draining"
    assert waits(paper)[0].text.endswith("it would leave draining without proof")
    paper.say("approved", "n1", decision=decision, within_hours=0)
    assert paper.settle("n1") == ["collect"]
    paper.step()
    assert paper.story("n1").state == "triage"
