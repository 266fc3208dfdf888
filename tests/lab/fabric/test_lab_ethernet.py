"""An Ethernet fabric of the lab prints LLDP, which compares with its design, split cages and slow links too."""

import pytest

from assay.declare.loader import load_fleet
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.compiler import compile_topology
from assay.fabric.readers.format_detection import read_topology
from assay.lab.fabric.cabling import has_ethernet, lay_cables, slow_cable, swap_cables, unplug_cable
from assay.lab.fabric.ibnetdiscover import discover_lab_fabric
from assay.lab.fabric.lldp import discover_ethernet
from assay.lab.virtual_node_state import write_json
from assay.lab.world import LabWorld
from tests.fabric.readers.test_lldp import make_ethernet
from tests.support.places import ROOT


@pytest.fixture(scope="module")
def ethernet():
    return make_ethernet()


@pytest.fixture
def world(tmp_path, ethernet) -> LabWorld:
    lab = LabWorld(tmp_path)
    lay_cables(lab, ethernet)
    return lab


def compare(world, ethernet):
    return compare_cabling(ethernet, read_topology(discover_ethernet(world)))


def test_a_fabric_as_designed_matches(world, ethernet):
    found = compare(world, ethernet)
    assert (found.verdict, found.matching) == ("match", len(ethernet.cables))
    assert has_ethernet(world, "n01")
    assert not has_ethernet(world, "elsewhere")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda world: swap_cables(world, "n01/mlx5_0", "n02/mlx5_0"), "swap"),
        (lambda world: unplug_cable(world, "n03/mlx5_1"), "missing"),
        (lambda world: slow_cable(world, "n03/mlx5_1", "100G"), "degraded"),
    ],
)
def test_a_mistake_is_found(world, ethernet, change, kind):
    change(world)
    found = compare(world, ethernet)
    assert [discrepancy.kind for discrepancy in found.discrepancies] == [kind]


def test_an_adapter_s_own_rate_slows_its_link(world, ethernet):
    guid = ethernet.cables_of_node("n02")[0].a.guid
    write_json(
        world.folder("n02") / "state.json",
        {"hcas": [{"guid": guid, "state": "ACTIVE", "rate_gbps": 200, "roce": {"interface": "ens1np0"}}]},
    )
    (slow,) = compare(world, ethernet).discrepancies
    assert (slow.kind, slow.nodes) == ("degraded", ("n02",))


def test_a_mixed_fleet_has_both_discoveries(tmp_path, ethernet):
    fleet = load_fleet(ROOT)
    compute = compile_topology(fleet.designs["compute"], fleet)
    lab = LabWorld(tmp_path)
    lay_cables(lab, ethernet, compute)
    assert has_ethernet(lab, "n01")
    assert not has_ethernet(lab, "n0001")
    assert compare_cabling(ethernet, read_topology(discover_ethernet(lab, "n01"))).verdict == "match"
    assert compare_cabling(compute, read_topology(discover_lab_fabric(lab, "n0001"))).verdict == "match"
