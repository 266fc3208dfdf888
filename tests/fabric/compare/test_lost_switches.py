"""A switch, or a part of a box, that answers and lost most of its cables is one fault, whatever its plugs are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.discovery import DiscoveredDevice, FabricDiscovery
from tests.fabric.directors import LEAVES, SPINES, director
from tests.support.fabrics.fat_trees import as_built, edge, fat_tree, fat_trees, in_reach


def cables_of(plan, *names):
    return [cable for cable in as_built(plan) if {plan.devices[port.guid].name for port in cable[:2]} & {*names}]


def faults_without(plan, lost, slow=()):
    """The faults of a fabric in which every device answers: title, and the number of cables of each."""
    gone, slower = set(map(edge, lost)), set(map(edge, slow))
    cables = [
        one._replace(rate="1xNDR") if edge(one) in slower else one for one in as_built(plan) if edge(one) not in gone
    ]
    devices = {guid: DiscoveredDevice(guid, d.kind, d.ports, d.description) for guid, d in plan.devices.items()}
    found = compare_cabling(plan, FabricDiscovery(cables, devices)).list_faults()
    return [(one.title, len(one.members)) for one in found]


@given(fat_trees(), st.data())
def test_half_of_a_switch_s_cables_or_more_is_one_fault_of_the_switch(plan, data):
    name = data.draw(st.sampled_from(sorted(device.name for device in plan if device.kind == "switch")))
    own = data.draw(st.permutations(cables_of(plan, name)))
    least = max((len(own) + 1) // 2, 4)
    lost = own[: data.draw(st.integers(least, max(len(own) - 1, least)))]
    if len(lost) < len(own):
        assert faults_without(plan, lost) == [(f"No link: {len(lost)} cables of {name}", len(lost))]


def test_slow_and_lost_cables_of_a_spine_are_one_fault():
    plan = fat_tree(units=2, nodes=4, rails=4, spines=4, pair=2)
    own = cables_of(plan, "spine-0-1")
    assert faults_without(plan, own[:5], own[5:14]) == [("Bad links: 14 cables of spine-0-1", 14)]
    assert faults_without(plan, [], own) == [("Slow links: 16 cables of spine-0-1", 16)]


def test_two_spines_are_two_faults():
    plan = fat_tree(units=2, nodes=4, rails=4, spines=4, pair=2)
    lost = [cable for name in ("spine-0-1", "spine-0-2") for cable in cables_of(plan, name)[1:]]
    assert faults_without(plan, lost) == [(f"No link: 15 cables of spine-0-{number}", 15) for number in (1, 2)]


@pytest.mark.parametrize(("plugs", "faults"), [(3, 3), (4, 1), (7, 1)])
def test_many_plugs_of_a_switch_are_one_fault_and_few_are_not(plugs, faults):
    plan = fat_tree(units=4, nodes=4, rails=4, spines=4, pair=2)
    assert len(faults_without(plan, cables_of(plan, "spine-0-1")[: 2 * plugs])) == faults


def test_many_adapters_of_a_node_are_one_fault():
    plan = fat_tree(units=1, nodes=4, rails=8, spines=4, pair=1)
    lost = [cable for cable in as_built(plan) if plan.devices[cable.a.guid].node == "n002"][:5]
    assert faults_without(plan, lost) == [("No link: 5 cables of n002", 5)]


@pytest.mark.parametrize(
    ("chips", "part", "kept"),
    [
        (LEAVES[:2], "dir L1", 1), (LEAVES[:2], "dir L1", 2), ((*LEAVES, *SPINES), "dir", 1),
        (LEAVES[:1], LEAVES[0], 1), (LEAVES[:1], LEAVES[0], 2),
    ],
)  # fmt: skip
def test_a_card_or_a_box_that_lost_nearly_all_of_its_links_is_one_fault(chips, part, kept):
    """One chip of the card, or several of the box, have no link left: they do not answer."""
    plan = director()
    lost = cables_of(plan, *chips)[:-kept]
    ((title, _),) = faults_without(plan, lost)
    assert title == f"No link: {len(lost)} cables of {part}"


def test_half_of_a_leaf_s_uplinks_are_one_fault_however_few():
    plan = fat_tree(units=2, nodes=9, rails=2, spines=6, pair=1)
    up = [cable for cable in cables_of(plan, "leaf-0-1") if not plan.devices[cable.a.guid].node]
    assert faults_without(plan, up[:3]) == [("No link: 3 cables of leaf-0-1", 3)]
    assert len(faults_without(plan, up[:2])) == 2


def test_the_nodes_of_a_unit_that_lack_a_rack_are_one_fault_if_they_are_many():
    plan = fat_tree(units=2, nodes=6, rails=3, spines=2, pair=3)
    rackless = CompiledTopology("t", [d._replace(rack="") if d.node else d for d in plan], plan.links)

    def dead(*numbers):
        gone = {d.guid for d in plan if d.node in {f"n0{number:02}" for number in numbers}}
        seen = in_reach(rackless, [cable for cable in as_built(plan) if not {cable.a.guid, cable.b.guid} & gone])
        return [fault.title for fault in compare_cabling(rackless, seen).list_faults()]

    assert dead(0, 2, 3, 5) == ["4 nodes below leaf-0-0 not in the fabric"]
    assert len(dead(0, 2, 3)) == 3
    assert len(dead(0, 2, 6, 8)) == 4


def test_all_cables_between_two_switches_are_a_fault_between_them_though_they_are_half_of_one():
    plan = fat_tree(units=2, nodes=4, rails=3, spines=2, pair=4)
    trunk = [c for c in cables_of(plan, "leaf-0-1") if plan.devices[c.b.guid].name == "spine-0-1"]
    assert faults_without(plan, trunk) == [("No link: all 4 cables between leaf-0-1 and spine-0-1", 4)]
    other = next(c for c in cables_of(plan, "leaf-0-2") if plan.devices[c.b.guid].name == "spine-0-1")
    assert ("No link: 4 cables of leaf-0-1", 4) in faults_without(plan, [*trunk, other])
