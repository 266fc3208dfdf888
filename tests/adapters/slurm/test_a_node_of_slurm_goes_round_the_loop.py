"""One fault's whole way on a node that a real Slurm places jobs on, by the commands that a person types.

Fault, drain with our reason, the job ends, reboot through the BMC, verification, resumed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from assay.declare.home import choose_context
from assay.declare.loader import load_fleet
from assay.lab.process_control import build_world, start_lab, stop_lab
from assay.lab.world import LabWorld
from tests.support.places import ROOT
from tests.support.slurm_cluster import Cluster, cluster, needs_slurm, said, until
from tests.support.slurm_room import SETTINGS, adapter, job, reason, state

pytestmark = [needs_slurm, pytest.mark.slow]
NODE = "n0003"


@dataclass
class Hall:
    """A fleet repository at `root` whose lab is up and whose scheduler is Slurm."""

    root: Path
    world: LabWorld
    slurm: Cluster

    def assay(self, *words: str) -> str:
        """Run a command as a person would; return what it says."""
        command = [str(Path(sys.executable).with_name("assay")), *words, "--fleet", str(self.root)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def crash_with_its_reboot(self) -> list[str]:
        """Let the node's slurmd go down and come back as its node reboots; return how Slurm saw it meanwhile."""
        before = self.world.load(NODE)["boot"]["id"]
        until(lambda: self.world.load(NODE)["boot"]["id"] != before, 300)
        self.slurm.kill(NODE)
        seen = [adapter().read_cordon_reason(NODE)]
        time.sleep(1)
        self.slurm.join(NODE, "-b")
        seen.append(adapter().read_cordon_reason(NODE))
        return seen


@pytest.fixture
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    root = tmp_path_factory.mktemp("hall") / "fleet"
    for folder in ("inventory", "specs", "suites", "playbooks"):
        shutil.copytree(ROOT / folder, root / folder)
    choose_context(root, "lab")
    world = LabWorld(root / ".assay-lab" / "world")
    build_world(load_fleet(root), world, datetime.now(UTC), 60.0)
    start_lab(world)
    try:
        slurm_places_the_jobs(world.home / "inventory.yml")
        with cluster(tmp_path_factory.mktemp("own"), NODE, more=SETTINGS) as running:
            yield Hall(root, world, running)
    finally:
        stop_lab(world)


def slurm_places_the_jobs(overlay: Path) -> None:
    told = yaml.safe_load(overlay.read_text())
    for variables in told["all"]["hosts"].values():
        variables["workloads"] = "slurm"
    overlay.write_text(yaml.safe_dump(told))


def test_a_fault_drains_waits_reboots_proves_and_resumes(hall: Hall):
    number = job("llama-405b", NODE)
    hall.assay("lab", "inject", "gpu.xid", "--node", NODE, "--with", "gpu=4", "--with", "xid=62")

    assert f"waits for job {number} (llama-405b, root" in hall.assay("reconcile", "--once", "--node", NODE)
    assert state(NODE) == "draining"
    assert reason(NODE).startswith(f"assay: gpu.xid.62 on h100-a/{NODE}/gpu4")
    assert "nothing changed" in hall.assay("reconcile", "--once", "--node", NODE)
    assert "llama-405b" in hall.assay("status")

    said("scancel", number)
    until(lambda: state(NODE) == "drained")
    with ThreadPoolExecutor(1) as pool:
        reboot = pool.submit(hall.crash_with_its_reboot)
        told = hall.assay("reconcile", "--settle", "--node", NODE)
        assert all(cordon.startswith("assay: gpu.xid.62") for cordon in reboot.result(60))
    for step in (
        "drain-now verified",
        "reboot verified: boot id",
        "production-reboot → production:",
        "uncordon verified",
    ):
        assert step in told
    until(lambda: state(NODE) == "idle")
    assert reason(NODE) == ""
