"""What is collected before a restart comes before it; whether that succeeds or fails, the repair goes on."""

from __future__ import annotations

import pytest

from assay.decide.state.outstanding_effects import list_outstanding_effects


def owed(paper) -> list[tuple[str, str]]:
    return [(one.action, one.decision) for one in list_outstanding_effects(paper.policy, paper.story("n1"))]


def go_to(paper, action: str) -> str:
    """Let a node that fell ill get as far as an action; return the decision that asks for it."""
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79")
    paper.step()
    while owed(paper)[0][0] != action:
        paper.effect("n1", "verified", owed(paper)[0][1], owed(paper)[0][0])
    return owed(paper)[0][1]


def test_it_comes_after_the_jobs_have_ended_and_before_the_reboot(paper) -> None:
    go_to(paper, "cordon")
    assert [action for action, _ in owed(paper)] == ["cordon", "drain-now", "collect", "reboot"]


@pytest.mark.parametrize("standing", ["verified", "failed"])
def test_the_reboot_follows_and_the_node_serves_again_once_it_has_passed(paper, standing: str) -> None:
    decision = go_to(paper, "collect")
    paper.effect("n1", standing, decision, "collect", "the disk is full")
    assert [action for action, _ in owed(paper)] == ["reboot"]
    paper.step()
    assert paper.story("n1").state == "production-reboot", "a failure to look is no failure of the repair"
    paper.effect("n1", "verified", decision, "reboot")
    paper.later(minutes=3)
    for phase in ("test", "production"):
        paper.judge("n1", phase, "pass")
    paper.step()
    assert paper.story("n1").state == "production"


def test_another_action_that_fails_still_ends_the_stay(paper) -> None:
    decision = go_to(paper, "reboot")
    paper.effect("n1", "failed", decision, "reboot", "no new boot")
    paper.step()
    assert paper.story("n1").state == "draining"
