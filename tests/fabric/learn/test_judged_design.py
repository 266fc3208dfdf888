"""What is learnt is the pattern that most cables follow, and exactly what breaks it."""

import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import yaml

from assay.cli.app import main
from assay.declare.starter.shipped_specs import find_adapter_names
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.fabric.learn.draft import describe_exceptions, draft_inventory, draft_rules
from assay.fabric.learn.hosts import find_hosts
from assay.fabric.learn.judged_design import judge_discovery
from assay.fabric.learn.tree import NoPattern
from assay.fabric.readers.format_detection import read_topology
from assay.lab.fabric.ibnetdiscover import format_net_file
from assay.model.fleet import Fleet
from assay.model.specs.fabric.adapters import AdapterNames, HostAdapter
from assay.model.specs.fabric.cable import PortId
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach
from tests.support.fabrics.superpods import fleet_of, row, superpod

NOBODY = Fleet(Path(), {})
NAMES = find_adapter_names(None)
SAMPLES = Path(os.environ.get("ASSAY_SAMPLES", "no samples")) / "infiniband"


def judge(seen):
    return judge_discovery(seen, "learned", NOBODY, find_hosts(seen.devices.values(), NAMES))


def pod(units):
    design = superpod(units)
    return compile_topology(design, fleet_of(design))


def planted(plan, rng, swaps=5, missing=4, dead="leaf-su01-r3"):
    """A fabric with a dead leaf, exchanged plugs and lost cables; what a comparison with its true design tells."""
    gone = {guid for guid, device in plan.devices.items() if device.name == dead}
    cables = [cable for cable in as_built(plan) if not {cable.a.guid, cable.b.guid} & gone]
    for _ in range(swaps):
        a, b = rng.sample(range(len(cables)), 2)
        cables[a], cables[b] = cables[a]._replace(b=cables[b].b), cables[b]._replace(b=cables[a].b)
    for cable in rng.sample(cables, missing):
        cables.remove(cable)
    return in_reach(plan, cables)


def faults(discrepancies):
    """Each exception by the switch ports where it is. An adapter whose only cable is lost was not seen by anybody."""
    return Counter(
        (one.kind, frozenset(end.port_id for pair in one.cables if pair.expected for end in pair.expected.ends
                             if not end.node and one.kind != "device-missing"))
        for one in discrepancies
    )  # fmt: skip


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(lambda: pod(2), id="two units"),
        pytest.param(lambda: pod(8), id="eight units"),
        pytest.param(lambda: pod(16), id="three tiers, a group a rail"),
        pytest.param(lambda: fat_tree(units=3, nodes=6, rails=4, spines=3, pair=2), id="a small tree"),
        pytest.param(lambda: fat_tree(units=1, nodes=5, rails=3, spines=2, pods=2, cores=2), id="pods with cores"),
    ],
)
def test_a_clean_fabric_is_rules_without_an_exception(plan):
    topology = plan()
    judged = judge(in_reach(topology, as_built(topology)))
    assert (judged.comparison.verdict, judged.exceptions) == ("match", [])
    assert len(judged.topology.cables) == len(topology.cables)


@pytest.mark.parametrize("units", [2, 8, 16])
@pytest.mark.parametrize("seed", range(3))
def test_planted_faults_are_exactly_the_exceptions(units, seed):
    plan = pod(units)
    seen = planted(plan, Random(seed))
    judged = judge(seen)
    assert faults(judged.exceptions) == faults(compare_cabling(plan, seen).discrepancies)


def grown(leaf="leaf-{unit:02}-{rail}", spine="spine-{pod}-{rail}-{number}", core="core-{plane}-{number}"):
    """A fabric of three tiers as sites grow: its trunks are spread over the spines, and units 3 and 4 are not built."""
    nodes, built = 8, 6
    design = FabricDesign.model_validate(
        {
            "kind": "FabricDesign", "name": "grown", "rate": "4xHDR", "rails": 4,
            "nodes": [f"n0001..n{nodes * built:04}"],
            "switch": {"product": "MQM8700", "ports": 40},
            "leaves": {"name": leaf, "down": "1..8", "up": "21..28", "absent_units": [3, 4],
                       "at": row(built * 4, 1)},
            "spines": {"name": spine, "per_pair": 2, "trunk": "spread", "group": "rail", "pod": 4,
                       "down": "1..8", "up": "21..24", "oversubscription": 2, "at": row(2 * 4 * 4, 2)},
            "cores": {"name": core, "per_pair": 1, "at": row(4 * 4, 3)},
        }
    )  # fmt: skip
    return compile_topology(design, fleet_of(design, rails=4))


def test_a_grown_fabric_is_rules_with_spread_trunks_and_absent_units():
    plan = grown()
    judged = judge(in_reach(plan, as_built(plan)))
    assert (judged.comparison.verdict, judged.exceptions) == ("match", [])
    assert (judged.design.spines.trunk, judged.design.spines.pod) == ("spread", 4)
    assert judged.design.leaves.absent_units == [3, 4]


def test_a_pod_of_one_unit_whose_spines_have_one_cable_to_it_is_in_the_rules():
    design = FabricDesign.model_validate(
        {
            "kind": "FabricDesign", "name": "young", "rate": "4xHDR", "rails": 4, "nodes": ["n0001..n0012"],
            "switch": {"product": "MQM8700", "ports": 40},
            "leaves": {"name": "leaf-{unit}-{rail}", "down": "1..4", "up": "21..24", "at": row(12, 1)},
            "spines": {"name": "spine-{index}", "per_pair": 1, "group": "rail", "pod": 2,
                       "down": "1..2", "up": "21..24", "at": row(2 * 4 * 4, 2)},
            "cores": {"name": "core-{index}", "per_pair": 2, "at": row(8, 3)},
        }
    )  # fmt: skip
    plan = compile_topology(design, fleet_of(design, rails=4))
    judged = judge(in_reach(plan, as_built(plan)))
    assert (judged.comparison.verdict, judged.exceptions, judged.design.spines.pod) == ("match", [], 2)


@pytest.mark.parametrize("seed", range(3))
def test_faults_planted_in_a_grown_fabric_are_exactly_the_exceptions(seed):
    plan = grown()
    seen = planted(plan, Random(seed), swaps=3, missing=3, dead="leaf-01-3")
    judged = judge(seen)
    assert faults(judged.exceptions) == faults(compare_cabling(plan, seen).discrepancies)


def test_of_two_rails_one_may_lack_a_leaf():
    plan = fat_tree(units=3, nodes=6, rails=2, spines=2, pair=3)
    dead = next(guid for guid, device in plan.devices.items() if device.name == "leaf-0-2")
    judged = judge(in_reach(plan, [cable for cable in as_built(plan) if dead not in (cable.a.guid, cable.b.guid)]))
    assert judged.design.node_names() == sorted({device.node for device in plan if device.node})
    assert [one.kind for one in judged.exceptions] == ["device-missing"]


def test_a_rules_draft_needs_no_inventory():
    plan = pod(2)
    seen = planted(plan, Random(2), swaps=2, missing=1)
    judged = judge(seen)
    design = FabricDesign.model_validate(yaml.safe_load(draft_rules(judged, seen)))
    again = compare_cabling(compile_topology(design, NOBODY), seen)
    assert faults(again.discrepancies) == faults(judged.comparison.discrepancies)
    assert (len(design.adapters), design.adapter_names[3]) == (64, "mlx5_3")


def test_a_free_place_has_the_name_that_its_node_would_have():
    plan = pod(2)
    gone = _adapters(plan, "n0007")
    seen = in_reach(plan, [cable for cable in as_built(plan) if not {cable.a.guid, cable.b.guid} & gone])
    judged = judge(seen)
    assert judged.design.gaps == ["n0007"]
    assert draft_rules(judged, seen).count('nodes: ["n0001..n0064"]') == 1


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="ASSAY_SAMPLES names no folder of real recordings")
def test_a_real_fabric_of_5007_nodes_is_rules_with_few_exceptions():
    seen = read_topology((SAMPLES / "selene.compute.txt").read_text())
    judged = judge(seen)
    assert (judged.comparison.matching, judged.comparison.expected) == (12115, 12144)
    assert Counter(one.kind for one in judged.exceptions) == {"missing": 29}
    assert judged.design.leaves.absent_units == [19, 20, 21]


def test_an_exception_says_what_the_others_do():
    plan = pod(2)
    cables = as_built(plan)
    cables[0], cables[1] = cables[0]._replace(b=cables[1].b), cables[1]._replace(b=cables[0].b)
    judged = judge(in_reach(plan, cables))
    (line,) = describe_exceptions(judged)
    assert line.startswith("swap: 2 cables are exchanged")
    assert line.endswith("(31 nodes here have mlx5_0 on leaf-su01-r0, this one has not)")


@pytest.mark.parametrize("rails", [8, 1])
def test_a_node_in_another_port_of_its_leaves_is_one_exception_to_review(rails):
    plan = pod(2)
    gone, moved = _adapters(plan, "n0009"), sorted(_adapters(plan, "n0003"))[:rails]
    cables = [cable for cable in as_built(plan) if cable.a.guid not in gone]
    cables = [cable._replace(b=PortId(cable.b.guid, 9)) if cable.a.guid in moved else cable for cable in cables]
    lines = list(describe_exceptions(judge(in_reach(plan, cables))))
    (line,) = [line for line in lines if "n0003" in line]
    if rails == 8:
        assert line.startswith("moved: n0003 is in port 9 instead of port 3 of 8 leaves")
    else:
        assert "nodes here have" not in line, "it is on the leaf of the others"


def test_the_rules_are_a_design_and_what_nobody_saw_is_marked():
    plan = pod(2)
    seen = planted(plan, Random(1), swaps=1, missing=1)
    judged = judge(seen)
    text = draft_rules(judged, seen, judged.nodes)
    design = FabricDesign.model_validate(yaml.safe_load(text))
    assert len(text.splitlines()) < 70, "a design of rules is short"
    assert design.nodes == ["n0001..n0064"]
    assert text.count("# review: nobody saw it; write its GUID") == 1
    assert sum(line.startswith(("# review: swap", "# review: missing", "# review: device-missing"))
               for line in text.splitlines()) == 3  # fmt: skip
    assert draft_inventory(judged).count("hca_guids") == 64


def test_other_devices_stand_beside_the_rules():
    plan = pod(2)
    leaf = next(device for device in plan if device.name == "leaf-su02-r1")
    storage = DiscoveredDevice("0x00000000000000fd", "hca", 2, "storage-1 mlx5_0")
    cables = [cable for cable in as_built(plan) if cable.a.guid not in _adapters(plan, "n0064")]
    cables.append(DiscoveredCable(PortId(storage.guid, 1), PortId(leaf.guid, 32), "4xNDR"))
    seen = in_reach(plan, cables, [storage])
    judged = judge(seen)
    assert judged.exceptions == []
    listed = yaml.safe_load(draft_rules(judged, seen))
    assert [device["name"] for device in listed["devices"]] == ["storage-1 mlx5_0"]
    assert len(listed["cables"]) == 1


def _adapters(plan, node):
    return {guid for guid, device in plan.devices.items() if device.node == node}


def test_a_cabling_without_a_pattern_is_none():
    plan = fat_tree()
    cables = as_built(plan)
    ends = [cable.b for cable in cables]
    Random(3).shuffle(ends)
    mixed = [cable._replace(b=end) for cable, end in zip(cables, ends, strict=True)]
    with pytest.raises(NoPattern, match="no switches are the leaves of the same hosts"):
        judge(in_reach(plan, mixed))


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("n1 mlx5_10", ("n1", "mlx5_10")), ("n2 HCA-1", ("n2", "HCA-1")),
        ("gpu-7f3a mlx5_ib3", ("gpu-7f3a", "mlx5_ib3")),
        ("node17 ibp24s0", ("node17", "ibp24s0")), ("node17:ibP2p1s0", ("node17", "ibP2p1s0")),
        ("n7-ib3", ("n7", "ib3")), ("hall-2.rack4.n7.ib3", ("hall-2.rack4.n7", "ib3")),
        ("MT4129 ConnectX7   Mellanox Technologies", None), ("localhost HCA-3", None),
    ],
)  # fmt: skip
def test_a_host_is_known_by_what_its_adapters_announce(name, known):
    device = DiscoveredDevice("0x00000000000000a1", "hca", 1, name)
    assert find_hosts([device], NAMES).get(device.guid) == (HostAdapter(*known) if known else None)


def test_two_ports_of_one_card_are_in_one_host_and_the_inventory_wins():
    cards = [DiscoveredDevice(f"0x{n:016x}", "hca", 1, "Mellanox ConnectX-6", "0x00000000000000aa") for n in (1, 2)]
    assert {one.host for one in find_hosts(cards, NAMES).values()} == {"host-0x00000000000000aa"}
    listed = {cards[0].guid: HostAdapter("n9", "mlx5_0")}
    assert find_hosts(cards, NAMES, listed)[cards[0].guid].host == "n9"


def test_the_verb_writes_rules_and_the_nodes_that_they_need(tmp_path, monkeypatch, capsys):
    plan = pod(2)
    seen = in_reach(plan, as_built(plan))
    (tmp_path / "dump").write_text(format_net_file(seen.devices, seen.cables))
    words = ["learn", "--from", tmp_path / "dump", "--fleet", tmp_path, "--inventory", tmp_path / "nodes.yml"]
    monkeypatch.setattr(sys, "argv", ["assay", "fabric", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert yaml.safe_load(capsys.readouterr().out)["rails"] == 8
    assert len(yaml.safe_load((tmp_path / "nodes.yml").read_text())["hosts"]) == 64


@pytest.mark.parametrize("pattern", ["(", r"(?P<host>\S+)", r"(?P<host>\S+) (?P<slot>\S+) (?P<more>.)"])
def test_a_pattern_without_host_and_slot_is_refused(pattern):
    with pytest.raises(ValueError, match=r"regular expression|exactly the groups"):
        AdapterNames.model_validate(
            {"kind": "AdapterNames", "name": "ours", "patterns": {"x": {"pattern": pattern, "source": "us"}}}
        )


def test_many_slow_cables_of_a_leaf_are_one_exception():
    plan = fat_tree(units=2, nodes=6, rails=4, spines=2, pair=2)
    leaf = next(device for device in plan if device.name == "leaf-0-2")
    slow = [c._replace(rate="4xHDR") if leaf.guid in (c.a.guid, c.b.guid) else c for c in as_built(plan)]
    first = next(number for number, cable in enumerate(slow) if cable.rate != "4xHDR")
    slow[first] = slow[first]._replace(rate="1xNDR")
    judged = judge(in_reach(plan, slow))
    one, many = sorted(describe_exceptions(judged), key=len, reverse=False)
    assert "runs at 1xNDR instead of 4xNDR" in one
    assert "Slow links: 10 cables of leaf-0-2 at 4xHDR instead of 4xNDR" in many


def test_a_pattern_is_found_where_the_tool_does_not_tell_how_many_ports_a_switch_has():
    plan = fat_tree(units=4, nodes=3, rails=4, spines=2, pair=2)
    found = in_reach(plan, as_built(plan))
    used = Counter()
    for cable in found.cables:
        for port in cable[:2]:
            used[port.guid] = max(used[port.guid], port.number)
    devices = {guid: device._replace(ports=used[guid]) for guid, device in found.devices.items()}
    judged = judge(replace(found, devices=devices))
    assert judged.exceptions == []
    assert judged.design.switch.ports == max(used.values()) > devices[judged.design.leaves.at[0].guid].ports
