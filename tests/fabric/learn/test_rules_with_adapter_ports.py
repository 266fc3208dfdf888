"""Rules for adapters with several cabled ports: each port is a rail."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from assay.declare.starter.shipped_specs import find_adapter_names
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.fabric.design.compiler import compile_topology
from assay.fabric.learn.draft import draft_rules
from assay.fabric.learn.hosts import find_hosts, list_inventory_adapters
from assay.fabric.learn.judged_design import judge_discovery
from assay.fabric.learn.tree import NoPattern
from assay.model.fleet import Fleet
from assay.model.specs.fabric.cable import PortId
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.support.fabrics.fat_trees import as_built, in_reach
from tests.support.fabrics.superpods import fleet_of, row

NOBODY = Fleet(Path(), {})
BY_ADAPTER = ["0/1", "0/2", "1/1", "1/2"]
BY_PORT = ["0/1", "1/1", "0/2", "1/2"]


def twin_design(ports, units=3, places=6, **changes):
    rules = {
        "kind": "FabricDesign", "name": "twin", "rate": "4xFDR", "rails": len(ports), "adapter_ports": ports,
        "nodes": [f"n0001..n{units * places:04}"],
        "switch": {"product": "SX6036", "ports": 36},
        "leaves": {"name": "leaf-{unit}-{rail}", "down": f"1..{places}", "up": "19..26",
                   "at": row(units * len(ports), 1)},
        "spines": {"name": "spine-{index}", "per_pair": 2, "at": row(4, 2)},
    }  # fmt: skip
    return FabricDesign.model_validate(rules | changes)


def twin_tree(ports, **shape):
    design = twin_design(ports, **shape)
    return compile_topology(design, fleet_of(design, design.adapters_per_node))


def learn(seen):
    judged = judge_discovery(seen, "learned", NOBODY, find_hosts(seen.devices.values(), find_adapter_names(None)))
    learned = FabricDesign.model_validate(yaml.safe_load(draft_rules(judged, seen)))
    return judged, learned, compile_topology(learned, NOBODY)


@pytest.mark.parametrize("ports", [BY_ADAPTER, BY_PORT], ids=["by adapter", "by port"])
def test_each_port_is_cabled_to_the_leaf_of_its_rail(ports):
    plan = twin_tree(ports)
    own = {f"{end.device.partition(' mlx5_')[2]}/{end.port}": far.device for cable in plan.cables_of_node("n0008")
           for end, far in (cable.ends, cable.ends[::-1]) if end.node}  # fmt: skip
    assert own == {port: f"leaf-2-{rail}" for rail, port in enumerate(ports)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"adapter_ports": BY_PORT[:3]}, "3 ports of adapters for 4 rails"),
        ({"adapter_ports": ["0/1", "0/2", "1/1", "1/1"]}, "one port is two rails"),
        ({"adapter_ports": ["0/1", "0/2", "2/1", "2/2"]}, "an adapter is left out"),
        ({"planes": 2}, "an adapter's ports are its planes or its rails"),
    ],
)
def test_ports_that_contradict_the_rails_are_refused(changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        twin_design(BY_PORT, **changes)


@pytest.mark.parametrize("ports", [BY_ADAPTER, BY_PORT], ids=["by adapter", "by port"])
def test_a_clean_fabric_is_learnt_as_rules(ports):
    plan = twin_tree(ports)
    seen = in_reach(plan, as_built(plan))
    judged, learned, topology = learn(seen)
    assert (judged.exceptions, learned.adapter_ports, learned.adapter_names) == ([], ports, ["mlx5_0", "mlx5_1"])
    assert compare_cabling(topology, seen).verdict == "match"


def test_crossed_ports_of_an_adapter_cost_two_rails():
    plan = twin_tree(BY_ADAPTER)
    cables = as_built(plan)
    a, b = (number for number, cable in enumerate(cables) if plan.devices[cable.a.guid].name == "n0004 mlx5_0")
    cables[a], cables[b] = cables[a]._replace(b=cables[b].b), cables[b]._replace(b=cables[a].b)
    (ticket,) = make_cabling_tickets(compare_cabling(plan, in_reach(plan, cables)))
    assert ticket.severity == "degraded"


@pytest.mark.parametrize("ports", [BY_ADAPTER, BY_PORT], ids=["by adapter", "by port"])
def test_cores_tell_the_order_of_rails_that_have_spines_of_their_own(ports):
    tiers = {
        "leaves": {"name": "leaf-{unit}-{rail}", "down": "1..4", "up": "19..20", "at": row(8, 1)},
        "spines": {"name": "spine-{rail}-{number}", "group": "rail", "per_pair": 1, "down": "1..2", "up": "19..20",
                   "at": row(8, 2)},
        "cores": {"name": "core-{index}", "per_pair": 1, "plane": "all", "at": row(2, 3)},
    }  # fmt: skip
    plan = twin_tree(ports, units=2, places=4, **tiers)
    judged, learned, _ = learn(in_reach(plan, as_built(plan)))
    assert (judged.exceptions, learned.adapter_ports) == ([], ports)


def test_the_inventory_tells_the_order_of_the_adapters():
    """Its order is not that of the names that the adapters announce."""
    design = twin_design(BY_PORT)
    plan = compile_topology(design, fleet_of(design, 2))
    nodes = {name: replace(node, hca_guids=node.hca_guids[::-1]) for name, node in fleet_of(design, 2).nodes.items()}
    fleet, seen = Fleet(Path(), nodes), in_reach(plan, as_built(plan))
    hosts = find_hosts(seen.devices.values(), find_adapter_names(None), list_inventory_adapters(fleet))
    judged = judge_discovery(seen, "learned", fleet, hosts)
    assert judged.exceptions == []
    assert judged.nodes == {name: node.hca_guids for name, node in nodes.items()}
    assert judged.design.adapter_ports == ["1/1", "0/1", "1/2", "0/2"]


def test_two_ports_on_one_leaf_are_no_rules():
    """A leaf has one port for each node by the rules."""
    plan = twin_tree(BY_ADAPTER)
    of_name = {device.name: device.guid for device in plan}
    moved = {
        of_name[f"leaf-{unit}-{rail}"]: of_name[f"leaf-{unit}-{rail - 1}"] for unit in (1, 2, 3) for rail in (1, 3)
    }
    cables = [cable._replace(b=PortId(moved[cable.b.guid], cable.b.number + 6)) if cable.b.guid in moved
              and plan.devices[cable.a.guid].node else cable for cable in as_built(plan)]  # fmt: skip
    with pytest.raises(NoPattern):
        learn(in_reach(plan, cables))


@given(st.sampled_from([BY_ADAPTER, BY_PORT]), st.integers(0, 10_000))
def test_planted_faults_are_the_exceptions(ports, seed):
    plan, rng = twin_tree(ports), Random(seed)
    cables = as_built(plan)
    a, b, *lost = rng.sample(range(len(cables)), 4)
    cables[a], cables[b] = cables[a]._replace(b=cables[b].b), cables[b]._replace(b=cables[a].b)
    seen = in_reach(plan, [cable for number, cable in enumerate(cables) if number not in lost])
    judged, _, _ = learn(seen)
    told = compare_cabling(plan, seen)
    assert Counter(one.kind for one in judged.exceptions) == Counter(one.kind for one in told.discrepancies)
    assert judged.comparison.matching == told.matching
