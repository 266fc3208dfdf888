"""Faults and devices beside the tree do not hide its pattern, and none of them becomes the design."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from assay.declare.starter.shipped_specs import find_adapter_names
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredCable, DiscoveredDevice
from assay.fabric.learn.draft import describe_exceptions, draft_rules
from assay.fabric.learn.hosts import find_hosts
from assay.fabric.learn.judged_design import judge_discovery
from assay.model.fleet import Fleet
from assay.model.specs.fabric.cable import PortId
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.fabric.learn.test_rules_with_adapter_ports import twin_tree
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach
from tests.support.fabrics.plane_trees import announced, plane_tree

NOBODY = Fleet(Path(), {})
SHAPE = {"units": 2, "nodes": 8, "rails": 4, "spines": 4}


def judge(seen):
    return judge_discovery(seen, "learned", NOBODY, find_hosts(seen.devices.values(), find_adapter_names(None)))


def told(seen):
    """The kinds of the exceptions, and whether the draft, read back, is what was seen."""
    judged = judge(seen)
    topology = compile_topology(FabricDesign.model_validate(yaml.safe_load(draft_rules(judged, seen))), NOBODY)
    return [line.partition(":")[0] for line in describe_exceptions(judged)], compare_cabling(topology, seen).verdict


def without(plan, names):
    gone = {device.guid for device in plan if device.name in names}
    return in_reach(plan, [cable for cable in as_built(plan) if not gone & {cable.a.guid, cable.b.guid}])


@pytest.mark.parametrize("leaf", ["leaf-0-0", "leaf-0-7", "leaf-0-3", "leaf-0-4"])
def test_a_dead_leaf_is_one_exception_wherever_it_stands(leaf):
    assert told(without(fat_tree(**SHAPE), {leaf})) == (["device-missing"], "mismatch")


@pytest.mark.parametrize("lost", [(1,), (1, 3), (0, 1, 3)])
def test_a_node_with_few_cables_stays_a_node(lost):
    seen = without(fat_tree(**SHAPE), {f"n004 mlx5_{rail}" for rail in lost})
    assert told(seen) == (["missing"] * len(lost), "mismatch")
    assert "n004" in judge(seen).design.node_names()


def beside(seen, plan, *, tops, hosts):
    """A switch of storage with hosts of one adapter each, cabled to these switches."""
    guid = "0xe000000000000001"
    switch = DiscoveredDevice(guid, "switch", 64, "MF0;stor-1:MQM9700/U1")
    adapters = [DiscoveredDevice(f"0xe1{n:014x}", "hca", 1, f"stor{n} mlx5_0") for n in range(hosts)]
    above = [device.guid for device in plan if device.name in tops]
    cables = [DiscoveredCable(PortId(guid, 40 + at), PortId(top, 60), "4xNDR") for at, top in enumerate(above)]
    cables += [
        DiscoveredCable(PortId(adapter.guid, 1), PortId(guid, n + 1), "4xNDR") for n, adapter in enumerate(adapters)
    ]
    return replace(seen, cables=[*seen.cables, *cables],
                   devices={**seen.devices, **{one.guid: one for one in (switch, *adapters)}})  # fmt: skip


@pytest.mark.parametrize("rails", [2, 4])
@pytest.mark.parametrize("tops", [("spine-0-0", "spine-0-1"), ("leaf-0-0", "leaf-0-1"), ("spine-0-2",)])
def test_storage_stands_beside_the_rules(rails, tops):
    plan = fat_tree(**SHAPE | {"rails": rails})
    seen = beside(in_reach(plan, as_built(plan)), plan, tops=tops, hosts=6)
    assert told(seen) == ([], "match")


def test_a_core_with_half_of_its_cables_is_no_other_core():
    plan = fat_tree(units=2, nodes=4, rails=2, spines=2, pods=2, cores=2, pair=1)
    core = next(device.guid for device in plan if device.name.startswith("core"))
    cables = as_built(plan)
    cables.remove(next(cable for cable in cables if cable.b.guid == core))
    assert told(in_reach(plan, cables)) == (["missing"], "mismatch")


def test_links_between_the_planes_of_a_box_are_in_the_draft_and_no_fault_of_a_design_without_them():
    plan = plane_tree(planes=2, units=2, places=4, tops=2)
    seen = announced(plan, as_built(plan))
    boxes = {device.box: [] for device in plan if device.box}
    for device in plan:
        if device.box:
            boxes[device.box].append(device.guid)
    inside = [DiscoveredCable(PortId(a, 144), PortId(b, 144), "4xXDR") for a, b in boxes.values()]
    seen = replace(seen, cables=[*seen.cables, *inside])
    assert compare_cabling(plan, seen).verdict == "match"
    assert told(seen) == ([], "match")
    lost = replace(seen, cables=seen.cables[:-1])
    learned = compile_topology(FabricDesign.model_validate(yaml.safe_load(draft_rules(judge(seen), seen))), NOBODY)
    (fault,) = compare_cabling(learned, lost).discrepancies
    assert (fault.kind, fault.box) == ("missing", "spine-2")


@pytest.mark.parametrize("plane", [1, 2, 3, 4])
def test_a_dead_plane_is_one_exception_and_stays_in_the_design(plane):
    plan = plane_tree(planes=4, units=2, places=4, tops=2)
    gone = {device.guid for device in plan if device.plane == plane}
    seen = announced(plan, [cable for cable in as_built(plan) if not gone & {cable.a.guid, cable.b.guid}])
    judged = judge(seen)
    assert judged.design.planes == 4
    assert [line.partition(",")[0].partition(":")[0] for line in describe_exceptions(judged)] == ["device-missing"]
    (ticket,) = make_cabling_tickets(compare_cabling(plan, seen))
    assert ticket.title == f"Find the device and check its power: Plane {plane}, 4 chips not in the fabric"


def test_aggregation_nodes_do_not_hide_planes():
    plan = plane_tree(planes=2, units=2, places=4, rails=2, tops=2, cores=2)
    seen = announced(plan, as_built(plan))
    chips = [device.guid for device in plan if device.box]
    nodes = [DiscoveredDevice(f"0xa9{n:014x}", "hca", 1, AGGREGATION_NODE) for n in range(len(chips))]
    cables = [DiscoveredCable(PortId(node.guid, 1), PortId(chip, 145), "4xXDR")
              for node, chip in zip(nodes, chips, strict=True)]  # fmt: skip
    seen = replace(seen, cables=[*seen.cables, *cables], devices={**seen.devices, **{one.guid: one for one in nodes}})
    assert judge(seen).exceptions == []
    assert judge(seen).design.planes == 2


@pytest.mark.parametrize("ports", [["0/1", "0/2", "1/1"], ["0/1", "1/1", "0/2"]])
def test_an_adapter_with_one_cable_beside_one_with_two(ports):
    plan = twin_tree(ports)
    judged = judge(in_reach(plan, as_built(plan)))
    assert (judged.exceptions, judged.design.adapter_ports) == ([], ports)
