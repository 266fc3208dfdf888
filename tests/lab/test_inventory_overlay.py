"""What the lab lays over the inventory: no address, program or secret of a real node is left to reach."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from assay.declare.loader import load_fleet
from assay.lab.daemon import write_inventory_overlay
from assay.lab.process_control import build_world
from assay.lab.world import LabWorld
from tests.support.places import ROOT
from tests.support.serving_fleet import change_yaml, make_serving_fleet

REAL = {
    "bmc_fingerprint": "sha256:" + ":".join(["AB"] * 32),
    "bmc_ca": "/etc/ssl/ours.pem",
    "probe_command": ["/opt/assay/probe"],
    "reach": ["ssh", "jump"],
    "load": {"way": "path", "path": "/opt/assay-load"},
    "fabric_discover": ["/opt/discover"],
    "fabric_facts": {"errors": ["/opt/errors"], "links": ["/opt/links"]},
}
"""Variables of real nodes, each of which would reach something real."""


def test_no_variable_of_a_real_node_reaches_into_the_lab(tmp_path: Path) -> None:
    fleet_home, world = tmp_path / "fleet", LabWorld(tmp_path / "world")
    fleet_home.mkdir()
    make_serving_fleet(fleet_home, ["n0001"])
    change_yaml(fleet_home / "inventory/a.yml", lambda pools: pools["a"]["vars"].update(REAL))
    declared = load_fleet(fleet_home)
    assert declared.nodes["n0001"].settings.bmc_fingerprint == REAL["bmc_fingerprint"], "the plant is in the inventory"
    build_world(declared, world, datetime(2026, 1, 5, tzinfo=UTC))
    write_inventory_overlay(world, {"n0001": 4711}, 4712)
    settings = load_fleet(fleet_home, [world.home / "inventory.yml"]).nodes["n0001"].settings.model_dump(mode="json")
    assert (settings["bmc_fingerprint"], settings["probe_command"], settings["load"]) == ("", [], None)
    assert [name for name in REAL if settings[name] == REAL[name]] == []
    assert "/opt" not in str(settings)


def test_the_nodes_of_each_fabric_share_its_commands(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    shutil.copytree(ROOT / "inventory", tmp_path / "inventory")
    fleet, world = load_fleet(tmp_path), LabWorld(tmp_path / "world")
    build_world(fleet, world, datetime(2026, 1, 5, tzinfo=UTC))
    write_inventory_overlay(world, dict.fromkeys(fleet.nodes, 4711), 4712)
    seen = load_fleet(tmp_path, [world.home / "inventory.yml"])
    assert len({tuple(node.settings.fabric_discover) for node in seen.nodes.values()}) == 1
