"""A series: one class on many nodes within a week. It is told as one, and repaired by nobody until a person answers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from assay.decide.moves import decide as deciding
from assay.decide.moves.held_answers import find_nodes_to_clear, list_open_breakers
from assay.decide.state import decision_and_fault_entries
from assay.model.entries.faults import FaultClearedEntry
from assay.model.timestamps import format_time

XID = "gpu.xid.79"


def fleet(paper, size=40, **more):
    names = [f"n{number:03}" for number in range(size)]
    for number, name in enumerate(names):
        paper.add(name, rack=f"r{number:03}", **more)
    return names


def step(paper, traits=None):
    """Decide once, with these traits of each node."""
    known = {"traits": traits or {}, "pools": {name: node.pool for name, node in paper.nodes.items()}}
    return paper.step(lambda snapshot: deciding.decide(replace(snapshot, **known)))


def come(paper, names, hours, fault=XID, traits=None):
    """Let one node after the other fail and be repaired, `hours` apart; return those whose answer was held back."""
    held = []
    for name in names:
        ident = paper.fault(name, fault)
        made = step(paper, traits)
        held += [one.node for one in made if one.remedy == "wait" and one.causes[0].kind == "breaker"]
        paper.settle(name)
        paper.later(minutes=30)
        paper.pass_all(name)
        step(paper, traits)
        if name in held:
            end(paper, name, ident)
        paper.later(hours=hours - 0.5)
    return held


def end(paper, name, ident):
    """Let a fault end by itself."""
    paper.write(decision_and_fault_entries.make_cleared_entry(name, FaultClearedEntry(ident, "gone"), paper.now))


def clear(paper, **more):
    week_ago = format_time(paper.now - timedelta(days=7))
    for node_state in find_nodes_to_clear(paper.stories().values(), "a", week_ago):
        paper.say("breaker.cleared", node_state.node, pool="a", **more)


def opened(paper):
    return list_open_breakers(paper.stories().values())


def test_a_series_stays_one_with_new_members_until_a_person_answers(paper):
    names = fleet(paper)
    assert come(paper, names[:10], 20) == names[5:10]
    for name in names[10:14]:
        paper.later(days=20)
        assert come(paper, [name], 20) == [name], "it is still the same, weeks after the last one"
    (series,) = opened(paper)
    assert (series.series, series.nodes) == (f"a/{XID}", tuple(names[5:14]))
    assert series.reason.startswith(f"breaker: at least 9 of 40 serving nodes of pool a showed {XID} within ")
    assert series.clear == f"assay breaker clear a --class {XID} --reason '…'"
    clear(paper, fault_class=XID)
    assert opened(paper) == []
    assert come(paper, names[20:26], 20) == names[25:26], "what came before the answer counts no more"


def test_what_only_a_log_told_is_not_repaired_after_a_day_but_after_a_persons_yes(paper):
    names = fleet(paper)
    come(paper, names[:5], 20)
    paper.fault(names[5], XID)
    for _ in range(40):
        assert not [one for one in step(paper) if one.timing == "immediate"]
        paper.later(days=1)
    clear(paper)
    assert [one.to_state for one in step(paper) if one.timing == "immediate"] == ["production-reboot"]


def test_a_person_may_answer_one_class_and_leave_the_other(paper):
    names = fleet(paper)
    come(paper, names[:8], 10)
    come(paper, names[10:18], 10, "gpu.xid.95")
    assert [one.series for one in opened(paper)] == [f"a/{XID}", "a/gpu.xid.95"]
    clear(paper, fault_class=XID)
    assert [one.series for one in opened(paper)] == ["a/gpu.xid.95"]
    assert come(paper, [names[20]], 1) == []
    assert come(paper, [names[21]], 1, "gpu.xid.95") == [names[21]]


def test_another_class_is_repaired_meanwhile(paper):
    names = fleet(paper)
    come(paper, names[:8], 10)
    paper.fault(names[20], "gpu.xid.48")
    assert [one.node for one in step(paper) if one.timing == "immediate"] == [names[20]]


@pytest.mark.parametrize(("with_it", "held"), [(20, 1), (150, 0)])
def test_few_of_a_pool_are_many_of_one_firmware(paper, with_it, held):
    names = fleet(paper, 200)
    versions = ["driver 570.1" if number < with_it else "driver 570.0" for number in range(200)]
    traits = {name: frozenset({("firmware", version)}) for name, version in zip(names, versions, strict=True)}
    assert come(paper, names[:6], 20, traits=traits) == names[5:6][:held]
    if held:
        (series,) = opened(paper)
        assert series.series == f"a/{XID}/firmware driver 570.1"
        said = f"6 of 200 serving nodes of pool a showed {XID} within 168 h, all of firmware driver 570.1"
        rate = "the policy's 5 %, as 0 node-weeks of the pool's own history (0 weeks) teach no rate yet"
        assert series.reason == f"breaker: {said}; asked by {rate}"
        assert come(paper, [names[199]], 1, traits=traits) == [], "the others are repaired"
        assert come(paper, [names[7]], 1, traits=traits) == [names[7]]


def test_a_series_of_the_pool_takes_in_those_of_its_parts(paper):
    names = fleet(paper, 100)
    traits = {name: frozenset({("rack", f"lab1/r{number // 10}")}) for number, name in enumerate(names)}
    come(paper, names[:5], 1, traits=traits)
    assert [one.series for one in opened(paper)] == [f"a/{XID}/rack lab1/r0"]
    come(paper, names[10:50:4], 1, traits=traits)
    assert [one.series for one in opened(paper)] == [f"a/{XID}"]
    assert names[4] in opened(paper)[0].nodes


def test_tickets_are_a_series_too_and_no_node_is_closed_for_them(paper):
    names = fleet(paper)
    asked = []
    for name in names[:10]:
        paper.fault(name, "bmc.unhealthy", marks={"check": paper.now.isoformat()})
        asked += [one.node for one in step(paper) if one.remedy == "ticket"]
        paper.later(hours=10)
        step(paper)
    assert asked == names[:5]
    (series,) = opened(paper)
    assert (series.nodes, series.cordoned) == (tuple(names[:10]), ())
    assert {story.state for story in paper.stories().values()} == {"production"}
    clear(paper)
    assert [one.node for one in step(paper) if one.remedy == "ticket"] == names[:10]


def test_a_rack_that_is_one_machine_is_still_cordoned_whole(paper):
    for number in range(90):
        paper.add(f"n{number:03}", rack=f"r{number // 18}", kind="gb200-nvl72")
    traits = {name: frozenset({("rack", f"lab1/{node.rack}")}) for name, node in paper.nodes.items()}
    for number in range(5):
        paper.fault(f"n{number:03}", "gpu.missing", marks={"check": paper.now.isoformat()})
    made = step(paper, traits)
    assert {one.series for one in opened(paper)} == {"a/gpu.missing/rack lab1/r0"}
    for _ in range(2):
        made += step(paper, traits)
    waits = {one.node for one in made if one.rule.endswith("gb200-nvl72") or "lacks" in one.causes[0].text}
    assert len(waits) >= 13, "who is whole in it waits for the rack"
