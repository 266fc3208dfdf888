"""The breaker counts by arrival, over minutes and hours. What it holds is cordoned, told, and answered in the end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from assay.decide.moves import decide as deciding
from assay.decide.moves.held_answers import list_open_breakers
from assay.decide.state import decision_and_fault_entries
from assay.model.entries.faults import FaultClearedEntry
from assay.model.timestamps import format_time


def fleet(paper, size=20):
    names = [f"n{number:02}" for number in range(size)]
    for number, name in enumerate(names):
        paper.add(name, rack=f"r{number:02}")
    return names


def states(paper):
    return {story.state for story in paper.stories().values()}


@pytest.mark.parametrize("minutes", [0, 9, 11, 20, 60, 600])
def test_a_wave_that_is_read_late_is_a_wave(paper, minutes):
    seen = format_time(paper.now - timedelta(minutes=minutes))
    for name in fleet(paper):
        paper.fault(name, "gpu.xid.119", first_seen=seen, last_seen=seen)
    made = paper.step()
    assert states(paper) == {"production"}
    assert any(one.causes[0].kind == "breaker" for one in made)


def test_what_is_held_is_cordoned_as_far_as_limits_allow(paper):
    for name in fleet(paper):
        paper.fault(name, "gpu.xid.119")
    paper.step()
    closed = [name for name in paper.nodes if paper.settle(name) == ["cordon"]]
    assert len(closed) == 2, "half of 25 % of 20"
    assert all(paper.story(name).pending.rule == "held-back" for name in closed)
    assert paper.step() == [], "it is said once"


def test_a_cordon_of_what_was_held_ends_when_the_fault_is_over(paper):
    told = {name: paper.fault(name, "gpu.thermal", marks={"check": paper.now.isoformat()}) for name in fleet(paper)}
    paper.step()
    closed = [name for name in paper.nodes if paper.story(name).pending]
    assert closed
    for name, fault in told.items():
        paper.settle(name)
        paper.write(decision_and_fault_entries.make_cleared_entry(name, FaultClearedEntry(fault, "passed"), paper.now))
    made = paper.step()
    assert sorted(one.node for one in made if one.remedy == "withdraw") == closed
    assert all(paper.settle(name) == ["uncordon"] for name in closed)


def test_what_only_a_log_told_is_answered_after_a_day_at_the_limits_pace(paper):
    for name in fleet(paper):
        paper.fault(name, "gpu.xid.119")
    paper.step()
    paper.later(hours=23)
    paper.step()
    assert states(paper) == {"production"}
    paper.later(hours=2)
    paper.step()
    assert [story.state for story in paper.stories().values()].count("production-gpu-reset") == 5, "25 % of 20"


def test_what_is_held_is_told_again_each_day(paper):
    paper.policy = paper.policy.model_copy(
        update={"breaker": paper.policy.breaker.model_copy(update={"held_hours": 1000})}
    )
    for name in fleet(paper):
        paper.fault(name, "gpu.xid.119")
    paper.step()
    paper.later(hours=25)
    reminders = [one for one in paper.step() if one.rule == "still-waiting"]
    assert len(reminders) == 2
    assert reminders[0].causes[0].text.startswith("has waited 25 h to be answered, for breaker: 20 of 20")


def test_a_reminder_holds_nothing_back_again_that_a_person_cleared(paper):
    names = fleet(paper)
    for name in names:
        paper.fault(name, "gpu.xid.119")
    paper.step()
    waiting = [name for name in names if paper.story(name).pending]
    for name in names:
        paper.say("breaker.cleared", name, pool="a")
    paper.later(hours=25)
    told = paper.step(lambda snapshot: [one for one in deciding.decide(snapshot) if one.rule == "still-waiting"])
    assert [one.node for one in told] == waiting
    assert {fault.response for name in names for fault in paper.story(name).faults} == {""}
    assert list_open_breakers(paper.stories().values()) == []


def test_one_class_on_many_nodes_within_hours_is_a_wave_of_that_class(paper):
    names = fleet(paper, 40)
    for name in names[:3]:
        paper.fault(name, "gpu.xid.79")
        paper.later(minutes=61)
        paper.step()
        paper.settle(name)
        paper.pass_all(name)
        paper.step()
    paper.fault(names[3], "gpu.xid.79")
    (held,) = [one for one in paper.step() if one.timing == "record"]
    assert held.causes[0].text.startswith("breaker: 4 of 40 serving nodes of pool a showed gpu.xid.79 within 6 h")
    paper.fault(names[4], "gpu.xid.48")
    assert [one.node for one in paper.step() if one.timing == "immediate"] == [names[4]]


@pytest.mark.parametrize("drift", ["firmware.drift", "host.config.drift"])
def test_declared_drift_opens_no_breaker(paper, drift):
    names = fleet(paper, 8)
    for name in names:
        paper.fault(name, drift)
    paper.fault(names[0], "gpu.xid.79")
    assert [one.node for one in paper.step() if one.timing == "immediate"] == [names[0]]


def test_a_node_that_waits_for_its_turn_to_restart_is_cordoned_meanwhile(paper):
    for pool in "abcdefgh":
        paper.add(f"{pool}0", pool=pool, rack=f"r{pool}")
        paper.fault(f"{pool}0", "gpu.xid.79")
    paper.step()
    waiting = [name for name in paper.nodes if paper.story(name).state == "production"]
    assert len(waiting) == 2
    assert all(paper.settle(name) == ["cordon"] for name in waiting)
    paper.later(minutes=61)
    paper.step()
    assert states(paper) == {"production-reboot"}


def come_and_be_repaired(paper, names, hours, fault="gpu.xid.79"):
    """Let a node after another fail and be repaired, `hours` apart; return the nodes whose answer was held back."""
    held = []
    for name in names:
        paper.fault(name, fault)
        made = paper.step()
        held += [one.node for one in made if one.timing == "record" and one.causes[0].kind == "breaker"]
        paper.settle(name)
        paper.later(minutes=30)
        paper.pass_all(name)
        paper.step()
        paper.later(hours=hours - 0.5)
    return held


@pytest.mark.parametrize(
    ("size", "hours", "window", "first"),
    [
        (40, 1.4, 6, 4),  # 10 % of 40 are 4
        (50, 1.1, 6, 5),  # 10 % of 50 are 5
        (120, 27, 168, 6),  # 5 % of 120 are 6, and one fault in 27 h is never 4 in 6 h
        (20, 23, 168, 6),  # 5 % of 20 is 1, but at least 6
        (200, 12, 168, 10),  # 5 % of 200 are 10
    ],
)
def test_each_window_of_a_class_opens_at_its_share_and_no_sooner(paper, size, hours, window, first):
    names = fleet(paper, size)
    (held,) = come_and_be_repaired(paper, names[:first], hours)
    assert held == names[first - 1]
    story = paper.story(held)
    assert story.breaker_reason.startswith(
        f"breaker: {first} of {size} serving nodes of pool a showed gpu.xid.79 within {window} h"
    )


@pytest.mark.parametrize(("size", "hours", "first"), [(40, 2.1, 4), (30, 34, 6), (40, 34, 8)])
def test_what_comes_more_slowly_than_a_window_is_no_wave(paper, size, hours, first):
    assert come_and_be_repaired(paper, fleet(paper, size)[:first], hours) == []


@pytest.mark.parametrize(("minutes", "states_after"), [(9, {"production"}), (11, {"production-reboot"})])
def test_the_short_window_ends_after_its_minutes(paper, minutes, states_after):
    names = fleet(paper, 20)
    for name, fault in zip(names[:3], ("gpu.xid.48", "gpu.xid.119", "gpu.xid.62"), strict=True):
        paper.say("hold", name)
        paper.fault(name, fault)
        paper.step()
    paper.later(minutes=minutes)
    paper.fault(names[3], "gpu.xid.79")
    paper.step()
    assert {paper.story(names[3]).state} == states_after
