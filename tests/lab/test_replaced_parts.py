"""A replaced part is another one and healthy: nothing that was planted on it is left, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assay.declare.loader import load_fleet
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.compiler import compile_topology
from assay.fabric.readers.ibnetdiscover import parse
from assay.lab.fabric.ibnetdiscover import discover_lab_fabric
from assay.lab.faults.injection import inject_fault
from assay.lab.process_control import build_world
from assay.lab.virtual_node_state import VirtualNodeState
from assay.lab.world import LabWorld
from tests.support.lab_faults import PLANTED
from tests.support.places import ROOT

NODE, START = "n0003", datetime(2026, 1, 5, 8, tzinfo=UTC)
FLEET = load_fleet(ROOT)
IDENTITIES = ("serial", "uuid", "guid", "mac")
REPLACED = {
    "gpu.replaced": ({"gpu": 4}, "gpu", ("gpu.", "load.provokes")),
    "hca.replaced": ({"hca": "mlx5_2"}, "hca", ("hca.", "ib.")),
    "dimm.replaced": ({"dimm": 5}, "dimm", ("dimm.", "memory.forgets")),
    "nvme.replaced": ({"drive": 2}, "drive", ("nvme.",)),
    "psu.replaced": ({"psu": 3}, "psu", ("psu.",)),
}
"""Fault → its argument, the name of the argument, and which faults of that part it heals."""


@pytest.fixture
def world(tmp_path: Path) -> LabWorld:
    world = LabWorld(tmp_path)
    build_world(FLEET, world, START, 60)
    return world


def list_leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict | list):
        for key, below in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from list_leaves(below, f"{path}/{key}")
        if not tree:
            yield path, tree
    else:
        yield path, tree


def list_changes(before: VirtualNodeState, after: VirtualNodeState) -> set[str]:
    """Return the paths at which two states differ, but for the start of the node and the logs of its BMC."""
    old, new = dict(list_leaves(before)), dict(list_leaves(after))
    started = ("/boot", "/power", "/events", "/last_event", "/console", "/network_start", "/provoked")
    different = {path for path in {*old, *new} if old.get(path) != new.get(path)}
    return {path for path in different if not path.startswith(started)}


@pytest.mark.parametrize("fault", REPLACED)
def test_a_replaced_part_is_another_one_and_nothing_else_is_different(world: LabWorld, fault: str) -> None:
    argument, name, healed = REPLACED[fault]
    before = world.load(NODE)
    planted = [one for one in PLANTED if one.startswith(healed) and not one.endswith(".replaced")]
    for one in planted:
        given = PLANTED[one]
        inject_fault(world, one, NODE, {**given, **argument} if name in given else given)
    assert list_changes(before, world.load(NODE))
    inject_fault(world, fault, NODE, argument)
    changed = list_changes(before, world.load(NODE))
    assert changed
    assert {path.rsplit("/", 1)[-1] for path in changed} <= {*IDENTITIES}, planted
    once = world.load(NODE)
    inject_fault(world, fault, NODE, argument)
    assert list_changes(once, world.load(NODE)) == changed, "the next one is another one again"


def test_a_node_starts_again_with_its_new_gpu_and_keeps_running_with_its_new_drive(world: LabWorld) -> None:
    before = world.load(NODE)["boot"]
    drive = world.folder(NODE) / "root/dev/nvme2n1"
    drive.write_bytes(b"a customer's data")
    inject_fault(world, "nvme.replaced", NODE, {"drive": 2})
    assert b"customer" not in drive.read_bytes()
    assert world.load(NODE)["boot"] == before
    inject_fault(world, "gpu.replaced", NODE, {"gpu": 1})
    after = world.load(NODE)["boot"]
    assert (after["id"] != before["id"], after["count"]) == (True, before["count"] + 1)


def test_a_new_adapter_is_in_the_discovery_with_the_old_cable(world: LabWorld) -> None:
    plan = compile_topology(FLEET.designs["compute"], FLEET)
    inject_fault(world, "hca.replaced", NODE, {"hca": "mlx5_2"})
    (found,) = compare_cabling(plan, parse(discover_lab_fabric(world))).discrepancies
    assert (found.kind, found.nodes) == ("device-replaced", (NODE,)), found


def test_another_chassis_has_no_serial_number_or_address_of_the_old_one(world: LabWorld) -> None:
    old = world.load(NODE)
    inject_fault(world, "gpu.missing", NODE, {"gpu": 1})
    inject_fault(world, "bmc.silent", NODE, {})
    inject_fault(world, "chassis.replaced", NODE, {})
    new = world.load(NODE)
    before, after = dict(list_leaves(old)), dict(list_leaves(new))
    identities = {path for path in before if path.rsplit("/", 1)[-1] in IDENTITIES}
    assert {"/serial", "/gpus/0/uuid", "/hcas/7/guid", "/nics/0/mac", "/nvme/0/serial", "/psus/0/serial"} <= identities
    assert [path for path in identities if before[path] == after[path]] == []
    assert list_changes(old, new) == identities
    inject_fault(world, "chassis.replaced", NODE, {"serial": "NEWCHASSIS003"})
    assert world.load(NODE)["serial"] == "NEWCHASSIS003"
