"""A node in other ports, or a new one, is an exception to the pattern. It never ends the pattern."""

from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from assay.declare.starter.shipped_specs import find_adapter_names
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.fabric.learn.draft import draft_rules
from assay.fabric.learn.hosts import find_hosts, list_inventory_adapters
from assay.fabric.learn.judged_design import judge_discovery
from assay.fabric.learn.places import assign_places, find_down_ports
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.cable import PortId
from tests.support.fabrics.fat_trees import as_built, fat_tree, fat_trees, in_reach

NOBODY = Fleet(Path(), {})
NAMES = find_adapter_names(None)


def judge(seen):
    return judge_discovery(seen, "learned", NOBODY, find_hosts(seen.devices.values(), NAMES))


def is_at(plan, cable, node):
    return node in {plan.devices[port.guid].node for port in cable[:2] if port.guid in plan.devices}


def move(plan, cables, node, port, rails):
    """Put the node's plugs of some rails into another port of their leaves."""
    at = [number for number, cable in enumerate(cables) if is_at(plan, cable, node)]
    for rail in rails:
        cables[at[rail]] = cables[at[rail]]._replace(b=PortId(cables[at[rail]].b.guid, port))


def add_node(plan, cables, like, name, port):
    """Cable a new node to the leaves of another one. Return its adapters."""
    leaves = [cable.b.guid for cable in as_built(plan) if is_at(plan, cable, like)]
    new = [DiscoveredDevice(f"0xf{port:07x}{rail:08x}", "hca", 1, f"{name} mlx5_{rail}") for rail in range(len(leaves))]
    for adapter, leaf in zip(new, leaves, strict=True):
        cables.append(DiscoveredCable(PortId(adapter.guid, 1), PortId(leaf, port), "4xNDR"))
    return new


def told(discrepancies):
    return Counter(
        (one.kind, frozenset(pair.expected.a.port_id for pair in one.cables if pair.expected)) for one in discrepancies
    )


@given(fat_trees(), st.data())
def test_nodes_in_other_ports_and_new_nodes_are_exactly_the_exceptions(plan, data):
    nodes = sorted({device.node for device in plan if device.node})
    rails = sum(device.node == nodes[0] for device in plan)
    cables, extra = as_built(plan), []
    for node in data.draw(st.lists(st.sampled_from(nodes), max_size=max(len(nodes) // 6, 1), unique=True)):
        moved = data.draw(st.sets(st.integers(0, rails - 1), min_size=1))
        move(plan, cables, node, data.draw(st.integers(40, 44)) + 5 * nodes.index(node) % 20, moved)
    for number in range(data.draw(st.integers(0, max(len(nodes) // 6, 1)))):
        extra += add_node(plan, cables, data.draw(st.sampled_from(nodes)), f"new{number}", 30 + number)
    seen = in_reach(plan, cables, extra)
    judged = judge(seen)
    expected = [one for one in compare_cabling(plan, seen).discrepancies if one.kind != "device-unknown"]
    assert told(judged.exceptions) == told(expected)
    assert judged.design.node_names() == nodes
    listed = yaml.safe_load(draft_rules(judged, seen)).get("devices", [])
    assert {device["guid"] for device in listed} == {device.guid for device in extra}


@pytest.mark.parametrize("to", [17, 30, 64])
def test_a_node_that_was_moved_as_a_whole_has_the_place_of_its_number(to):
    plan = fat_tree(units=2, nodes=8, rails=4, spines=2, pair=4)
    cables = as_built(plan)
    move(plan, cables, "n002", to, range(4))
    judged = judge(in_reach(plan, cables))
    assert (judged.design.leaves.down, judged.design.gaps) == ("1..8", [])
    assert [one.kind for one in judged.exceptions] == ["moved"] * 4


def votes(**ports):
    return {host: Counter({(0, port): 4 for port in own}) for host, own in ports.items()}


@pytest.mark.parametrize(
    ("ports", "up", "down"),
    [
        ([1, 2, 3, 4, 30], range(33, 65), (1, 4)),
        ([1, 2, 3, 6, 7, 8], range(33, 65), (1, 8)),
        ([4, 36, 37, 38], range(1, 33), (36, 38)),
        ([1, 2, 3, 4, 10], range(9, 17), (1, 4)),
        ([1, 9, 17, 25], range(33, 65), (1, 25)),
    ],
    ids=["a far node", "free ports", "a plug among the uplinks", "a plug behind the uplinks", "every eighth port"],
)
def test_the_ports_to_nodes_are_where_most_plugs_are(ports, up, down):
    found = find_down_ports(votes(**{f"n{port}": [port] for port in ports}), 4, up)
    assert (found[0], found[-1]) == down


def test_of_two_nodes_in_one_port_that_with_fewer_plugs_there_has_another_place():
    both = {"n1": Counter({(0, 1): 3, (0, 2): 1}), "n2": Counter({(0, 1): 1, (0, 9): 3})}
    assert assign_places(both | votes(n3=[3]), range(1, 4)) == {"n1": (0, 1), "n2": (0, 2), "n3": (0, 3)}


def fleet_with(plan, wrong, replaced):
    """An inventory of the plan's nodes: all adapters of the `wrong` ones are others, one adapter of the `replaced`."""
    own: dict[str, list[str]] = {}
    for device in plan:
        if device.node:
            own.setdefault(device.node, []).append(device.guid)
    for node in wrong:
        own[node] = [f"0xe{guid[3:]}" for guid in own[node]]
    for node in replaced:
        own[node][0] = f"0xe{own[node][0][3:]}"
    return Fleet(Path(), {name: Node(name, "", "", "", 0, "", "", "", tuple(guids)) for name, guids in own.items()})


@given(st.data())
def test_an_inventory_with_other_guids_is_told_and_hides_no_pattern(data):
    plan = fat_tree(units=2, nodes=4, rails=4, spines=2, pair=4)
    nodes = sorted({device.node for device in plan if device.node})
    wrong = data.draw(st.sets(st.sampled_from(nodes)))
    replaced = data.draw(st.sets(st.sampled_from(nodes), max_size=2)) - wrong
    fleet = fleet_with(plan, wrong, replaced)
    seen = in_reach(plan, as_built(plan))
    hosts = find_hosts(seen.devices.values(), NAMES, list_inventory_adapters(fleet))
    judged = judge_discovery(seen, "learned", fleet, hosts)
    assert (judged.design.node_names(), judged.contradicted) == (nodes, wrong)
    assert [note.partition(": ")[2][:33] for note in judged.notes] == ["the inventory has other GUIDs tha"] * bool(
        wrong
    )
    assert Counter(one.kind for one in judged.exceptions) == Counter({"device-replaced": len(replaced)})
    assert set(yaml.safe_load(draft_rules(judged, seen, fleet.nodes)).get("adapters", {})) == wrong
