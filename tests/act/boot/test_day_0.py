"""Day 0 as the controller runs it: a machine that the inventory names comes to its inspection by itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from assay.lab.faults.injection import inject_fault
from tests.act.boot.boot_room import PATIENT, open_boot_room
from tests.support.places import ROOT

NEW = ("n0001", "n0002", "n0004", "n0005")


def assay(root: Path, *words: str) -> str:
    command = [sys.executable, "-m", "assay", *words, "--fleet", str(root)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.mark.slow(minutes=2)
def test_a_machine_that_is_plugged_in_comes_to_its_inspection_and_others_are_told(tmp_path: Path) -> None:
    with open_boot_room(tmp_path, NEW, deadlines=PATIENT) as boot:
        shutil.copytree(ROOT / "suites", tmp_path / "suites")
        for node in NEW:
            boot.plug_in(node)
        inject_fault(boot.room.world, "machine.other-place", "n0004", {"rack": "r03", "u": 8})
        inject_fault(boot.room.world, "machine.other", "n0005", {"serial": "A520112X4400099"})

        assay(tmp_path, "reconcile", "--settle", *(word for node in NEW for word in ("--node", node)))

        shown = json.loads(assay(tmp_path, "status", "--format", "json"))["nodes"]
        states = {one["node"]: one["state"] for one in shown}
        assert {node: states[node] for node in NEW} == {
            "n0001": "onboard",
            "n0002": "onboard",
            "n0004": "discovered",
            "n0005": "discovered",
        }
        assert "rack r03, expected r01" in assay(tmp_path, "explain", "n0004")
        assert "serial at the BMC A520112X4400099, expected A520112X4400005" in assay(tmp_path, "explain", "n0005")
        assert not boot.attempts("n0004"), "what stands elsewhere is not started"
        assert "agent" in assay(tmp_path, "history", "n0001")
