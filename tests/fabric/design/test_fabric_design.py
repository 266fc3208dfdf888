"""The rules of a fabric design become the cables that NVIDIA's tables and a technician expect."""

import re
from dataclasses import replace

import pytest
import yaml
from pydantic import ValidationError

from assay.fabric.design.compiler import compile_topology
from assay.model.errors import AssayError
from assay.model.specs.fabric.cable import normalize_guid
from assay.model.specs.fabric.design_parts import expand_node_names
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.support.places import ROOT

SPINES_AT_LEAVES = [{"guid": f"0x{u:016x}", "rack": "r09", "u": u} for u in (10, 11)]


def test_every_node_meets_its_rail_on_one_leaf(small):
    cable = small.cables_of_node("n03")[2]
    assert str(cable.a) == "n03 mlx5_2 port R2 (r01 U24)"
    assert str(cable.b) == "leaf-1-2 port 2/1 (r09 U12)"
    assert cable.rate == "4xNDR"


def test_every_leaf_has_the_same_number_of_cables_to_every_spine(small):
    pairs = [(c.a.device, c.b.device) for c in small.cables if c.b.device.startswith("spine")]
    assert {pairs.count(pair) for pair in pairs} == {4}
    assert len(set(pairs)) == 8


def test_no_port_is_cabled_twice(small):
    ports = [end.port_id for cable in small.cables for end in cable.ends]
    assert len(set(ports)) == len(ports) == 2 * len(small.cables)


def test_labels_follow_the_cages_of_a_qm9700(design):
    assert [design.switch.label(port) for port in (1, 2, 33, 64)] == ["1/1", "1/2", "17/1", "32/2"]


def test_the_example_design_cables_the_example_fleet():
    from assay.declare.loader import load_fleet

    fleet = load_fleet(ROOT)
    cables = list(compile_topology(fleet.designs["compute"], fleet).cables)
    assert len(cables) == 20 * 8 + 8 * 32
    assert {end.node for cable in cables for end in cable.ends} - {""} == set(fleet.nodes)
    assert all(end.rack and end.u and end.label for cable in cables for end in cable.ends)


def test_the_example_design_names_its_schema_in_its_first_line():
    text = (ROOT / "specs/fabrics/compute.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=../schemas/fabric-design.json\n")
    assert (ROOT / "specs/schemas/fabric-design.json").exists()
    assert FabricDesign.model_validate(yaml.safe_load(text)).fat_tree.unit_count == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nodes": ["n01..n09"]}, "2 units × 4 rails need 8 leaves, not 4"),
        ({"nodes": ["n01", "n01..n02"]}, "node n01 is given twice"),
        ({"nodes": ["n09..n01"]}, "is no range of names"),
        ({"rate": "4xWDR"}, "rate"),
        ({"switch": {"product": "small", "ports": 12}}, "a small has 12 ports"),
        ({"spines": {"name": "s", "per_pair": 3, "at": [{"guid": "0x" + "1" * 16, "rack": "a", "u": 1}]}}, "up ports"),
        ({"spines": {"name": "s", "per_pair": 4, "at": SPINES_AT_LEAVES}},
         "spines.at.0.u: place r09 U10 is given twice; spines.at.1.u: place r09 U11 is given twice"),
        ({"racks": 3}, "racks"),
    ],
)  # fmt: skip
def test_rules_that_do_not_fit_together_are_refused(make_design, changes, said):
    with pytest.raises(ValidationError, match=re.escape(said)):
        make_design(**changes)


def test_overlapping_port_ranges_are_refused(make_design, design):
    leaves = design.leaves.model_dump() | {"up": "8..15"}
    with pytest.raises(ValidationError, match="overlap"):
        make_design(leaves=leaves)


def test_a_port_range_that_holds_nothing_is_refused(make_design, design):
    with pytest.raises(ValidationError, match="holds no ports"):
        make_design(leaves=design.leaves.model_dump() | {"down": "0..8"})


def test_a_spine_with_more_cables_than_ports_is_refused(make_design, design):
    with pytest.raises(ValidationError, match="exceed 15 ports"):
        make_design(
            switch={"product": "odd", "ports": 15}, leaves=design.leaves.model_dump() | {"down": "1..7", "up": "8..15"}
        )


def test_a_node_that_the_inventory_lacks_is_named(design, fleet):
    with pytest.raises(AssayError, match="n06") as trouble:
        compile_topology(
            design, replace(fleet, nodes={name: node for name, node in fleet.nodes.items() if name != "n06"})
        )
    assert trouble.value.fix


def test_a_node_with_too_few_guids_is_named(design, fleet):
    nodes = dict(fleet.nodes) | {"n02": replace(fleet.nodes["n02"], hca_guids=("0x" + "0" * 15 + "1",))}
    with pytest.raises(AssayError, match="n02 has 1 hca_guids, but the fabric small has 4 rails"):
        compile_topology(design, replace(fleet, nodes=nodes))


def test_two_devices_with_one_guid_are_named(design, fleet):
    nodes = dict(fleet.nodes) | {"n02": replace(fleet.nodes["n02"], hca_guids=fleet.nodes["n01"].hca_guids)}
    with pytest.raises(AssayError, match="n01 mlx5_0 and n02 mlx5_0 of the fabric small have the same GUID"):
        compile_topology(design, replace(fleet, nodes=nodes))


def test_a_range_keeps_its_padding():
    assert expand_node_names("n098..n101") == ["n098", "n099", "n100", "n101"]


@pytest.mark.parametrize(("written", "read"), [("0xA0", f"0x{0xA0:016x}"), ("c42a103008b40d0", "0x0c42a103008b40d0")])
def test_a_guid_has_one_form(written, read):
    assert normalize_guid(written) == read


@pytest.mark.parametrize("written", ["", "0x1" + "0" * 16, "guid"])
def test_what_is_no_guid_is_refused(written):
    with pytest.raises(ValueError, match=r"GUID|invalid literal"):
        normalize_guid(written)
