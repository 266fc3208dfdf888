"""A rack that is one machine: with more than two of its eighteen nodes out, it is cordoned until it is whole."""

from __future__ import annotations

import pytest

from assay.decide.moves.cordons import find_rack_companions

WHOLE = 18
CATASTROPHIC = ("gpu.xid.79", "gpu.bus.lost")


def rack(paper, name="r1", size=WHOLE, state="production"):
    names = [f"{name}-{index:02}" for index in range(size)]
    for one in names:
        paper.add(one, state, rack=name, kind="gb200-nvl72")
    return names


def cordoned(made):
    return sorted(one.node for one in made if one.rule.startswith("racks.") and one.timing == "pending")


def broken(paper, *names):
    """Let nodes fail, without a wave: an hour lies between each and the next, and each fails in another way."""
    failed = sum(len(story.faults) for story in paper.stories().values())
    for number, name in enumerate(names, failed):
        paper.fault(name, CATASTROPHIC[number % len(CATASTROPHIC)])
        paper.step()
        paper.later(hours=1)


@pytest.fixture
def roomy(paper):
    limits = paper.policy.limits.model_copy(update={"pool_percent": 100})
    paper.policy = paper.policy.model_copy(update={"limits": limits})
    return paper


def test_two_nodes_out_leave_the_rack_alone_and_the_third_cordons_it(roomy):
    paper, names = roomy, rack(roomy)
    broken(paper, *names[:2])
    assert not any(story.pending for story in paper.stories().values())
    paper.fault(names[2], "gpu.xid.79")
    made = paper.step()
    assert cordoned(made) == names[2:], "the third waits for room, and is broken all the same"
    one = next(one for one in made if one.node == names[9])
    said = "rack r1 lacks 3 of 18 nodes, 2 may be out: "
    assert one.causes[0].kind == "rack"
    assert one.causes[0].id == "lab1/rack-r1"
    assert one.causes[0].text.startswith(said + f"{names[0]} (production-reboot), {names[1]} (production-reboot)")
    assert (one.from_state, one.to_state, one.rule) == ("production", "production", "racks.nvl72")
    assert one.blockers == (one.causes[0].text,)
    assert paper.settle(names[9]) == ["cordon"]
    assert paper.step() == [], "it is said once"


def test_a_node_keeps_its_jobs_and_is_uncordoned_when_the_rack_serves_again(roomy):
    paper, names = roomy, rack(roomy)
    paper.jobs[names[9]] = ("train",)
    broken(paper, *names[:3])
    assert paper.settle(names[9]) == ["cordon"]
    assert paper.story(names[9]).state == "production"
    for name in names[:2]:
        paper.settle(name)
        paper.pass_all(name)
    paper.later(minutes=1)
    made = [one for _ in range(3) for one in paper.step()]
    undone = [one for one in made if one.node == names[9]]
    assert [(one.remedy, one.causes[0].text) for one in undone] == [
        ("withdraw", "enough nodes of the rack serve again")
    ]
    assert paper.settle(names[9]) == ["uncordon"]
    paper.later(hours=1)
    broken(paper, *names[3:6])
    assert paper.story(names[9]).pending, "and cordoned again the next time"


def test_a_broken_node_of_a_cordoned_rack_still_goes_where_its_fault_sends_it(roomy):
    paper, names = roomy, rack(roomy)
    broken(paper, *names[:3])
    paper.settle(names[1])
    paper.pass_all(names[1])
    for _ in range(2):
        paper.step()
    assert paper.story(names[2]).state == "production-reboot", "there is room again"


def test_a_held_node_and_an_unmanaged_one_are_left_alone(roomy):
    paper, names = roomy, rack(roomy, size=16)
    for name in ("u0", "u1"):
        paper.add(name, rack="r1", kind="gb200-nvl72", profile="unmanaged")
    paper.say("hold", names[9])
    broken(paper, *names[:3])
    assert [bool(paper.story(name).pending) for name in (names[8], names[9], "u0")] == [True, False, False]


def test_only_so_many_racks_of_a_pool_are_cordoned_at_once(roomy):
    paper = roomy
    limits = paper.policy.limits.model_copy(update={"rack_concurrent": 4, "reboots_per_hour": 60})
    paper.policy = paper.policy.model_copy(update={"limits": limits})
    for number in range(3):
        broken(paper, *rack(paper, f"r{number}")[:3])
    stories = paper.stories()
    assert {name[:2] for name, story in stories.items() if story.pending} == {"r0", "r1"}
    assert stories["r2-17"].note.startswith("held back: 2 racks of pool a are cordoned already, 2 may be")


@pytest.fixture
def one_at_once(roomy):
    """A fleet of which one rack may be cordoned, and with room for everything else."""
    limits = roomy.policy.limits.model_copy(update={"rack_concurrent": 9, "reboots_per_hour": 60})
    racks = {"nvl72": roomy.policy.racks["nvl72"].model_copy(update={"at_once": 1})}
    roomy.policy = roomy.policy.model_copy(update={"limits": limits, "racks": racks})
    return roomy


def test_the_cordon_that_a_hold_has_kept_from_before_gives_a_rack_no_place_ahead_of_others(one_at_once):
    paper = one_at_once
    first, second = rack(paper, "r1"), rack(paper, "r2")
    broken(paper, *first[:3])
    paper.say("hold", first[9])
    for name in first[:3]:
        paper.settle(name)
        paper.pass_all(name)
        paper.step()
    broken(paper, *second[:3])
    assert {name[:2] for name, story in paper.stories().items() if story.pending} == {"r1", "r2"}
    assert [name for name in first if paper.story(name).pending] == [first[9]], "only what is held is as it was"
    broken(paper, *first[3:6])
    assert [name for name in first if paper.story(name).pending] == [first[9]]
    assert paper.story(first[17]).note.startswith("held back: 1 racks of pool a are cordoned already, 1 may be")
    for name in second[:3]:
        paper.settle(name)
        paper.pass_all(name)
        paper.step()
    waits = [name for name in first if paper.story(name).pending]
    assert waits == [*first[:3], *first[6:]], "its turn comes, whatever is held in it"


def test_a_rack_that_is_cordoned_while_it_is_brought_up_stays_so_when_it_loses_more(one_at_once):
    paper = one_at_once
    first, second = rack(paper, "r1", size=12), rack(paper, "r2")
    late = [f"r1-late{index}" for index in range(6)]
    for name in late:
        paper.add(name, "test", rack="r1", kind="gb200-nvl72")
    assert cordoned(paper.step()) == first
    broken(paper, *second[:3])
    assert set(second[3:]) <= {name for name, story in paper.stories().items() if story.pending}
    made = len(paper.log)
    broken(paper, *first[:3])
    assert all(paper.story(name).pending for name in first[3:])
    assert not [entry for entry in list(paper.log.values())[made:] if entry.kind == "decision.withdrawn"]
    paper.settle(first[0])
    paper.pass_all(first[0])
    paper.step()
    assert cordoned(paper.step()) == first[:1], "one that comes back waits with the others of its rack"


def test_a_rack_that_has_yet_to_be_brought_up_is_not_lost_and_takes_no_other_racks_place(roomy):
    paper = roomy
    for number in range(3):
        names = rack(paper, f"r{number}", state="test")
        for name in names[:4]:
            paper.add(f"{name}-in", rack=f"r{number}", kind="gb200-nvl72")
    assert {name[:2] for name in cordoned(paper.step())} == {"r0", "r1", "r2"}


def test_a_rack_of_other_nodes_is_no_machine(roomy):
    paper = roomy
    for index in range(WHOLE):
        paper.add(f"h{index:02}", rack="r1")
    broken(paper, "h00", "h01", "h02")
    assert not any(story.pending for story in paper.stories().values())


def test_a_wave_over_the_pool_cordons_no_rack(paper):
    names = rack(paper)
    for name in names[:6]:
        paper.fault(name, "gpu.xid.79")
    assert cordoned(paper.step()) == []


@pytest.mark.parametrize("cleared", [False, True])
def test_a_wave_of_one_class_cordons_no_rack_for_a_moment_until_a_person_clears_it(paper, cleared):
    names = [*rack(paper, "r1"), *rack(paper, "r2")]
    for name in names[:6]:
        paper.fault(name, "gpu.xid.79")
        paper.later(minutes=15)
    made = paper.step()
    assert {one.causes[0].kind for one in made if one.timing == "record"} == {"breaker"}
    if cleared:
        for name in names[:6]:
            paper.say("breaker.cleared", name, pool="a")
    rest = [*made, *paper.step()] if not cleared else paper.step()
    assert bool(cordoned(rest)) is cleared
    assert [one.node for one in rest if one.remedy == "withdraw"] == []


def test_companions_are_the_nodes_of_the_same_machine(roomy):
    paper = roomy
    names = rack(paper)
    paper.add("h00", rack="r2")
    paper.add("h01", rack="r2")
    nodes = paper.nodes
    assert find_rack_companions(paper.policy, nodes.values(), [nodes[names[0]], nodes["h00"]]) == set(names)
    assert find_rack_companions(paper.policy, nodes.values(), [nodes["h00"]]) == set()
