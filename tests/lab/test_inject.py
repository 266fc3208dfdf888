"""Every known fault changes only its node, and unknown faults are refused."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assay.fleet.fleet_loader import load_fleet
from assay.lab.faults.injection import FAULTS, inject_fault
from assay.lab.process_control import build_world
from assay.lab.world import LabWorld
from assay.model.errors import AssayError

ROOT = Path(__file__).parents[2]
START = datetime(2026, 1, 5, 8, tzinfo=UTC)

PLANTED: dict[str, dict[str, Any]] = {
    "acs.on": {},
    "bond.degraded": {},
    "clock.lost": {},
    "clock.source": {},
    "cpu.governor": {},
    "cpu.offline": {},
    "dimm.errors": {"dimm": 5, "uncorrected": 1},
    "dimm.missing": {"dimm": 17},
    "dimm.slow": {"dimm": 1},
    "file-system.full": {},
    "file-system.read-only": {},
    "drives.forget": {},
    "gpu.computes-slowly": {"gpu": 3},
    "gpu.computes-wrong": {"gpu": 5},
    "gpu.copies-slowly": {"gpu": 2},
    "gpu.fails-diagnosis": {"gpu": 2},
    "gpu.gives-nothing": {"gpu": 1},
    "gpu.hangs": {"gpu": 1},
    "gpu.slow": {"gpu": 4},
    "hca.slow": {"hca": "mlx5_2"},
    "memory.forgets": {},
    "hca.counter": {"hca": "mlx5_2", "counter": "VL15_dropped"},
    "hca.firmware": {"hca": "mlx5_2"},
    "hca.misplaced": {"hca": "mlx5_2"},
    "hca.partition": {"hca": "mlx5_2"},
    "iommu": {},
    "kernel.old": {},
    "kernel.soft-lockup": {},
    "machine-check": {},
    "module.missing": {},
    "nic.errors": {"nic": "eth0"},
    "nic.flap": {"nic": "eth0"},
    "nic.mtu": {"nic": "eth0"},
    "nvme.dead": {"drive": 2},
    "nvme.failing": {"drive": 2},
    "nvme.hot": {"drive": 2},
    "nvme.worn": {"drive": 2},
    "pcie.errors": {"device": "nvme4", "correctable": 5000},
    "pcie.narrow": {"device": "mlx5_6", "width": 8},
    "processes.hung": {},
    "service.failed": {},
    "swap.on": {},
    "sysctl.changed": {"name": "kernel.numa_balancing", "value": "1"},
    "bmc.silent": {},
    "firmware.old": {"ids": "BMC,BIOS", "version": "0.1"},
    "flash.bmc-restarts": {"component": "gpu", "forgets": True},
    "flash.fails": {"component": "bmc"},
    "flash.rolls-back": {"component": "bios"},
    "flash.second-reset": {"component": "bios"},
    "flash.task-lost": {"component": "bios", "at_percent": 10, "written": False},
    "gpu.busy": {"gpu": 0},
    "gpu.fabric": {"gpu": 0},
    "gpu.inforom": {"gpu": 0},
    "gpu.lost": {"gpu": 3},
    "gpu.memory.corrected": {"gpu": 0},
    "gpu.memory.remap": {"gpu": 0, "failed": True},
    "gpu.memory.sram": {"gpu": 0},
    "gpu.memory.uncorrectable": {"gpu": 0},
    "gpu.missing": {"gpu": 6},
    "gpu.nvlink.down": {"gpu": 1, "links": 2},
    "gpu.nvlink.errors": {"gpu": 1, "link": 7},
    "gpu.pcie.degraded": {"gpu": 1},
    "gpu.recovery": {"gpu": 2, "action": "drain_and_reset"},
    "fabric-manager.old": {},
    "file.changed": {"path": "/etc/security/limits.d/90-assay.conf"},
    "hugepages.changed": {},
    "time-servers.changed": {},
    "unit-setting.changed": {"unit": "containerd.service", "name": "LimitMEMLOCK"},
    "module-option.changed": {"module": "nvidia", "option": "NVreg_EnablePCIERelaxedOrderingMode"},
    "gpu.setting": {"gpu": 2, "name": "power_limit_w", "value": "500"},
    "hca.setting": {"hca": "mlx5_3", "value": "2"},
    "gpu.thermal": {"gpu": 2},
    "gpu.throttled": {"gpu": 2, "reason": "sw_thermal_slowdown"},
    "gpu.xid": {"gpu": 4, "xid": 79},
    "ib.link.flap": {"hca": "mlx5_5", "times": 4},
    "nvme.sanitize-fails": {"drive": 1},
    "nvme.sanitize-lies": {"drive": 2},
    "nvme.wipe-unknown": {"drive": 3},
    "machine.other": {"serial": "A520112X4400099"},
    "machine.other-place": {"rack": "r02", "u": 14},
    "load.provokes": {"gpu": 5, "xid": 119},
    "probe.hangs": {},
    "psu.failed": {"psu": 3},
    "bios.changed": {"attribute": "SRIOVSupport", "value": "Disabled"},
    "bmc.clock": {"seconds": 900},
    "boot.from-disk": {},
    "boot.hangs": {},
    "boot.override": {},
    "boot.server": {"url": "http://127.0.0.1:8080"},
    "chassis.open": {},
    "cpu.unhealthy": {"cpu": 1},
    "dimm.unhealthy": {"dimm": 9},
    "fan.failed": {"fan": 2},
    "fan.slow": {"fan": 3},
    "inlet.hot": {},
    "power.cap": {"watts": 4000},
    "power.restore": {},
    "bmc.lacks": {"name": "NTP"},
    "bmc.account": {"user": "mallory"},
    "bmc.ntp": {"enabled": False},
    "bmc.syslog": {"server": "x.example:514"},
    "psu.degraded": {"psu": 1},
    "psu.lost": {"psu": 0},
    "secure-boot": {"on": True},
    "sel.entry": {"message": "Uncorrectable ECC", "severity": "Critical"},
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LabWorld:
    world = LabWorld(tmp_path_factory.mktemp("lab"))
    build_world(load_fleet(ROOT), world, START, 60)
    return world


def test_every_fault_of_the_vocabulary_is_planted_here() -> None:
    assert set(PLANTED) == set(FAULTS) - {"answers", "cooling.leak"}  # an air-cooled node has nothing that could leak


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_changes_its_node_and_no_other(world: LabWorld, fault: str) -> None:
    before, other = copy.deepcopy(world.load("n0003")), world.load("n0004")
    inject_fault(world, fault, "n0003", PLANTED[fault])
    assert world.load("n0003") != before
    assert world.load("n0004") == other


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
        ("gpu.missing", "n0003", {}, "it takes: gpu"),
        ("gpu.throttled", "n0003", {"gpu": 0, "reason": "heat"}, "'heat' is not known to NVML"),
        ("gpu.missing", "n0003", {"gpu": 8}, "gpu.missing on n0003"),
        ("ib.link.flap", "n0003", {"hca": "mlx5_9"}, "ib.link.flap on n0003"),
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
