"""Names that count with the ports: they say which node is out of order, and what a free port would have."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from assay.declare.starter.shipped_specs import find_adapter_names
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.discovery import DiscoveredDevice
from assay.fabric.learn.draft import draft_rules
from assay.fabric.learn.hosts import find_hosts
from assay.fabric.learn.judged_design import judge_discovery
from assay.fabric.learn.places import find_misplaced, find_name_series, guess_name
from assay.model.fleet import Fleet
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach, renamed

NAMES = find_adapter_names(None)
DOWN = range(1, 33)


def judge(seen):
    return judge_discovery(seen, "learned", Fleet(Path(), {}), find_hosts(seen.devices.values(), NAMES))


def tree():
    return fat_tree(units=2, nodes=8, rails=4, spines=2, pair=4)


def adapters(plan, node):
    return [device.guid for device in plan if device.node == node]


def moved(plan, *steps, without=()):
    """The cables with each node in the place of the next; the nodes `without` are gone."""
    gone = {guid for node in without for guid in adapters(plan, node)}
    pairs = [pair for node, place in steps for pair in zip(adapters(plan, place), adapters(plan, node), strict=True)]
    return renamed([cable for cable in as_built(plan) if cable.a.guid not in gone], dict(pairs))


NODES = [f"n0{number:02}" for number in range(16)]


@given(st.lists(st.sampled_from(NODES), min_size=2, max_size=2, unique=True))
def test_two_nodes_in_each_other_s_places_are_the_exception_and_not_the_order(two):
    plan = tree()
    seen = in_reach(plan, moved(plan, (two[0], two[1]), (two[1], two[0])))
    judged = judge(seen)
    assert judged.design.node_names() == NODES
    assert [(one.kind, one.device) for one in judged.exceptions] == [("device-exchanged", " and ".join(sorted(two)))]


@given(st.sampled_from(NODES), st.sampled_from(NODES))
def test_a_node_in_the_place_of_one_that_is_gone_is_the_exception(node, gone):
    plan = tree()
    if abs(NODES.index(node) - NODES.index(gone)) < 2 or gone == NODES[-1]:
        return  # the numbers rise all the same, or no node is above the free place
    own, place = adapters(plan, node), adapters(plan, gone)
    cables = [cable for cable in as_built(plan) if cable.a.guid not in own]
    judged = judge(in_reach(plan, renamed(cables, dict(zip(place, own, strict=True)))))
    assert judged.design.node_names() == [name for name in NODES if name != gone]
    assert judged.design.gaps == [gone]
    assert {one.nodes for one in judged.exceptions} == {(node,)}
    assert {one.kind for one in judged.exceptions} == {"moved"}


def test_a_node_whose_own_place_another_one_has_is_told():
    """n002 serves in the place of n005, which is gone, and a new node stands in the place of n002."""
    plan = tree()
    new = [DiscoveredDevice(f"0xe{rail:015x}", "hca", 1, f"spare mlx5_{rail}") for rail in range(4)]
    places = dict(zip(adapters(plan, "n005"), adapters(plan, "n002"), strict=True))
    places |= dict(zip(adapters(plan, "n002"), [one.guid for one in new], strict=True))
    judged = judge(in_reach(plan, renamed(as_built(plan), places), new))
    assert judged.exceptions == []
    assert judged.notes == ("n002 is in port 6 of its leaves, out of the order of the names: is that intended?",)
    assert "# review: n002 is in port 6" in draft_rules(judged, in_reach(plan, as_built(plan)))


@given(st.lists(st.integers(1, 32), min_size=1, max_size=32, unique=True), st.data())
def test_numbers_that_rise_with_the_ports_are_in_order_whatever_is_left_out(ports, data):
    ports = sorted(ports)
    numbers = sorted(data.draw(st.lists(st.integers(0, 999), min_size=len(ports), max_size=len(ports), unique=True)))
    digits = data.draw(st.sampled_from([1, 3]))
    places = {f"gpu-{number:0{digits}}": (0, port) for number, port in zip(numbers, ports, strict=True)}
    assert find_misplaced(places, DOWN) == {}
    downwards = {host: (0, 33 - port) for host, (_, port) in places.items()}
    assert len(places) < 4 or find_misplaced(downwards, DOWN) == {}


@given(st.permutations(range(1, 33)))
def test_names_without_any_order_are_no_exception(order):
    places = {f"n{number}": (0, port) for port, number in enumerate(order, start=1)}
    assert len(find_misplaced(places, DOWN)) <= len(places) / 4


def test_nodes_that_were_added_in_free_ports_of_another_unit_are_in_their_places():
    places = {f"n{number}": divmod(number - 1, 30) for number in range(1, 61)}
    places = {host: (unit, port + 1) for host, (unit, port) in places.items()} | {"n61": (0, 31), "n62": (0, 32)}
    assert not any(find_misplaced(places, DOWN).values())


def racks(*without):
    names = [f"gpu-{rack}{number:02}" for rack in "ab" for number in range(1, 11)]
    return {name: (0, port) for port, name in enumerate(names, start=1) if name not in without}


@pytest.mark.parametrize("gone", ["gpu-a05", "gpu-a10", "gpu-b01", "gpu-b07"])
def test_a_free_port_has_the_name_that_its_neighbours_give_it(gone):
    places, (_, port) = racks(gone), racks()[gone]
    expected = "gpu-a11" if gone == "gpu-b01" else gone  # either may be meant; the name below goes on
    assert guess_name(find_name_series(places), [at for _, at in places.values()], port) == expected


def test_a_free_port_without_named_neighbours_has_no_name():
    assert guess_name(find_name_series({"alpha": (0, 1), "omega": (0, 3)}), [1, 3], 2) == ""


TIERS = ["node_leaf", "leaf_spine", "spine_core"]


@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_with_another_rate_is_a_rule(tier):
    plan = fat_tree(units=2, nodes=4, rails=4, spines=2, pair=2, pods=2, cores=2)
    cables = [cable._replace(rate="4xHDR") if tier_of(plan, cable) == tier else cable for cable in as_built(plan)]
    seen = in_reach(plan, cables)
    judged = judge(seen)
    assert judged.comparison.verdict == "match"
    drafted = yaml.safe_load(draft_rules(judged, seen))
    rates = {each: drafted.get("rates", {}).get(each, drafted["rate"]) for each in TIERS}
    assert rates == {name: "4xHDR" if name == tier else "4xNDR" for name in rates}
    assert drafted.get("oversubscription", 1) == max(1, 4 * gbps(rates["node_leaf"]) / (4 * gbps(rates["leaf_spine"])))


def gbps(rate):
    return {"4xHDR": 200, "4xNDR": 400}[rate]


def tier_of(plan, cable):
    names = {plan.devices[port.guid].name.partition("-")[0].partition(" ")[0][:1] for port in cable[:2]}
    return "node_leaf" if "n" in names else "spine_core" if "c" in names else "leaf_spine"


def test_slow_cables_of_a_tier_are_exceptions_and_no_rule():
    plan = tree()
    cables = [cable._replace(rate="4xHDR") if at < 20 else cable for at, cable in enumerate(as_built(plan))]
    judged = judge(in_reach(plan, cables))
    assert [one.kind for one in judged.exceptions] == ["degraded"] * 20
    assert judged.design.rates.model_dump(exclude_none=True) == {}


@given(st.sampled_from(NODES), st.integers(0, 3))
def test_an_adapter_that_names_no_host_is_the_one_of_its_port(node, rail):
    plan = tree()
    guid = adapters(plan, node)[rail]
    seen = in_reach(plan, as_built(plan))
    devices = {**seen.devices, guid: seen.devices[guid]._replace(description="MT4129 ConnectX7 Mellanox Technologies")}
    judged = judge(replace(seen, devices=devices))
    assert (judged.comparison.verdict, judged.exceptions) == ("match", [])
    assert judged.nodes[node][rail] == guid
    assert judged.notes == (
        f"{node} has {guid} as mlx5_{rail}, by its port: it calls itself 'MT4129 ConnectX7 Mellanox Technologies'",
    )


def test_an_adapter_of_another_host_is_not_taken_for_the_one_of_its_port():
    plan = tree()
    guid = adapters(plan, "n003")[1]
    seen = in_reach(plan, as_built(plan))
    devices = {**seen.devices, guid: seen.devices[guid]._replace(description="stor1 mlx5_0")}
    judged = judge(replace(seen, devices=devices))
    assert judged.notes == ()
    assert [one.kind for one in judged.exceptions] == ["device-replaced"]
    assert compare_cabling(judged.topology, seen).matching == len(plan.cables) - 1
