"""Two cables are exchanged: one ticket with four ends, closed by the scan that finds it fixed."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from assay.fabric.design import plan
from assay.fabric.scan import judge, scan
from assay.fabric.tickets import tickets
from assay.fleet.load import load_fleet
from assay.lab.fabric import lay, swap, unplug
from assay.lab.world import World

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def lab(tmp_path):
    """The example fleet with its fabric in a lab; returns the world and what a scan says now."""
    fleet = load_fleet(REPOSITORY)
    variables = {"fabric_discover": [sys.executable, "-m", "assay.lab.discover", str(tmp_path)]}
    fleet = replace(fleet, nodes={name: replace(node, variables=variables) for name, node in fleet.nodes.items()})
    design, world = fleet.designs["compute"], World(tmp_path)
    lay(world, plan(design, fleet))
    return world, lambda: judge(fleet, design, scan(fleet, design, deadline_s=60))


def test_a_swap_is_one_ticket_until_the_scan_that_finds_it_fixed(lab):
    world, look = lab
    assert (look().verdict, tickets(look())) == ("match", [])
    swap(world, "n0005/mlx5_3", "n0006/mlx5_3")
    (ticket,) = tickets(look())
    assert {(place.device, place.rack, place.u, place.label) for place in ticket.places} == {
        ("n0005 mlx5_3", "r02", 4, "R3"),
        ("n0006 mlx5_3", "r02", 14, "R3"),
        ("leaf-su01-r3", "r06", 36, "3/1"),
        ("leaf-su01-r3", "r06", 36, "3/2"),
    }
    unplug(world, "n0018/mlx5_0")
    assert sorted(one.node for one in tickets(look()) if one.key != ticket.key) == ["n0018"]
    assert ticket in tickets(look())
    swap(world, "n0005/mlx5_3", "n0006/mlx5_3")
    assert ticket.key not in [one.key for one in tickets(look())]


def test_a_lab_that_is_gone_is_partial_and_closes_nothing(lab):
    world, look = lab
    (world.home / "fabric.json").unlink()
    comparison = look()
    assert (comparison.verdict, tickets(comparison)) == ("partial", [])
    assert "exit code 1" in comparison.problems[0]
