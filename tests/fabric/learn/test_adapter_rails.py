"""Hosts may name their adapters in several ways, or an inventory may list only some of them: the rails are the same."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.declare.starter.shipped_specs import find_adapter_names
from assay.fabric.learn.hosts import find_hosts, list_inventory_adapters
from assay.fabric.learn.judged_design import judge_discovery
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.adapters import HostAdapter
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach

RAILS = 4
NAMES = find_adapter_names(None)
WAYS = {
    "mlx5_0 …": [f"mlx5_{rail}" for rail in range(RAILS)],
    "the numbers of a server": ["mlx5_0", "mlx5_3", "mlx5_4", "mlx5_9"],
    "from 1": [f"HCA-{rail + 1}" for rail in range(RAILS)],
    "by address": ["ibp24s0", "ibp64s0", "ibp79s0", "ibp94s0"],
    "in another order": ["ibs4", "ibs3", "ibs2", "ibs1"],
}


def tree():
    return fat_tree(units=2, nodes=6, rails=RAILS, spines=2, pair=3)


def nodes_of(plan):
    own = {}
    for device in plan:
        if device.node:
            own.setdefault(device.node, []).append(device.guid)
    return own


def learn(plan, way_of, fleet, listed=None):
    """Learn from a fabric whose nodes name their adapters so; "" announces nothing."""
    seen = in_reach(plan, as_built(plan))
    texts = {}
    for node, guids in nodes_of(plan).items():
        for rail, guid in enumerate(guids):
            texts[guid] = f"{node} {WAYS[way_of[node]][rail]}" if way_of[node] else "MT4129 ConnectX7"
    devices = {guid: one._replace(description=texts.get(guid, one.description)) for guid, one in seen.devices.items()}
    seen = replace(seen, devices=devices)
    hosts = find_hosts(devices.values(), NAMES, list_inventory_adapters(fleet) | (listed or {}))
    return judge_discovery(seen, "learned", fleet, hosts)


def fleet_with(plan, nodes):
    own = nodes_of(plan)
    return Fleet(Path(), {name: Node(name, "", "", "", 0, "", "", "", tuple(own[name])) for name in nodes})


@settings(max_examples=20)
@given(st.data())
def test_nodes_that_meet_at_leaves_have_the_same_rails_whatever_they_call_them(data):
    plan = tree()
    own = nodes_of(plan)
    ways = data.draw(st.lists(st.sampled_from(sorted(WAYS)), min_size=1, max_size=3, unique=True))
    listed = data.draw(st.sets(st.sampled_from(sorted(own))))
    way_of = {node: data.draw(st.sampled_from([*ways, ""] if node in listed else ways)) for node in own}
    way_of |= dict.fromkeys(("n000", "n006"), "from 1")  # in each unit one whose names are in the order of the rails
    judged = learn(plan, way_of, fleet_with(plan, listed))
    assert (judged.design.node_names(), judged.exceptions) == (sorted(own), [])
    assert {node: list(judged.nodes[node]) for node in own} == own


def test_the_order_of_the_rails_is_that_at_the_spines_not_that_of_the_names():
    plan = tree()
    own = nodes_of(plan)
    judged = learn(plan, dict.fromkeys(own, "in another order"), Fleet(Path(), {}))
    assert judged.exceptions == []
    assert judged.design.adapter_names == WAYS["in another order"]
    assert {node: list(judged.nodes[node]) for node in own} == own


@pytest.mark.parametrize("way", ["from 1", "by address", "the numbers of a server"])
def test_where_the_inventory_has_one_unit_only_the_order_tells(way):
    plan = tree()
    own = nodes_of(plan)
    judged = learn(plan, dict.fromkeys(own, way), fleet_with(plan, sorted(own)[:6]))
    assert (judged.design.node_names(), judged.exceptions) == (sorted(own), [])
    assert judged.design.adapter_names == WAYS[way]


def test_servers_of_two_makers_with_some_names_in_common_need_not_meet():
    plan = fat_tree(units=2, nodes=4, rails=8, spines=2, pair=4)
    own = nodes_of(plan)
    makers = [f"mlx5_{rail}" for rail in range(8)], [f"mlx5_{number}" for number in (0, 3, 4, 5, 6, 9, 10, 11)]
    seen = in_reach(plan, as_built(plan))
    texts = {guid: f"{node} {makers[at // 4][rail]}" for at, node in enumerate(sorted(own))
             for rail, guid in enumerate(own[node])}  # fmt: skip
    devices = {guid: one._replace(description=texts.get(guid, one.description)) for guid, one in seen.devices.items()}
    judged = judge_discovery(
        replace(seen, devices=devices), "x", Fleet(Path(), {}), find_hosts(devices.values(), NAMES)
    )
    assert (judged.design.node_names(), judged.exceptions) == (sorted(own), [])
    assert judged.design.adapter_names in makers


def test_a_list_of_hosts_that_covers_half_of_them_is_enough():
    plan = tree()
    own = nodes_of(plan)
    listed = {
        guid: HostAdapter(node, f"mlx5_{rail}", rail)
        for node in sorted(own)[::2]
        for rail, guid in enumerate(own[node])
    }
    judged = learn(plan, dict.fromkeys(own, "from 1"), Fleet(Path(), {}), listed)
    assert (judged.design.node_names(), judged.exceptions) == (sorted(own), [])


def test_a_listed_host_with_a_new_adapter_is_in_the_pattern():
    plan = tree()
    own = nodes_of(plan)
    fleet = fleet_with(plan, sorted(own))
    known = fleet.nodes["n003"].hca_guids
    other = replace(fleet.nodes["n003"], hca_guids=("0xe000000000000001", *known[1:]))
    judged = learn(plan, dict.fromkeys(own, "from 1"), Fleet(Path(), {**fleet.nodes, "n003": other}))
    assert [(one.kind, one.device) for one in judged.exceptions] == [("device-replaced", "n003 HCA-1")]
