"""A person clears the breaker, and what it held is answered within the limits. Who found no room is cordoned later."""

from __future__ import annotations

import pytest

from assay.decide.moves.held_answers import find_nodes_to_clear, list_open_breakers
from assay.decide.state import decision_and_fault_entries
from assay.model.entries.faults import FaultClearedEntry


def fleet(paper, size=20, pool="a"):
    names = [f"{pool}{number:02}" for number in range(size)]
    for number, name in enumerate(names):
        paper.add(name, pool=pool, rack=f"r{pool}{number:02}")
    return names


def wave(paper, fault="gpu.bus.lost", **more):
    names = fleet(paper, **more)
    for name in names:
        paper.fault(name, fault)
    paper.step()
    return names


def clear(paper, pool="a", since=""):
    cleared = find_nodes_to_clear(paper.stories().values(), pool, since)
    for node_state in cleared:
        paper.say("breaker.cleared", node_state.node, pool=pool)
    return [one.node for one in cleared]


def states(paper):
    return [story.state for story in paper.stories().values()]


def closed(paper):
    return [name for name in paper.nodes if paper.story(name).pending]


def test_what_is_held_is_listed_with_its_reason_and_what_is_cordoned(paper):
    names = wave(paper)
    fleet(paper, 3, pool="b")
    (held,) = list_open_breakers(paper.stories().values())
    assert (held.pool, held.nodes, list(held.cordoned)) == ("a", tuple(names), closed(paper))
    assert held.reason.startswith("breaker: 20 of 20 serving nodes of pool a show faults within 10 min")
    assert held.clear == "assay breaker clear a --reason '…'"
    assert paper.now.isoformat()[:16] == held.since[:16]


@pytest.mark.parametrize("fault", ["gpu.bus.lost", "gpu.xid.79"])
def test_what_was_held_is_answered_at_the_limits_pace_once_a_person_clears_it(paper, fault):
    names = wave(paper, fault)
    assert paper.step() == [], "nothing goes on by itself"
    assert clear(paper) == names
    made = [one for one in paper.step() if one.timing == "immediate"]
    assert len(made) == 5, "25 % of 20"
    assert states(paper).count("production-reboot") == 5
    assert not list_open_breakers(paper.stories().values())
    assert paper.story(names[-1]).note.startswith("held back: 5 of 20 already out"), "a limit, and no wave, holds it"
    for _ in range(4):
        for name in names:
            paper.settle(name)
            paper.later(minutes=15)
            paper.pass_all(name)
            paper.step()
    assert states(paper) == ["production"] * 20
    assert all(any(one.target == "production-reboot" for one in paper.story(name).transitions) for name in names)


def test_the_ledger_says_who_cleared_it_and_why(paper):
    names = wave(paper)
    for name in names:
        paper.say("breaker.cleared", name, pool="a", who="ann", reason="the leaf is mended")
    assert {paper.story(name).note for name in names} == {"ann cleared the breaker: the leaf is mended"}


def test_faults_of_a_check_are_answered_too(paper):
    names = fleet(paper)
    for name in names:
        paper.judge(name, "production", "fail")
        paper.fault(name, "gpu.thermal", marks={"check": paper.now.isoformat()})
    paper.step()
    assert states(paper) == ["production"] * 20
    clear(paper)
    for name in names:
        paper.judge(name, "production", "fail")
    paper.step()
    assert states(paper).count("draining") == 5


def test_the_next_wave_opens_it_again_and_may_be_cleared_again(paper):
    names = wave(paper, size=40)
    clear(paper)
    paper.step()
    assert states(paper).count("production-reboot") == 6, "restarts in an hour"
    paper.later(minutes=61)
    for name in names[30:]:
        paper.fault(name, "gpu.xid.48")
    paper.step()
    assert states(paper).count("production-reboot") == 6, "a new wave holds everything, also what was cleared"
    assert len(list_open_breakers(paper.stories().values())[0].nodes) == 34
    clear(paper)
    paper.step()
    assert states(paper).count("production-reboot") == 10, "25 % of 40"


def test_what_was_cleared_is_free_again_when_a_later_wave_is_over(paper):
    names = wave(paper, size=40)
    clear(paper)
    paper.later(minutes=61)
    told = [paper.fault(name, "gpu.xid.48") for name in names[30:]]
    paper.step()
    assert "production-reboot" not in states(paper)
    for name, fault in zip(names[30:], told, strict=True):
        paper.write(decision_and_fault_entries.make_cleared_entry(name, FaultClearedEntry(fault, "over"), paper.now))
    paper.later(minutes=11)
    paper.step()
    assert states(paper).count("production-reboot") == 6


def test_one_fault_after_a_cleared_wave_is_no_wave(paper):
    names = wave(paper)
    told = {name: paper.story(name).faults[0].id for name in names}
    clear(paper)
    for name in names[1:]:
        paper.write(
            decision_and_fault_entries.make_cleared_entry(name, FaultClearedEntry(told[name], "over"), paper.now)
        )
    paper.fault(names[1], "gpu.xid.119", "gpu3")
    assert {one.node for one in paper.step() if one.timing == "immediate"} == set(names[:2])


def test_other_pools_are_not_cleared(paper):
    wave(paper)
    wave(paper, pool="b")
    clear(paper)
    paper.step()
    assert {name[0] for name, story in paper.stories().items() if story.state != "production"} == {"a"}


def test_missed_deadlines_that_it_held_are_answered_too(paper):
    for number in range(10):
        paper.add(f"n{number}", "zap", rack=f"r{number}")
    paper.later(hours=7)
    paper.step()
    assert states(paper) == ["zap"] * 10
    (held,) = list_open_breakers(paper.stories().values())
    assert len(held.nodes) == 10
    assert "miss their deadline at once" in held.reason
    clear(paper)
    paper.step()
    assert states(paper) == ["zapfail"] * 10


def test_who_found_no_room_at_first_is_cordoned_when_there_is_some(paper):
    names = wave(paper)
    first = closed(paper)
    assert len(first) == 2, "half of 25 % of 20"
    for name in first:  # repaired by hand
        paper.settle(name)
        paper.say("certified", name)
    paper.step()
    assert closed(paper) == []
    paper.step()
    later = closed(paper)
    assert len(later) == 2
    assert not set(first) & set(later)
    assert all(paper.settle(name) == ["cordon"] for name in later)
    assert all(paper.story(name).pending.because[0].text.startswith("breaker: 20 of 20") for name in later)
    assert {paper.story(name).state for name in names} == {"production"}


def test_other_faults_have_the_room_first(paper):
    names = fleet(paper)
    for name in names[:10]:
        paper.fault(name, "gpu.xid.119")
    paper.step()
    first = closed(paper)
    for name in first:
        paper.say("certified", name)
    paper.later(minutes=11)  # the wave is over, its faults are not
    for name in names[10:13]:
        paper.fault(name, "gpu.xid.79")
    paper.step()
    assert {name for name in names if paper.story(name).state != "production"} == set(names[10:13])
    assert closed(paper) == [], "3 are out, half of 5 is 2"


def test_a_person_who_opens_a_held_node_has_it_open(paper):
    wave(paper)
    first = closed(paper)
    for name in first:
        paper.say("decision.withdrawn", name, decision=paper.story(name).pending.decision)
    paper.step()
    assert not set(first) & set(closed(paper))
