"""Two swapped cables give one ticket with four ends; the scan after the repair closes it."""

import sys
from dataclasses import replace

import pytest

from assay.declare.loader import load_fleet
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.fabric.design.compiler import compile_topology
from assay.fabric.scan import judge_scan, run_fabric_scan
from assay.lab.fabric.cabling import lay_cables, swap_cables, unplug_cable
from assay.lab.world import LabWorld
from assay.model.specs.node_settings import make_node_settings
from tests.support.places import ROOT


@pytest.fixture
def lab(tmp_path):
    """The example fleet with its fabric in a lab; returns the world and what a scan says now."""
    fleet = load_fleet(ROOT)
    variables = {"fabric_discover": [sys.executable, "-m", "assay.lab.fabric.ibnetdiscover", str(tmp_path)]}
    settings = make_node_settings(variables)
    fleet = replace(fleet, nodes={name: replace(node, settings=settings) for name, node in fleet.nodes.items()})
    design, world = fleet.designs["compute"], LabWorld(tmp_path)
    lay_cables(world, compile_topology(design, fleet))
    return world, lambda: judge_scan(fleet, design, run_fabric_scan(fleet, design, deadline_s=60))


def test_a_swap_is_one_ticket_until_the_scan_that_finds_it_fixed(lab):
    world, look = lab
    assert (look().verdict, make_cabling_tickets(look())) == ("match", [])
    swap_cables(world, "n0005/mlx5_3", "n0006/mlx5_3")
    (ticket,) = make_cabling_tickets(look())
    assert {(place.device, place.rack, place.u, place.label) for place in ticket.places} == {
        ("n0005 mlx5_3", "r02", 4, "R3"),
        ("n0006 mlx5_3", "r02", 14, "R3"),
        ("leaf-su01-r3", "r06", 36, "3/1"),
        ("leaf-su01-r3", "r06", 36, "3/2"),
    }
    unplug_cable(world, "n0018/mlx5_0")
    assert sorted(one.node for one in make_cabling_tickets(look()) if one.key != ticket.key) == ["n0018"]
    assert ticket in make_cabling_tickets(look())
    swap_cables(world, "n0005/mlx5_3", "n0006/mlx5_3")
    assert ticket.key not in [one.key for one in make_cabling_tickets(look())]


def test_a_lab_that_is_gone_is_partial_and_closes_nothing(lab):
    world, look = lab
    (world.home / "fabric.json").unlink()
    comparison = look()
    assert (comparison.verdict, make_cabling_tickets(comparison)) == ("partial", [])
    assert "exit code 1" in comparison.problems[0]
