"""A planted fault of the host fails exactly the checks for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.lab.faults.injection import inject_fault
from assay.lab.world import LabWorld
from assay.ledger.runs.reader import StoredRun
from tests.support.places import ROOT

SUITES = [
    *(f"suites/seatrial/test_{area}.py" for area in ("dimms", "processors", "pcie", "host")),
    *(
        f"suites/production/test_{area}.py"
        for area in (
            *("memory", "clock", "services", "kernel", "drives", "file_systems", "adapters", "front_end", "network"),
            "host",
        )
    ),
    *(f"suites/zap/test_{area}.py" for area in ("configuration", "gpu_settings", "host_files")),
]

RELAXED_ORDERING = "NVreg_EnablePCIERelaxedOrderingMode"

# fault, its arguments, and the checks that must fail, by name
EXPECTED: list[tuple[str, dict[str, Any], set[str]]] = [
    ("acs.on", {}, {"test_switches_let_devices_talk"}),
    ("bond.degraded", {}, {"test_bonds_are_whole"}),
    ("clock.lost", {}, {"test_clock_is_synchronised", "test_clock_is_right"}),
    ("clock.source", {}, {"test_clock_source"}),
    ("cpu.governor", {}, {"test_frequency_governor"}),
    ("cpu.offline", {}, {"test_every_cpu_is_online", "test_cpus"}),
    ("dimm.errors", {"dimm": 5, "uncorrected": 1}, {"test_no_uncorrected_host_memory_errors"}),
    ("dimm.errors", {"dimm": 5, "corrected": 900}, {"test_few_corrected_host_memory_errors"}),
    ("dimm.missing", {"dimm": 17}, {"test_dimm_count", "test_memory_size"}),
    ("dimm.slow", {"dimm": 1}, {"test_dimm_speed"}),
    ("fabric-manager.old", {}, {"test_fabric_manager_version"}),
    ("file.changed", {"path": "/etc/security/limits.d/90-assay.conf"}, {"test_files"}),
    ("file-system.full", {}, {"test_file_systems_have_room"}),
    ("file-system.full", {"used": 20, "inodes": 100}, {"test_file_systems_have_inodes"}),
    ("file-system.read-only", {}, {"test_file_systems_can_be_written"}),
    ("gpu.setting", {"gpu": 2}, {"test_persistence_mode"}),
    ("hca.counter", {"hca": "mlx5_2", "counter": "VL15_dropped"}, {"test_hca_hears_its_subnet_manager"}),
    ("hca.counter", {"hca": "mlx5_2", "counter": "out_of_buffer"}, {"test_host_keeps_up_with_its_hca"}),
    ("hca.counter", {"hca": "mlx5_2", "counter": "port_rcv_errors"}, {"test_hca_receives_whole_packets"}),
    ("hca.firmware", {"hca": "mlx5_2"}, {"test_hcas_run_one_firmware"}),
    ("hca.misplaced", {"hca": "mlx5_2"}, {"test_rails_are_near_their_gpus"}),
    ("hca.partition", {"hca": "mlx5_2"}, {"test_hcas_are_in_the_same_partitions"}),
    ("hugepages.changed", {}, {"test_hugepages"}),
    ("iommu", {}, {"test_iommu_of_gpus"}),
    ("kernel.old", {}, {"test_kernel_version"}),
    ("kernel.soft-lockup", {}, {"test_kernel_went_through_nothing_bad"}),
    ("machine-check", {}, {"test_no_machine_checks", "test_kernel_went_through_nothing_bad"}),
    ("module-option.changed", {"module": "nvidia", "option": RELAXED_ORDERING}, {"test_module_options"}),
    ("module.missing", {}, {"test_kernel_modules"}),
    ("nic.errors", {"nic": "eth0"}, {"test_front_end_is_clean"}),
    ("nic.flap", {"nic": "eth0"}, {"test_front_end_does_not_flap"}),
    ("nic.mtu", {"nic": "eth0"}, {"test_front_end_mtu"}),
    ("nvme.dead", {"drive": 2}, {"test_drive_is_live"}),
    ("nvme.failing", {"drive": 2}, {"test_drive_warns_of_nothing", "test_drive_loses_no_data"}),
    ("nvme.hot", {"drive": 2}, {"test_drive_temperature"}),
    ("nvme.worn", {"drive": 2}, {"test_drive_has_life_left", "test_drive_has_spare_blocks"}),
    ("pcie.errors", {"device": "nvme4", "correctable": 5000}, {"test_drive_pcie_errors", "test_pcie_errors"}),
    ("pcie.errors", {"device": "mlx5_6", "nonfatal": 1}, {"test_hca_pcie_errors", "test_pcie_errors"}),
    ("pcie.narrow", {"device": "mlx5_6", "width": 8}, {"test_hca_pcie_link"}),
    ("pcie.narrow", {"device": "nvme4", "width": 2}, {"test_drive_pcie_link"}),
    ("processes.hung", {}, {"test_no_process_is_stuck"}),
    ("processes.hung", {"stuck": 0, "zombies": 80, "load": 600.0}, {"test_few_zombies", "test_load_is_bearable"}),
    ("service.failed", {}, {"test_services_are_active", "test_no_unit_has_failed"}),
    ("time-servers.changed", {}, {"test_time_servers"}),
    ("unit-setting.changed", {"unit": "containerd.service", "name": "LimitMEMLOCK"}, {"test_unit_settings"}),
    ("swap.on", {}, {"test_swap_is_off"}),
    ("sysctl.changed", {"name": "kernel.numa_balancing", "value": "1"}, {"test_sysctls"}),
]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A fleet with a node for every fault, its lab up."""
    for folder in ("specs", "suites"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "fabrics"))
    (tmp_path / "inventory").mkdir()
    hosts = {
        name_of(number): {"rack": name_of(number), "u": 1, "serial_number": f"S{number:04}", "bmc_address": "192.0.2.1"}
        for number in range(len(EXPECTED))
    }
    guids = [f"0xa088c204000000{rail:02x}" for rail in range(8)]
    variables = {"node_spec": "hgx-h100", "profile": "managed", "site": "lab1", "hca_guids": guids}
    (tmp_path / "inventory" / "faults.yml").write_text(yaml.safe_dump({"faults": {"vars": variables, "hosts": hosts}}))
    run(tmp_path, "lab", "up")
    yield tmp_path
    run(tmp_path, "lab", "down")


@pytest.mark.slow
def test_every_planted_fault_of_the_host_fails_its_own_checks_and_no_others(home: Path) -> None:
    world = LabWorld(home / ".assay-lab" / "world")
    for number, (fault, arguments, _) in enumerate(EXPECTED):
        inject_fault(world, fault, name_of(number), arguments)
    run(home, "observe", "--deadline", "60", accepted=(0, 1))
    judge = [sys.executable, "-m", "pytest", *SUITES, "-q", "--import-mode=importlib", "-p", "no:cacheprovider"]
    said = subprocess.run(
        [*judge, f"--rootdir={home}", "--assay-store=own.sqlite"],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
    )
    with StoredRun.open(home / "own.sqlite") as stored:
        outcomes = list(stored.outcomes())
    assert outcomes, said.stdout
    failed: dict[str, set[str]] = {name_of(number): set() for number in range(len(EXPECTED))}
    for one in outcomes:
        if one.verdict != "pass":
            failed[one.node].add(one.check.rpartition("::")[2])
    wanted = {name_of(number): checks for number, (_, _, checks) in enumerate(EXPECTED)}
    assert failed == wanted


def name_of(number: int) -> str:
    return f"n{number:03}"


def run(home: Path, *words: str, accepted: tuple[int, ...] = (0,)) -> None:
    command = [sys.executable, "-m", "assay", *words, "--fleet", str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=home)
    assert done.returncode in accepted, done.stdout + done.stderr
