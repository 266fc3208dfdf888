"""What a BMC's log keeps of a part ends with the proof that the part is mended, and with nothing less."""

from __future__ import annotations

from dataclasses import replace

from assay.decide.faults.recovery import find_clearances, find_ended_consequences

SUPPLY, EVENT = "psu.failed", "bmc.event.power-supply"


def end(paper, *, cause=SUPPLY, **event):
    """Let a supply fail, be told by the log of the BMC, and pass again; return the classes of what is over."""
    paper.add("n1")
    paper.fault("n1", cause, marks={"check": paper.now.isoformat()})
    paper.later(minutes=1)
    paper.fault("n1", EVENT, **{"marks": {"sel Sel": "7"}, "last_seen": paper.now.isoformat()} | event)
    paper.later(minutes=30)
    paper.judge("n1", "seatrial")
    known = paper.outcomes["n1"][paper.checks["seatrial"].id]
    passed = [replace(known, outcome=replace(known.outcome, fault=SUPPLY))]
    story = paper.story("n1")
    over = find_clearances(story, passed)
    over += find_ended_consequences(paper.catalog.fault_relations, story, over, passed)
    return {each.name.partition(" ")[0] for each in over}


def test_an_event_of_a_supply_is_over_once_the_supply_passes_again(paper):
    assert end(paper) == {SUPPLY, EVENT}


def test_an_event_that_came_after_the_pass_stays(paper):
    assert end(paper, last_seen="2099-01-01T00:00:00+00:00") == {SUPPLY}


def test_an_event_that_another_source_tells_too_stays(paper):
    assert end(paper, marks={"sel Sel": "7", "alertmanager": "x"}) == {SUPPLY}


def test_what_is_worse_than_its_cause_stays(paper):
    assert end(paper, severity="catastrophic") == {SUPPLY}


def test_an_event_of_something_else_stays(paper):
    assert end(paper, cause="fan.failed") == set()
