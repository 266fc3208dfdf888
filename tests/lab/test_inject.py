"""Every known fault changes only its node, and unknown faults are refused."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.declare.loader import load_fleet
from assay.lab.fabric.ibnetdiscover import discover_lab_fabric
from assay.lab.faults.injection import FAULTS, inject_fault
from assay.lab.process_control import build_world
from assay.lab.world import LabWorld
from assay.model.errors import AssayError
from tests.support.lab_faults import CABLES, PLANTED
from tests.support.places import ROOT

START = datetime(2026, 1, 5, 8, tzinfo=UTC)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LabWorld:
    world = LabWorld(tmp_path_factory.mktemp("lab"))
    build_world(load_fleet(ROOT), world, START, 60)
    return world


def test_every_fault_of_the_vocabulary_is_planted_here() -> None:
    assert {*PLANTED, *CABLES} == set(FAULTS) - {
        "answers",
        "cooling.leak",
        "disk.failing",
        "disk.gone",
    }  # an air-cooled node has nothing that could leak, and this one no SATA drive


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_changes_its_node_and_no_other(world: LabWorld, fault: str) -> None:
    before, other = copy.deepcopy(world.load("n0003")), world.load("n0004")
    inject_fault(world, fault, "n0003", PLANTED[fault])
    if fault != "bmc.replaced":  # another BMC has another certificate, which is a file
        assert world.load("n0003") != before
    assert world.load("n0004") == other


@pytest.mark.parametrize("fault", CABLES)
def test_a_fault_of_a_cable_changes_the_discovery_and_no_node(world: LabWorld, fault: str) -> None:
    nodes, before = [world.load("n0003"), world.load("n0004")], discover_lab_fabric(world)
    inject_fault(world, fault, "n0003", CABLES[fault])
    assert discover_lab_fabric(world) != before
    assert [world.load("n0003"), world.load("n0004")] == nodes


def test_what_a_fault_takes_is_listed() -> None:
    assert FAULTS["gpu.xid"].usage == "gpu, xid=79, times=1"
    assert "kind=permanent|flip|burst|nan|heat" in FAULTS["gpu.computes-wrong"].usage
    assert all("\n" not in fault.usage for fault in FAULTS.values())
    told = CliRunner().invoke(app, ["lab", "inject", "list"]).stdout.splitlines()
    assert len(told) == len(FAULTS)
    assert any(line.startswith("gpu.xid ") and line.endswith("Takes gpu, xid=79, times=1.") for line in told)


def test_a_node_answers_again_after_a_silence(world: LabWorld) -> None:
    inject_fault(world, "bmc.silent", "n0005", {})
    inject_fault(world, "answers", "n0005", {})
    assert world.load("n0005")["fails"]["bmc_silent"] is False


@pytest.mark.parametrize(
    ("fault", "node", "arguments", "said"),
    [
        ("gpu.missin", "n0003", {"gpu": 0}, "gpu.missing"),
        ("gpu.missing", "n9999", {"gpu": 0}, "no node 'n9999'"),
        ("gpu.missing", "n0003", {"slot": 0}, "takes no slot"),
        ("gpu.missing", "", {"gpu": 0}, "no node is given: --node NODE"),
        ("gpu.xid", "n0003", {"gpu": 0, "xid": "abc"}, "xid must be a valid integer, not 'abc'"),
        ("psu.degraded", "n0003", {"psu": 0, "volts": "low"}, "volts must be a valid number, not 'low'"),
        ("gpu.computes-wrong", "n0003", {"gpu": 0, "kind": "odd"}, "kind must be 'permanent', .* not 'odd'"),
        ("gpu.missing", "n0003", {}, "gpu.missing needs gpu"),
        ("psu.failed", "n0003", {"psu": "psu1"}, "makes no sense with psu=psu1"),
        ("gpu.throttled", "n0003", {"gpu": 0, "reason": "heat"}, "'heat' is not known to NVML"),
        ("gpu.missing", "n0003", {"gpu": 8}, "n0003 has no such part"),
        ("ib.link.flap", "n0003", {"hca": "mlx5_9"}, "n0003 has no such part"),
        ("gpu.replaced", "n0003", {"gpu": 8}, "n0003 has no such part"),
        ("hca.replaced", "n0003", {"hca": "mlx5_9"}, "n0003 has no such part"),
        ("cable.unplugged", "n0003", {"hca": "mlx5_9"}, "has no 'n0003/mlx5_9'"),
        ("firmware.old", "n0003", {"ids": "CPLD", "version": "1"}, "no firmware 'CPLD'"),
    ],
)
def test_what_cannot_be_planted_says_what_can(
    world: LabWorld, fault: str, node: str, arguments: dict[str, Any], said: str
) -> None:
    before = world.load("n0003")
    with pytest.raises(AssayError, match=said):
        inject_fault(world, fault, node, arguments)
    assert world.load("n0003") == before
