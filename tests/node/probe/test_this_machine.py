"""The probe on the machine that runs the tests: real, cheap, on time, and honest about what is not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.model.reading import PROBE_AREAS, parse_reading

AREAS = [
    *("host", "gpu", "hca", "nic", "bond", "nvme", "disk", "aer"),
    *("pci", "memory", "file_systems", "kernel", "time", "services", "files"),
    *("unit_settings", "adapter_settings", "tpm", "bmc_network", "kernel_log"),
]
WITH_TOOLS = ("gpu", "host", "time", "services")  # asked through the node's own tools, which have no root


def probe(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "assay.node.probe", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, check=False)


def leaves(tree: Any) -> list[dict[str, Any]]:
    if parse_reading(tree) is not None:
        return [tree]
    return [leaf for branch in tree.values() for leaf in leaves(branch)]


def test_one_document_with_every_area_and_nothing_on_standard_error() -> None:
    done = probe()
    assert (done.returncode, done.stderr) == (0, "")
    assert list(json.loads(done.stdout)["probe"]) == AREAS == list(PROBE_AREAS)


def test_every_leaf_is_one_of_the_four_kinds_with_a_reason() -> None:
    for leaf in leaves(json.loads(probe().stdout)["probe"]):
        ((kind, content),) = leaf.items()
        assert kind == "value" or content, leaf


def test_this_machines_own_name_and_boot_are_read() -> None:
    host = json.loads(probe().stdout)["probe"]["host"]
    assert host["hostname"] == {"value": Path("/proc/sys/kernel/hostname").read_text().strip()}
    assert host["uptime_s"]["value"] > 0
    assert host["memory_bytes"]["value"] > 2**20


def test_an_empty_root_has_nothing_and_says_so_for_each(tmp_path: Path) -> None:
    tree = json.loads(probe("--root", str(tmp_path)).stdout)["probe"]
    values = [leaf for area in AREAS if area not in WITH_TOOLS for leaf in leaves(tree[area]) if "value" in leaf]
    assert values == []


def test_no_variable_of_the_environment_moves_the_root_or_the_time(tmp_path: Path) -> None:
    done = probe("--areas", "host,time", ASSAY_ROOT=str(tmp_path), ASSAY_AT="2001-01-01T00:00:00+00:00")
    tree = json.loads(done.stdout)["probe"]
    assert tree["host"]["hostname"] == {"value": Path("/proc/sys/kernel/hostname").read_text().strip()}
    assert "2001" not in done.stdout
    agent = [sys.executable, "-m", "assay.node.agent", "--help"]
    assert "ASSAY_" not in subprocess.run(agent, capture_output=True, text=True, check=True).stdout


def test_pretty_is_the_same_document_to_read() -> None:
    done = probe("--pretty")
    assert done.stdout.count("\n") > 20
    assert json.loads(done.stdout)["probe"]


@pytest.mark.parametrize("arguments", [["--since", "yesterday"], ["--bogus"]])
def test_wrong_usage_is_two_and_prints_no_document(arguments: list[str]) -> None:
    done = probe(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_a_file_without_an_end_costs_its_own_reading_and_no_more_memory_than_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/hostname").write_text("n1")
    (tmp_path / "proc/meminfo").symlink_to("/dev/zero")
    tree = json.loads(probe("--root", str(tmp_path)).stdout)["probe"]["host"]
    reasons = [leaf["failed"] for leaf in leaves(tree) if "failed" in leaf]
    assert any(reason.startswith(("MemoryError", "no answer")) for reason in reasons), reasons
    assert tree["hostname"] == {"value": "n1"}
