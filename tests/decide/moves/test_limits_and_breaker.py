"""How much may happen at once, and what a wave does: held back with its reason, resumed, never replayed."""

from __future__ import annotations

import pytest

from assay.decide.state import decision_and_fault_entries
from assay.model.entries.faults import FaultClearedEntry


def out(made):
    return sorted(one.node for one in made if one.timing != "record" and one.rule != "held-back")


def fleet(paper, size=8, racks=4, pool="a"):
    for index in range(size):
        paper.add(f"{pool}{index}", pool=pool, rack=f"{pool}-r{index % racks}")
    return [f"{pool}{index}" for index in range(size)]


def test_a_rack_lends_two_nodes_and_the_third_says_why_it_waits(paper):
    fleet(paper, size=4, racks=1)
    fleet(paper, size=8, racks=4, pool="rest")
    generous = paper.policy.limits.model_copy(update={"pool_percent": 100})
    paper.policy = paper.policy.model_copy(update={"limits": generous})
    for name in ("a0", "a1", "a2"):
        paper.fault(name, "gpu.xid.79")
    made = paper.step()
    assert out(made) == ["a0", "a1"]
    (waits,) = [one for one in made if one.timing == "record"]
    assert (waits.node, waits.remedy, waits.to_state) == ("a2", "wait", "production-reboot")
    assert waits.blockers == ("held back: 2 of 4 already out in rack a-r0, 2 may be",)
    assert paper.story("a2").note.startswith("held back: 2 of 4")
    assert paper.step() == [], "it is said once"


def test_what_was_held_back_happens_when_there_is_room(paper):
    fleet(paper)
    for name in ("a0", "a4", "a1"):
        paper.fault(name, "gpu.xid.79")
    assert len(out(paper.step())) == 2, "25 % of 8"
    held = next(name for name, story in paper.stories().items() if story.note)
    done = next(name for name, story in paper.stories().items() if story.state == "production-reboot")
    paper.settle(done)
    paper.pass_all(done)
    paper.step()
    assert out(paper.step()) == [held]


def test_the_worst_goes_first_where_room_is_short(paper):
    fleet(paper, size=4)
    paper.fault("a0", "gpu.thermal")
    paper.later(minutes=1)
    paper.fault("a3", "gpu.xid.79")
    assert out(paper.step()) == ["a3"], "25 % of 4"


def test_a_pool_of_one_may_lend_its_one(paper):
    fleet(paper, size=1)
    paper.fault("a0", "gpu.xid.79")
    assert out(paper.step()) == ["a0"]


def test_nodes_that_wait_cordoned_count_as_out(paper):
    fleet(paper, size=4)
    for name in ("a0", "a1"):
        paper.jobs[name] = ("train",)
        paper.fault(name, "gpu.thermal")
        paper.step()
    assert [bool(paper.story(name).pending) for name in ("a0", "a1")] == [True, False]


def test_restarts_are_counted_over_the_fleet_and_an_hour(paper):
    for pool in "abcdefg":
        fleet(paper, size=1, pool=pool)
        paper.fault(f"{pool}0", "gpu.xid.79")
    assert len(out(paper.step())) == 6
    paper.later(minutes=50)
    assert out(paper.step()) == []
    paper.later(minutes=11)
    assert len(out(paper.step())) == 1


def test_failing_burn_ins_take_no_room_from_anybody(paper):
    fleet(paper, size=4)
    for index in range(6):
        paper.add(f"new{index}", "test", rack="r9")
        paper.fault(f"new{index}", "gpu.xid.48")
    paper.fault("a0", "gpu.xid.79")
    assert len(out(paper.step())) == 7


@pytest.mark.parametrize("fault", ["gpu.xid.79", "gpu.thermal", "psu.failed"])
def test_a_wave_holds_the_pool_within_one_pass_and_says_what_it_has_in_common(paper, fault):
    names = fleet(paper, size=12)
    for name in names[:5]:
        paper.fault(name, fault)
    paper.fault(names[0], "gpu.xid.79")
    made = paper.step()
    assert out(made) == []
    text = next(one.causes[0].text for one in made if one.remedy == "wait" and one.to_state != "production")
    assert text == f"breaker: 5 of 12 serving nodes of pool a show faults within 10 min ({fault} on 5, in 4 racks)"


def test_unlike_faults_at_once_are_said_to_have_no_kind_in_common(paper):
    names = fleet(paper, size=5)
    unlike = ["gpu.missing", "gpu.missing", "gpu.xid.79", "psu.failed", "gpu.xid.48"]
    for name, fault in zip(names, unlike, strict=True):
        paper.fault(name, fault)
    text = next(one.causes[0].text for one in paper.step() if one.remedy == "wait")
    assert "(4 kinds of fault, none on most of them: gpu.missing on 2, in" in text


def test_a_wave_of_one_pool_leaves_the_others_alone(paper):
    for name in fleet(paper, size=8)[:6]:
        paper.fault(name, "gpu.xid.79")
    fleet(paper, size=8, pool="b")
    paper.fault("b0", "gpu.xid.79")
    assert out(paper.step()) == ["b0"]


def test_nothing_is_replayed_when_the_wave_is_over(paper):
    names = fleet(paper)
    for name in names:
        paper.fault(name, "gpu.xid.79")
    paper.step()
    paper.later(hours=1)
    assert out(paper.step()) == []
    paper.fault("a0", "gpu.xid.79")
    assert out(paper.step()) == [], "the class came to all of them within six hours"
    paper.fault("a1", "gpu.xid.48")
    assert out(paper.step()) == ["a1"], "what is of another class is answered"


def held_by_checks(paper):
    """Trip the breaker of a pool by a fault that checks see on every node of it; return the faults by node."""
    marks = {"marks": {"check": paper.now.isoformat()}}
    told = {name: paper.fault(name, "gpu.thermal", **marks) for name in fleet(paper)}
    assert out(paper.step()) == []
    paper.later(hours=1)
    return told


def test_a_check_that_still_fails_after_the_wave_is_answered_on_its_new_evidence(paper):
    told = held_by_checks(paper)
    for name in list(told)[1:]:
        paper.judge(name, "production")
        paper.write(
            decision_and_fault_entries.make_cleared_entry(name, FaultClearedEntry(told[name], "passed"), paper.now)
        )
    assert out(paper.step()) == [], "nobody has looked at the first one since"
    paper.judge("a0", "production", "fail")
    assert out(paper.step()) == ["a0"]


def test_a_wave_that_lasts_stays_held_whoever_is_looked_at_first(paper):
    told = held_by_checks(paper)
    for name in told:
        paper.judge(name, "production", "fail")
        assert out(paper.step()) == []
    assert paper.story("a3").note.startswith("breaker: 8 of 8 serving nodes of pool a")
    paper.fault("a0", "gpu.xid.48")
    assert out(paper.step()) == ["a0"], "what is not of the wave is answered"
    for name, fault in list(told.items())[2:]:
        paper.write(decision_and_fault_entries.make_cleared_entry(name, FaultClearedEntry(fault, "passed"), paper.now))
    assert out(paper.step()) == ["a1"], "one of them is no wave"


def test_bringing_up_a_hall_of_faulty_nodes_trips_nothing(paper):
    fleet(paper, size=4)
    for index in range(40):
        paper.add(f"new{index}", "seatrial", rack="r9")
        paper.fault(f"new{index}", "gpu.missing")
    paper.fault("a0", "gpu.xid.79")
    assert out(paper.step()) == ["a0"]


def test_a_storm_of_application_faults_trips_nothing_and_moves_nobody(paper):
    for name in fleet(paper):
        paper.fault(name, "gpu.xid.45", count=21_000)
    made = paper.step()
    assert {(one.timing, one.remedy) for one in made} == {("record", "none")}


def test_a_held_node_is_reported_about_and_never_moved_until_it_is_released(paper):
    paper.add("n1")
    paper.say("hold", "n1", reason="bisecting a kernel bug")
    paper.fault("n1", "gpu.xid.79")
    (made,) = paper.step()
    assert (made.timing, made.causes[0].kind) == ("record", "person")
    assert made.causes[0].text == "held by ann: bisecting a kernel bug"
    assert paper.settle("n1") == []
    paper.say("release", "n1")
    assert out(paper.step()) == ["n1"]


def test_a_hold_that_lasts_is_brought_to_mind_every_three_days(paper):
    paper.add("n1")
    paper.say("hold", "n1", reason="bisecting")
    reminders = []
    for _ in range(8):
        paper.later(days=1)
        reminders += paper.step()
    assert [one.causes[0].text for one in reminders] == [
        "held by ann for 3 days: bisecting",
        "held by ann for 6 days: bisecting",
    ]
