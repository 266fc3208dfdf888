"""A node of AMD, one without a fabric, one without a BMC and one without NVLink, each with a minimal spec.

Each is added to a fleet of `assay init`: what it does not have is not due, is counted, and is no error anywhere.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.declare.check import check_repository
from assay.declare.loader import load_fleet
from assay.declare.repository.tree import WorkingFolder
from assay.declare.spec_values_read_by_checks import read_check_inputs
from assay.ledger.store import Ledger
from assay.model.fleet import Fleet
from assay.model.specs.load_parts import USUAL_PARTS, select_possible
from assay.validate.active.burn_in_windows import find_burn_in
from assay.validate.runs.subjects import DeclaredOutcomes
from tests.support.forked_assay import run_assay

MI300X: dict[str, Any] = {
    "extends": "server",
    "gpus": {"vendor": "amd", "model": "AMD Instinct MI300X", "pci": ["0000:05:00.0", "0000:26:00.0"]},
    "limits": {
        "gpu_temperature": {"value": 95, "unit": "°C", "source": "amd-smi static --limit"},
        "memory_temperature": {"value": 100, "unit": "°C", "source": "amd-smi static --limit"},
        "ecc_uncorrected": {"value": 0, "unit": "count", "source": "Linux, gpu/amdgpu/ras.rst"},
        "gpu_bad_pages": {"value": 64, "unit": "count", "source": "our own choice"},
        "pcie_replays": {"value": 100, "unit": "count", "source": "our own choice"},
        "pcie_width": {"value": 16, "unit": "lanes", "source": "AMD Instinct MI300X data sheet"},
        "pcie_generation": {"value": 5, "unit": "generation", "source": "AMD Instinct MI300X data sheet"},
    },
}
NVLINK_LIMITS = ("nvlink_links", "nvlink_speed", "nvlink_recoveries", "nvlink_crc_errors", "load_nvlink_errors")
H100_PCIE: dict[str, Any] = {
    "extends": "hgx-h100",
    "hcas": [],
    "fabric_manager": None,
    "gpus": {"model": "NVIDIA H100 PCIe"},
    "limits": {
        **dict.fromkeys(NVLINK_LIMITS),
        "gpu_power_limit": {"value": 350, "unit": "W", "source": "NVIDIA H100 datasheet, PCIe"},
    },
}
NODES = {
    "amd": ("x1", MI300X),
    "no-fabric": ("x2", {"extends": "hgx-h100", "hcas": []}),
    "no-bmc": ("x3", {"extends": "hgx-h100", "hcas": []}),
    "no-nvlink": ("x4", H100_PCIE),
}
"""The node of each kind, and what its spec says beside its name."""


def add_kinds(home: Path) -> None:
    """Add a node of each kind to a fleet."""
    for number, (kind, (name, spec)) in enumerate(NODES.items(), 1):
        text = yaml.safe_dump({"kind": "NodeSpec", "name": kind, **spec}, sort_keys=False)
        (home / "specs/nodes" / f"{kind}.yaml").write_text(text)
        host = {"rack": f"r1{number}", "u": 4, "serial_number": f"S{number:04}", "bmc_address": f"10.20.1.{number}"}
        if kind == "no-bmc":
            del host["bmc_address"]
        served = {"nodes": [name], "reason": "it served before", "expires": "2036-12-31"}
        variables = {"node_spec": kind, "profile": "managed", "site": "lab1", "service_import": served}
        pool = {kind: {"vars": {**variables, "bmc_credentials": {"env": "ASSAY_BMC"}}, "hosts": {name: host}}}
        (home / "inventory" / f"{kind}.yml").write_text(yaml.safe_dump(pool))
    assert run_assay("specs", "codeowners", cwd=home).returncode == 0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds") / "fleet"
    assert run_assay("init", str(folder)).returncode == 0
    add_kinds(folder)
    return folder


@pytest.fixture(scope="module")
def fleet(home: Path) -> Fleet:
    return load_fleet(home)


def list_due(fleet: Fleet, node: str) -> set[str]:
    """Return the names of the checks that are due on a node."""
    return {check.id.partition("::")[2] for check, _ in DeclaredOutcomes(fleet).of_node(node)}


def test_each_is_right_as_it_is_declared(home: Path) -> None:
    assert check_repository(home, is_lab=True).problems == []


def test_what_reads_a_part_is_due_where_the_part_is(fleet: Fleet) -> None:
    of_h100 = list_due(fleet, "n0001")
    assert {"test_gpu_temperature", "test_nvlinks_are_up", "test_fans_turn", "test_link_counts_few_errors"} <= of_h100
    assert "test_gpu_is_on_the_bus" not in of_h100
    of_amd, without_bmc = list_due(fleet, "x1"), list_due(fleet, "x3")
    assert {"test_gpu_is_on_the_bus", "test_gpu_has_its_lanes", "test_telemetry_answers", "test_sysctls"} <= of_amd
    assert {"test_gpu_temperature", "test_bad_pages"} <= of_amd, "amd-smi tells these"
    assert of_amd.isdisjoint({"test_nvlinks_are_up", "test_gpu_burn", "test_drive_answers", "test_fans_turn"})
    assert {"test_gpu_temperature", "test_serial_is_the_inventorys", "test_telemetry_answers"} <= without_bmc
    assert of_h100 - list_due(fleet, "x2") > {"test_link_counts_few_errors", "test_hca_link"}
    assert {check for check in of_h100 - list_due(fleet, "x4") if "nvlink" in check} == {
        "test_nvlinks_are_up",
        "test_nvlink_speed",
        "test_nvlinks_do_not_recover",
        "test_nvlinks_lose_no_data",
        "test_nvlinks_count_no_errors",
    }


def test_nothing_asks_for_a_bmc_that_is_not_there(fleet: Fleet) -> None:
    reads = read_check_inputs(WorkingFolder(fleet.root))
    due = {check.id for check, _ in DeclaredOutcomes(fleet).of_node("x3")}
    assert [check for check in sorted(due) if "bmc" in reads[check].fixtures] == []
    assert fleet.bundle_of("x3").components == []
    spec = fleet.spec_of("x3")
    assert (spec.firmware, spec.bios, spec.fans, spec.psus.count) == ("", {}, 0, 0)
    assert fleet.spec_of("x2").firmware == "hgx-h100-2026-10"


def test_a_burn_in_is_what_the_node_can_run(fleet: Fleet) -> None:
    plans = {kind: find_burn_in(fleet, name) for kind, (name, _) in NODES.items()}
    assert {kind: plan and plan.name for kind, plan in plans.items()} == {
        "amd": "host-day",
        "no-fabric": "day",
        "no-bmc": "day",
        "no-nvlink": "day",
    }
    amd = plans["amd"]
    assert amd
    assert {part for phase in amd.phases for part in (*phase.parts, *phase.beside)} == {"memory"}, "it has no drives"
    assert amd.hours == 24
    assert select_possible(USUAL_PARTS, fleet.parts_of("x1")) == ["memory"]
    assert select_possible(USUAL_PARTS, fleet.parts_of("x4")) == list(USUAL_PARTS)


def test_what_is_not_due_is_counted_when_checks_are_collected(home: Path) -> None:
    command = [sys.executable, "-m", "pytest", "suites", "-q", "--collect-only", "-k", "x1 or x3"]
    collected = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    assert collected.returncode == 0, collected.stdout + collected.stderr
    (counted,) = [line for line in collected.stdout.splitlines() if line.startswith("not due: ")]
    for reason in ("(no bmc)", "(no nvidia)", "(no nvlink)", "(no nvme)"):
        assert reason in counted


@pytest.mark.parametrize(
    ("spec", "says", "fix"),
    [
        ({**MI300X, "extends": "hgx-h100"}, "driver is NVIDIA's, and the GPUs are of amd", "`null` where it is"),
        ({**MI300X, "gpus": {**MI300X["gpus"], "vendor": "nvidia"}}, "AMD makes this model", "write `vendor: amd`"),
        (
            {name: MI300X[name] for name in ("gpus", "limits")},
            "amd has no limit clock_offset",
            "write `extends: server`",
        ),
    ],
    ids=["what it inherits", "the vendor", "no base"],
)
def test_a_mistake_in_such_a_spec_leads_to_the_fix(
    home: Path, tmp_path: Path, spec: dict[str, Any], says: str, fix: str
) -> None:
    wrong = tmp_path / "fleet"
    shutil.copytree(home, wrong)
    (wrong / "specs/nodes/amd.yaml").write_text(yaml.safe_dump({"kind": "NodeSpec", "name": "amd", **spec}))
    found = [problem for problem in check_repository(wrong, is_lab=True).problems if says in problem.message]
    assert found
    assert fix in found[0].fix


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Path]:
    """Such a fleet with its lab up."""
    home = tmp_path / "fleet"
    assert run_assay("init", str(home)).returncode == 0
    add_kinds(home)
    call(home, "lab", "up")
    yield home
    call(home, "lab", "down")


def call(home: Path, *words: str) -> str:
    done = run_assay(*words, cwd=home)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow(minutes=6)
def test_they_are_green_everywhere_and_come_into_service(lab: Path) -> None:
    call(lab, "reconcile", "--once")
    whole = call(lab, "validate")
    assert "passed" in whole
    assert "could not be judged" not in whole
    assert "failed" not in whole
    plain = subprocess.run(
        [sys.executable, "-m", "pytest", "suites"], cwd=lab, capture_output=True, text=True, check=False
    )
    assert plain.returncode == 0, plain.stdout[-3000:]
    assert "each passes on the good recording" in call(lab, "suites", "verify")
    assert "8 production" in call(lab, "status")
    assert "active ok" in call(lab, "observe", "x1", "x4", "--active", "gpu_burn,memory")
    assert "failed" not in call(lab, "schedules", "run")
    for name in ("x1", "x3"):
        call(lab, "move", name, "zap", "--reason", "try", "--who", "me")
    steps = call(lab, "reconcile", "--settle")
    assert "x1: zap verified: has the settings of amd" in steps
    assert "x3: zap verified: has the settings of no-bmc" in steps
    assert "x1: burn-in verified: burn-in host-day runs, 24 h" in steps
    call(lab, "lab", "advance", "25")
    steps = call(lab, "reconcile", "--settle")
    assert "x1: uncordon verified" in steps
    assert "x3: uncordon verified" in steps
    assert "8 production" in call(lab, "status")
    with closing(Ledger.open(lab / ".assay-lab" / "ledger.sqlite")) as ledger:
        assert list(ledger.entries(kinds=["fault"])) == []
