"""What is learnt names boxes: which chips share one, on which card and plane of it they are."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from assay.declare.starter.shipped_specs import find_adapter_names
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.learn.boxes import find_box_chips
from assay.fabric.learn.draft import draft_from_discovery, draft_rules
from assay.fabric.learn.hosts import find_hosts
from assay.fabric.learn.judged_design import judge_discovery
from assay.model.fleet import Fleet
from assay.model.specs.fabric.cable import PortId
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach

NOBODY = Fleet(Path(), {})


def directed(plan, cables):
    """The tree with all of its switches in one director: leaves on line cards, two a card, spines on spine cards."""
    found = in_reach(plan, cables)
    devices = dict(found.devices)
    for kind, card in (("leaf", "L"), ("spine", "S")):
        chips = [device.guid for device in plan if device.name.startswith(kind)]
        for number, guid in enumerate(chips):
            text = f"MF0;dir:CS8500/{card}{number // 2 + 1:02}/U{number % 2 + 1}"
            devices[guid] = devices[guid]._replace(description=text, system="0xd000000000000001")
    return replace(found, devices=devices)


def test_a_director_is_rules_that_name_its_box_and_its_cards():
    plan = fat_tree(units=2, nodes=4, rails=2, spines=2, pair=2)
    built = as_built(plan)
    seen = directed(plan, built)
    hosts = find_hosts(seen.devices.values(), find_adapter_names(None))
    text = draft_rules(judge_discovery(seen, "learned", NOBODY, hosts), seen)
    design = FabricDesign.model_validate(yaml.safe_load(text))
    assert [(at.box, at.module) for at in design.leaves.at] == [("dir", f"L0{card}") for card in (1, 1, 2, 2)]
    assert {(at.box, at.module) for at in design.spines.at} == {("dir", "S01")}
    assert design.switch.product == "CS8500"
    topology = compile_topology(design, NOBODY)
    inside = next(cable for cable in built if not plan.devices[cable.a.guid].node)
    (one,) = compare_cabling(topology, directed(plan, [c for c in built if c != inside])).discrepancies
    assert (one.kind, one.box) == ("missing", "dir")


def planes(names=("lf", "sp"), crossed=False):
    """Two boxes with two planes, joined by three cables, and an adapter with a port for each plane."""
    devices, cables = {}, []
    for box, name in enumerate(names):
        for plane in (1, 2):
            guid = f"0x{16 * (box + 1) + plane:016x}"
            devices[guid] = DiscoveredDevice(guid, "switch", 8, f"MF0;{name}:Q3400/U{plane}", f"0x{box + 1:016x}")
    adapter = DiscoveredDevice("0x00000000000000aa", "hca", 2, "n1 mlx5_0", "0x00000000000000aa")
    devices[adapter.guid] = adapter
    for plane in (1, 2):
        lower, upper = f"0x{16 + plane:016x}", f"0x{32 + plane:016x}"
        ports = (3, 2, 1) if crossed and plane == 2 else (1, 2, 3)
        cables += [DiscoveredCable(PortId(lower, 4 + n), PortId(upper, ports[n]), "1xXDR") for n in range(3)]
        cables.append(DiscoveredCable(PortId(adapter.guid, plane), PortId(lower, 1), "1xXDR"))
    return devices, cables


def test_chips_that_are_cabled_alike_carry_planes():
    chips = find_box_chips(*planes())
    assert {(chip.box, chip.plane, chip.name) for chip in chips.values()} == {
        (box, plane, f"{box}-p{plane}") for box in ("lf", "sp") for plane in (1, 2)
    }


def test_chips_that_are_cabled_otherwise_carry_none():
    chips = find_box_chips(*planes(crossed=True))
    assert {(chip.box, chip.plane) for chip in chips.values()} == {("lf", 0), ("sp", 0)}


@pytest.mark.parametrize("names", [("sw", "sw"), ("", "")], ids=["two boxes of one name", "no names"])
def test_boxes_without_a_name_of_their_own_have_their_system_image_guid(names):
    devices, cables = planes(names)
    assert {chip.box.rpartition(" ")[2] for chip in find_box_chips(devices, cables).values()} == {
        f"0x{1:016x}",
        f"0x{2:016x}",
    }


def test_a_listed_design_names_planes_and_is_what_was_seen():
    devices, cables = planes()
    seen = FabricDiscovery(cables, devices)
    text = draft_from_discovery(seen, "learned", {}).as_yaml()
    topology = compile_topology(FabricDesign.model_validate(yaml.safe_load(text)), NOBODY)
    assert compare_cabling(topology, seen).verdict == "match"
    assert {(device.name, device.box, device.plane) for device in topology if device.box} >= {("lf-p1", "lf", 1)}
    lost = [cable for cable in cables if cable.a.number != 5]
    (fault,) = compare_cabling(topology, replace(seen, cables=lost)).list_faults()
    assert (fault.title, len(fault.members)) == ("No link: lf port 5 and sp port 2", 2)
