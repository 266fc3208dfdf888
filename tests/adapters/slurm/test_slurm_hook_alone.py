"""A hook without Slurm around it: what hangs, what is missing and what cannot run is told, and drains nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from assay.cli.verbs.slurm import build_hook_config
from assay.declare.loader import load_fleet
from assay.node.agent.pack import SLURM_HOOK
from assay.node.agent.slurm_hook import UNKNOWN_FAULT, find_hardware_faults
from assay.node.probe.node_access import NodeRoot
from assay.node.probe.pack import build_pack
from tests.support.places import ROOT

ORDERS: dict[str, Any] = {"gpus": {"gpu0": "0000:1b:00.0"}, "hcas": ["mlx5_0"], "drains": ["gpu.missing"], "log": ""}


@pytest.fixture
def node(tmp_path: Path) -> Path:
    device = tmp_path / "sys/bus/pci/devices/0000:1b:00.0"
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    for folder in (device, port):
        folder.mkdir(parents=True)
    (device / "config").write_bytes(b"\xde\x10")
    (port / "state").write_text("4: ACTIVE\n")
    (tmp_path / "orders.json").write_text(json.dumps({**ORDERS, "root": str(tmp_path)}))
    return tmp_path


def hook(node: Path, name: str = "health", **env: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "assay.node.agent.slurm_hook", name, str(node / "orders.json")]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, env={**os.environ, **env})


def test_a_node_that_is_well_is_silent(node: Path):
    done = hook(node)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_of_the_kernel_that_hangs_is_left_behind_and_told(node: Path):
    state = node / "sys/class/infiniband/mlx5_0/ports/1/state"
    state.unlink()
    os.mkfifo(state)
    began = time.monotonic()
    done = hook(node)
    assert done.returncode == 1
    assert "cannot tell the rest: no answer within 0.8 s" in done.stderr
    assert time.monotonic() - began < 30


def test_a_node_that_cannot_be_drained_is_told(node: Path):
    (node / "sys/bus/pci/devices/0000:1b:00.0/config").write_bytes(b"\xff\xff")
    done = hook(node, PATH="/nowhere", SLURMD_NODENAME="n0001")
    assert done.returncode == 3
    assert "gpu.missing: gpu0 at 0000:1b:00.0 fell off the PCI bus" in done.stderr
    assert "cannot drain" in done.stderr


def test_what_the_policy_does_not_drain_for_is_told(node: Path):
    (node / "sys/class/infiniband/mlx5_0/ports/1/state").write_text("1: DOWN\n")
    done = hook(node)
    assert done.returncode == 1
    assert "ib.link.down: the link of mlx5_0 is DOWN" in done.stderr


@pytest.mark.parametrize("area", ["sys/bus", "sys/class"])
def test_a_kernel_that_shows_nothing_at_all_is_no_missing_part(node: Path, area: str):
    (node / area).rename(node / "away")
    done = hook(node)
    assert done.returncode == 1
    assert "cannot tell whether" in done.stderr
    assert "missing" not in done.stderr


def test_an_empty_answer_of_a_gpu_is_no_answer(node: Path):
    (node / "sys/bus/pci/devices/0000:1b:00.0/config").write_bytes(b"")
    assert "its configuration is empty" in hook(node).stderr


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"gpus": 7}', '{"gpus": {}, "hcas": [], "drains": [], "log": ""}']
)
def test_orders_that_cannot_be_read_are_told(node: Path, content: str):
    (node / "orders.json").write_text(content)
    done = hook(node, "prolog")
    assert done.returncode == 1
    assert "cannot tell" in done.stderr


@pytest.mark.parametrize(("name", "code"), [("health", 1), ("prolog", 0), ("epilog", 0)])
def test_a_hook_that_cannot_run_is_told_and_no_job_is_refused(tmp_path: Path, name: str, code: int):
    script = (ROOT / "deploy/assay-slurm-hook").read_text().replace("/etc/assay-agent", str(tmp_path))
    (tmp_path / f"assay-{name}").write_text(script)
    done = subprocess.run(["sh", str(tmp_path / f"assay-{name}")], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "assay-slurm-hook.pyz" in done.stdout


def test_the_packed_hook_is_small_and_runs_alone(node: Path):
    (node / "hook.pyz").write_bytes(build_pack(SLURM_HOOK))
    words = ["python3", "-I", str(node / "hook.pyz"), "health", str(node / "orders.json")]
    assert subprocess.run(words, cwd=node, check=False).returncode == 0
    assert (node / "hook.pyz").stat().st_size < 64_000


def test_orders_say_what_the_policy_says_and_an_unmanaged_node_drains_for_nothing():
    fleet = load_fleet(ROOT)
    (policy,) = fleet.policies.values()
    managed = build_hook_config(fleet, policy, fleet.nodes["n0003"])
    assert managed["gpus"]["gpu3"] == fleet.spec_of("n0003").gpus.pci[3]
    assert "gpu.missing" in managed["drains"]
    assert "gpu.process.left" not in managed["drains"]
    assert build_hook_config(fleet, policy, fleet.nodes["n0018"])["drains"] == []


@given(some.binary(max_size=40))
def test_whatever_a_port_says_is_a_link_or_told(tmp_path_factory: pytest.TempPathFactory, said: bytes):
    root = tmp_path_factory.mktemp("port")
    folder = root / "sys/class/infiniband/mlx5_0/ports/1"
    folder.mkdir(parents=True)
    (folder / "state").write_bytes(said)
    found = list(find_hardware_faults(NodeRoot(str(root)), {"gpus": {}, "hcas": ["mlx5_0"]}))
    assert [one.fault for one in found] == ([] if said.strip() == b"4: ACTIVE" else [UNKNOWN_FAULT])
