"""What a wrong clock dated admits nobody and ends no fault, and does not stay fresh for longer than its time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from assay.decide.faults.recovery import find_clearances
from assay.decide.moves.excused_failures import select_proving_outcomes
from assay.decide.moves.required_checks import judge_state_requirements

DAY = timedelta(days=1)


def lacks(paper) -> tuple[str, ...]:
    (judgement,) = judge_state_requirements(paper.situation(), paper.view("n1"))
    return judgement.missing


@pytest.fixture
def node(paper):
    paper.add("n1", "seatrial")
    paper.judge("n1", "seatrial")
    assert lacks(paper) == ()
    return paper


def dated_ahead(paper, phase: str) -> None:
    """Let the newest outcome be judged on evidence that says to be of tomorrow."""
    check = paper.checks[phase].id
    one, now = paper.outcomes["n1"][check], paper.now.isoformat()
    outcome = replace(one.outcome, evidence_at=(paper.now + DAY).isoformat())
    paper.outcomes["n1"][check] = replace(one, outcome=outcome, recorded_at=now)


def test_a_pass_on_evidence_of_tomorrow_admits_nobody_neither_today_nor_tomorrow(node):
    dated_ahead(node, "seatrial")
    for _ in range(3):
        (lack,) = lacks(node)
        assert "is dated ahead (2026-11-22T12:00:0" in lack
        assert "how old it is cannot be told" in lack
        node.later(days=1)


def test_after_the_clock_was_set_back_what_was_judged_before_admits_nobody(node):
    node.later(hours=-1)
    (lack,) = lacks(node)
    assert "dated ahead" in lack
    node.judge("n1", "seatrial")
    assert lacks(node) == ()


def test_a_pass_that_is_dated_ahead_ends_no_fault(paper):
    paper.add("n1")
    fault = paper.fault("n1", "gpu.thermal", marks={"check": paper.now.isoformat()})
    paper.later(hours=1)
    paper.judge("n1", "production")
    latest = list(paper.outcomes["n1"].values())
    assert [one.fault for one in find_clearances(paper.story("n1"), select_proving_outcomes(latest, ()))] == [fault]
    dated_ahead(paper, "production")
    latest = list(paper.outcomes["n1"].values())
    assert find_clearances(paper.story("n1"), select_proving_outcomes(latest, ())) == []
