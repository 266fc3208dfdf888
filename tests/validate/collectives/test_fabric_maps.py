"""The map of a fabric: leaves, places and uplinks from the design, and routes as the subnet manager set them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.fabric.design.compiler import compile_topology
from assay.fabric.readers.forwarding_tables import read_forwarding_tables
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.validate.collectives.fabric_map import FabricPart, add_routes, build_fabric_map, find_nvlink_domains
from tests.support.fabrics.fat_trees import fat_tree
from tests.support.fabrics.partners import AVAILABLE, WHY_NOT, Partners
from tests.support.fabrics.plane_trees import plane_tree
from tests.support.fabrics.superpods import fleet_of, superpod
from tests.support.places import ROOT

TABLES = (ROOT / "tests/data/infiniband/dump_fts.txt").read_text()
SMALL = {"units": 2, "nodes": 2, "rails": 1, "spines": 1, "pair": 2}


def test_a_design_says_leaves_places_and_uplinks() -> None:
    design = superpod(2)
    fabric = build_fabric_map(compile_topology(design, fleet_of(design)), {})
    assert len(fabric.nodes) == 64
    assert {unit: len(names) for unit, names in fabric.units.items()} == {
        ", ".join(f"leaf-su{unit:02}-r{rail}" for rail in range(8)): 32 for unit in (1, 2)
    }
    node = fabric.nodes["n0034"]
    assert (node.leaves[3], node.places[3]) == ("leaf-su02-r3", 1)
    assert fabric.list_uplinks_between("n0001", "n0034", 3) == [
        FabricPart("uplink", "leaf-su01-r3[34]"),
        FabricPart("uplink", "leaf-su02-r3[33]"),
    ]
    assert fabric.list_uplinks_between("n0001", "n0002", 3) == [], "one leaf has both"


def test_the_first_plane_stands_for_all() -> None:
    fabric = build_fabric_map(plane_tree(planes=4, units=2, rails=2), {})
    assert fabric.rails == 2
    assert fabric.nodes["n0005"].leaves == ("leaf-2-0-p1", "leaf-2-1-p1")
    assert set(fabric.uplinks) == {f"leaf-{unit}-{rail}-p1" for unit in (1, 2) for rail in (0, 1)}


def test_the_tables_of_the_subnet_manager_decide_over_the_design() -> None:
    topology = fat_tree(**SMALL)
    by_design = build_fabric_map(topology, {})
    swapped = TABLES.replace("0x0002 003", "0x0002 004", 1)
    fabric = add_routes(by_design, topology, read_forwarding_tables(swapped).tables)
    assert by_design.find_uplink("leaf-0-1", "n000", 0) == "leaf-0-1[3]"
    assert fabric.find_uplink("leaf-0-1", "n000", 0) == "leaf-0-1[4]"
    assert fabric.find_uplink("leaf-0-0", "n002", 0) == "leaf-0-0[3]"


@pytest.mark.parametrize(
    "text", ["", "Multicast mlids [0xc000] of switch guid 0xb000000000000040\n0x1 003 : ()", TABLES[:90]]
)
def test_tables_that_lead_nowhere_are_refused(text: str) -> None:
    topology = fat_tree(**SMALL)
    with pytest.raises(AssayError, match="no forwarding table"):
        add_routes(build_fabric_map(topology, {}), topology, read_forwarding_tables(text).tables)


def test_tables_of_another_fabric_are_refused() -> None:
    topology = fat_tree(**SMALL | {"units": 3})
    with pytest.raises(AssayError, match="no forwarding table"):
        add_routes(
            build_fabric_map(topology, {}), topology, read_forwarding_tables(TABLES.replace("0xb0", "0xe0")).tables
        )


@pytest.mark.skipif(not AVAILABLE, reason=WHY_NOT)
def test_the_real_tables_of_opensm_are_read(tmp_path: Path) -> None:
    topology = fat_tree(units=2, nodes=3, rails=2, spines=2, pair=2)
    running = Partners(topology, tmp_path)
    try:
        running.manage()
        tables = read_forwarding_tables(running.ask("dump_fts")[0]).tables
    finally:
        running.end()
    fabric = add_routes(build_fabric_map(topology, {}), topology, tables)
    pairs = {(leaf, name, rail) for leaf, name, rail in fabric.routes if fabric.nodes[name].leaves[rail] != leaf}
    assert len(pairs) == len(fabric.routes) == 36, "each leaf leads to each adapter of another leaf by an uplink"


def test_nodes_of_a_rack_that_is_one_machine_share_an_nvlink_domain() -> None:
    from assay.declare.loader import load_fleet

    root = ROOT
    fleet = load_fleet(root)
    assert find_nvlink_domains(fleet) == {}, "no rack of the example is one machine"
    rack_scale = next(spec.name for spec in fleet.node_specs.values() if spec.rack)
    node = replace(next(iter(fleet.nodes.values())), spec=rack_scale, site="lab1", rack="r09")
    racked = Fleet(root, {node.name: node}, node_specs=fleet.node_specs)
    assert find_nvlink_domains(racked) == {node.name: "lab1 r09"}
