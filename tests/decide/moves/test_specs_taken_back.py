"""A series whose faults one commit made, and another took back, needs no answer; one that comes and goes does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.decide.faults.recovery import find_clearances
from assay.decide.moves.held_answers import list_open_breakers
from assay.decide.state.decision_and_fault_entries import make_cleared_entry
from tests.decide.moves.test_series_of_faults import fleet, step

FAULT, CHECK = "inlet.out-of-range", "seatrial"
WIDE, TIGHT = "wide", "tight"


def judge(paper, name, verdict, judged_by):
    """Judge the inlet of a node by these limits; return the outcome."""
    paper.judge(name, CHECK, verdict)
    check = paper.checks[CHECK].id
    known = paper.outcomes[name][check]
    known = replace(known, outcome=replace(known.outcome, fault=FAULT, judged_by=judged_by))
    paper.outcomes[name][check] = known
    return known


def play(paper, *judged):
    """Let the same happen to five nodes, and end what ends; return how many are held back before and after it."""
    names = fleet(paper, 40)[:5]
    told = {name: [] for name in names}
    for verdict, judged_by in judged:
        paper.later(minutes=20)
        for name in names:
            told[name].append(judge(paper, name, verdict, judged_by))
            if verdict == "fail":
                paper.fault(name, FAULT, id=f"inlet-{name}", marks={"check": paper.now.isoformat()})
        step(paper)
    held = list_open_breakers(paper.stories().values())
    paper.later(minutes=20)
    for name in names:
        last = told[name][-1]
        story = paper.story(name)
        for ended in find_clearances(story, [last], lambda _, name=name: told[name]):
            paper.write(make_cleared_entry(name, ended, paper.now))
    assert not any(fault.is_open for name in names for fault in paper.story(name).faults)
    return held, list_open_breakers(paper.stories().values())


def test_a_series_ends_with_the_revert_of_the_commit_that_made_its_faults(paper):
    held, left = play(paper, ("pass", WIDE), ("fail", TIGHT), ("pass", WIDE))
    assert [each.series for each in held] == [f"a/{FAULT}"]
    assert left == []


@pytest.mark.parametrize(
    "judged",
    [
        pytest.param([("pass", WIDE), ("fail", WIDE), ("pass", WIDE)], id="it comes and goes by the same limits"),
        pytest.param([("pass", WIDE), ("fail", TIGHT), ("fail", WIDE), ("pass", WIDE)], id="it failed by both"),
        pytest.param([("fail", TIGHT), ("pass", WIDE)], id="nobody tried these limits before"),
        pytest.param([("pass", "other"), ("fail", TIGHT), ("pass", WIDE)], id="these limits are new too"),
    ],
)
def test_every_other_series_waits_for_a_person(paper, judged):
    held, left = play(paper, *judged)
    assert [each.series for each in left] == [each.series for each in held] == [f"a/{FAULT}"]
