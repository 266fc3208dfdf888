"""What befalls a whole device is told once, with what it costs, what is behind it, and what may be done."""

from dataclasses import replace

import pytest

from assay.fabric.compare.compare import compare_cabling, describe_discrepancy
from assay.fabric.discovery import DiscoveredDevice, PortFacts
from assay.model.specs.fabric.cable import PortId
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach, renamed


@pytest.fixture(scope="module")
def tree():
    return fat_tree()


@pytest.fixture(scope="module")
def deep():
    """Three tiers; either pod has one spine, so that everything in a pod is behind it."""
    return fat_tree(units=1, nodes=3, rails=3, spines=1, pair=2, pods=2, cores=2)


def named(tree, name):
    """The GUIDs of a switch, or of a node's adapters."""
    return [guid for guid, device in tree.devices.items() if name in (device.name, device.node)]


def turned(tree, *names):
    """Each device in the place of the next."""
    following = [*names[1:], names[0]]
    pairs = (zip(named(tree, a), named(tree, b), strict=True) for a, b in zip(names, following, strict=True))
    return in_reach(tree, renamed(as_built(tree), dict(pair for both in pairs for pair in both)))


def without(tree, *names):
    gone = {guid for name in names for guid in named(tree, name)}
    return in_reach(tree, [one for one in as_built(tree) if not gone & {one.a.guid, one.b.guid}])


def test_two_nodes_in_each_others_place_are_one_discrepancy(tree):
    (one,) = compare_cabling(tree, turned(tree, "n000", "n004")).discrepancies
    assert (one.kind, one.device, len(one.cables)) == ("device-exchanged", "n000 and n004", 6)
    assert "n000 is cabled in the place of n004 (r02 U5)" in one.summary
    assert one.nodes == ("n000", "n004")


@pytest.mark.parametrize(("one", "other", "cables"), [("leaf-0-0", "leaf-0-4", 14), ("spine-0-0", "spine-0-1", 24)])
def test_two_switches_in_each_others_place_are_one_discrepancy(tree, one, other, cables):
    (found,) = compare_cabling(tree, turned(tree, one, other)).discrepancies
    assert (found.kind, found.device, len(found.cables)) == ("device-exchanged", f"{one} and {other}", cables)


def test_three_leaves_in_a_round_are_one_discrepancy(tree):
    (one,) = compare_cabling(tree, turned(tree, "leaf-0-0", "leaf-0-4", "leaf-0-2")).discrepancies
    assert (one.kind, one.device) == ("device-exchanged", "leaf-0-0 and leaf-0-2 and leaf-0-4")


def test_both_ends_of_an_exchanged_cable_are_called_what_they_are(tree):
    (one,) = compare_cabling(tree, turned(tree, "n000", "n004")).discrepancies
    (pair,) = [pair for pair in one.cables if pair.expected.a.device == "n000 mlx5_0"]
    assert (pair.expected.b.device, pair.observed.a.device, pair.observed.b.device) == (
        "leaf-0-0", "n004 mlx5_0", "leaf-0-0",
    )  # fmt: skip


def test_devices_that_announce_their_own_names_were_likelier_moved_themselves(tree):
    (one,) = compare_cabling(tree, turned(tree, "n000", "n004")).discrepancies
    assert one.corrections == (
        "exchange the devices n000 and n004, or all of their cables",
        "exchange the GUIDs of n000 and n004 in the inventory or the design",
    )
    assert one.likelier_reason == "they announce themselves by the names that their GUIDs have in the design"
    assert describe_discrepancy(one).likelier == one.corrections[0]


def test_devices_that_announce_the_names_of_their_places_were_likelier_written_down_wrong(tree):
    seen = turned(tree, "n000", "n004")
    named_by_place = {"n000": "n004", "n004": "n000"}
    devices = {
        guid: device._replace(description=named_by_place.get(device.description[:4], device.description[:4]) + " HCA-1")
        for guid, device in seen.devices.items()
    }
    (one,) = compare_cabling(tree, replace(seen, devices=devices)).discrepancies
    assert one.corrections[0].startswith("exchange the GUIDs of n000 and n004 in the inventory")
    assert one.likelier_reason == "they announce themselves by the names of the places where they are"


def test_devices_that_announce_nothing_are_looked_up_before_anything_is_moved(tree):
    seen = turned(tree, "leaf-0-0", "leaf-0-1")
    devices = {guid: device._replace(description="Quantum Mellanox") for guid, device in seen.devices.items()}
    (one,) = compare_cabling(tree, replace(seen, devices=devices)).discrepancies
    assert one.corrections[0].startswith("exchange the GUIDs of")
    assert "a label can be read before anything is moved" in one.likelier_reason


def test_one_rail_of_two_nodes_exchanged_is_a_swap_and_no_exchange_of_nodes(tree):
    a, b = named(tree, "n000")[0], named(tree, "n001")[0]
    (one,) = compare_cabling(tree, in_reach(tree, renamed(as_built(tree), {a: b, b: a}))).discrepancies
    assert (one.kind, len(one.cables)) == ("swap", 2)


def test_all_new_adapters_of_a_node_are_one_replacement(tree):
    new = {guid: f"0xe{guid[3:]}" for guid in named(tree, "n002")}
    extra = [DiscoveredDevice(guid, "hca", 1, "n002") for guid in new.values()]
    (one,) = compare_cabling(tree, in_reach(tree, renamed(as_built(tree), new), extra)).discrepancies
    assert (one.kind, one.device, len(one.cables)) == ("device-replaced", "n002", 3)
    assert "all adapters of n002 (r01 U3) have new GUIDs" in one.summary


def test_new_guids_of_a_node_are_told_in_the_order_of_its_rails(tree):
    rails = named(tree, "n002")
    new = {guid: f"0xe{rail}{guid[4:]}" for guid, rail in zip(rails, (2, 0, 1), strict=True)}
    extra = [DiscoveredDevice(guid, "hca", 1, "n002") for guid in new.values()]
    (one,) = compare_cabling(tree, in_reach(tree, renamed(as_built(tree), new), extra)).discrepancies
    assert f"write {', '.join(new.values())} in its place" in one.corrections[0]


def test_a_node_in_the_place_of_one_that_is_gone_is_one_discrepancy_with_its_empty_place(tree):
    moved = dict(zip(named(tree, "n000"), named(tree, "n001"), strict=True))
    gone = set(moved.values())
    cables = [one for one in as_built(tree) if one.a.guid not in gone]
    own = [one for one in as_built(tree) if one.a.guid in gone]
    back = {place: box for box, place in moved.items()}
    cables = [one for one in cables if one.a.guid not in moved] + renamed(own, back)
    (one,) = compare_cabling(tree, in_reach(tree, cables)).discrepancies
    assert (one.kind, one.device, len(one.cables)) == ("device-replaced", "n001", 6)
    assert "n000 is cabled in the place of n001 (r00 U2)" in one.summary
    assert "the place of n000 (r00 U1) is empty" in one.summary


def test_a_dead_leaf_says_what_its_nodes_are_left_with(tree):
    (one,) = compare_cabling(tree, without(tree, "leaf-0-0")).discrepancies
    assert (one.device, one.capacity_loss) == ("leaf-0-0", "3 nodes are left with 2 of 3 links")
    assert one.capacity_loss in one.summary


def test_a_dead_spine_says_what_the_leaves_are_left_with(tree):
    (one,) = compare_cabling(tree, without(tree, "spine-0-0")).discrepancies
    assert one.capacity_loss == "6 switches below it are left with 2 of 4 cables up (50% of the bandwidth)"


def test_what_is_behind_a_dead_switch_is_its_consequence_and_nothing_of_its_own(deep):
    (one,) = compare_cabling(deep, without(deep, "spine-1-0")).discrepancies
    assert (one.kind, one.device, len(one.cables)) == ("device-missing", "spine-1-0", 6 + 4)
    assert len(one.cut_off) == 9
    assert "what lies behind it is out of reach: leaf-1-0, leaf-1-1, leaf-1-2, 3 nodes (9 cables)" in one.summary
    assert len(describe_discrepancy(one).cut_off) == 9
    assert set(one.nodes) == {"n100", "n101", "n102"}


def test_two_dead_cores_cut_a_pod_off_and_are_two_discrepancies(deep):
    found = compare_cabling(deep, without(deep, "core-0", "core-1")).discrepancies
    assert sorted(one.device for one in found) == ["core-0", "core-1"]
    assert sum(len(one.cables) + len(one.cut_off) for one in found) == len(deep.cables) - (6 + 9)


def test_a_cable_that_is_the_only_way_to_a_part_names_that_part():
    tree = fat_tree(units=1, nodes=3, rails=3, spines=1, pair=1)
    lost = next(one for one in as_built(tree) if one.b.guid == named(tree, "spine-0-0")[0])
    (one,) = compare_cabling(tree, in_reach(tree, [cable for cable in as_built(tree) if cable != lost])).discrepancies
    assert (one.kind, len(one.cables), len(one.cut_off)) == ("missing", 1, 3)
    assert "what lies behind it is out of reach: leaf-0-0, 3 nodes (3 cables)" in one.summary


def test_a_part_that_nothing_joins_to_what_was_discovered_makes_it_partial():
    rails = fat_tree(units=1, nodes=3, rails=3, spines=1, pair=1)
    separate = rails.__class__("tree", rails.devices.values(), _only_node_cables(rails))
    seen = in_reach(separate, as_built(separate))
    comparison = compare_cabling(separate, seen)
    assert (comparison.verdict, comparison.discrepancies) == ("partial", ())
    assert "have no designed path to anything discovered" in comparison.problems[0]


def _only_node_cables(tree):
    links = tree.links.__class__()
    for a, a_port, b, b_port in list(tree.links)[:9]:
        links.add([a], [a_port], [b], [b_port])
    links.set_rate_and_length("4xNDR", 5)
    return links


def off(port, **said):
    return {port: PortFacts(port, **said)}


@pytest.mark.parametrize("said", [{"state": "disabled"}, {"state": "down", "physical": "disabled"}])
def test_a_port_that_was_switched_off_is_no_missing_cable(tree, said):
    cable = as_built(tree)[0]
    seen = replace(in_reach(tree, as_built(tree)[1:]), facts=off(cable.b, **said))
    (one,) = compare_cabling(tree, seen).discrepancies
    assert (one.kind, len(one.cables), one.cables[0].observed) == ("disabled", 1, None)
    assert "leaf-0-0 port 1/1 (leaf-0 U1) is disabled" in one.summary
    assert "ask who disabled" in one.corrections[0]


def test_a_port_that_is_down_for_no_known_reason_is_a_missing_cable(tree):
    cable = as_built(tree)[0]
    seen = replace(in_reach(tree, as_built(tree)[1:]), facts=off(cable.b, state="down", physical="polling"))
    assert [one.kind for one in compare_cabling(tree, seen).discrepancies] == ["missing"]


def test_a_disabled_port_is_seen_whole_even_in_a_partial_discovery(tree):
    cable = as_built(tree)[0]
    seen = replace(in_reach(tree, as_built(tree)[2:], problems=("timed out",)), facts=off(cable.b, state="disabled"))
    assert [one.kind for one in compare_cabling(tree, seen).discrepancies] == ["disabled"]


def test_what_is_behind_disabled_ports_is_not_called_dead():
    tree = fat_tree(units=1, nodes=3, rails=3, spines=1, pair=2)
    spine = named(tree, "spine-0-0")[0]
    up = [one for one in as_built(tree) if one.b.guid == spine][:2]
    facts = {one.b: PortFacts(one.b, state="disabled") for one in up}
    seen = replace(in_reach(tree, [one for one in as_built(tree) if one not in up]), facts=facts)
    found = compare_cabling(tree, seen).discrepancies
    assert [one.kind for one in found] == ["disabled", "disabled"]
    assert sum(len(one.cut_off) for one in found) == 3


def test_swapped_cables_of_an_exchanged_device_are_told_by_its_place(tree):
    cables = list(turned(tree, "leaf-0-0", "leaf-0-4").cables)
    mine = [one for one in cables if one.b.guid == named(tree, "leaf-0-4")[0]][:2]
    one, other = (cables.index(cable) for cable in mine)
    cables[one], cables[other] = mine[0]._replace(b=mine[1].b), mine[1]._replace(b=mine[0].b)
    found = compare_cabling(tree, in_reach(tree, cables)).discrepancies
    assert [one.kind for one in found] == ["device-exchanged", "swap"]
    seen = found[1].cables[0].observed
    assert (seen.b.device, seen.b.guid) == ("leaf-0-0", named(tree, "leaf-0-4")[0])
    assert PortId(seen.b.guid, seen.b.port) in {cable.b for cable in cables}


def replaced_and_turned(tree, new_one, *round_of):
    """One device with a new GUID, beside others in a round of each other's places."""
    (old,) = named(tree, new_one)
    new = f"0xe{old[3:]}"
    following = [*round_of[1:], round_of[0]]
    places = {named(tree, a)[0]: named(tree, b)[0] for a, b in zip(round_of, following, strict=True)}
    extra = [DiscoveredDevice(new, tree.devices[old].kind, 64, "new")]
    return in_reach(tree, renamed(as_built(tree), places | {old: new}), extra)


def test_a_new_leaf_below_exchanged_spines_is_known_by_them():
    tree = fat_tree(units=2, nodes=2, rails=2, spines=3, pair=3)
    found = compare_cabling(
        tree, replaced_and_turned(tree, "leaf-0-1", "spine-0-0", "spine-0-1", "spine-0-2")
    ).discrepancies
    assert sorted((one.kind, len(one.cables)) for one in found) == [("device-exchanged", 27), ("device-replaced", 11)]


def test_a_new_adapter_below_exchanged_leaves_has_its_own_cable(tree):
    found = compare_cabling(tree, replaced_and_turned(tree, "n000 mlx5_0", "leaf-0-0", "leaf-0-4")).discrepancies
    assert sorted((one.kind, len(one.cables)) for one in found) == [("device-exchanged", 13), ("device-replaced", 1)]
