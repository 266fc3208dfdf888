"""`assay lab tour` of several scenarios: they run at the same time, and are shown one after the other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from assay.declare.home import Home, find_lab_pid
from assay.lab.world import LabWorld
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT


def write_story(file: Path, *, fault: str) -> Path:
    """Write a scenario that is over when its fault is planted."""
    planted = {"title": f"A part fails by {fault}", "steps": [{"inject": {"fault": fault, "node": "n0001"}}]}
    story = {"kind": "Scenario", "name": file.stem, "start": "2026-01-05T08:00:00+00:00"}
    file.write_text(
        yaml.safe_dump(
            story | {"rate": 60, "description": f"The story {file.stem}.", "owner": "tests", "chapters": [planted]}
        )
    )
    return file


@pytest.mark.parametrize(("last_fault", "code"), [("probe.hangs", 0), ("no.such-fault", 2)])
def test_the_last_has_the_lab_of_the_fleet_and_the_others_leave_nothing(
    tmp_path: Path, last_fault: str, code: int
) -> None:
    fleet = tmp_path / "fleet"
    for folder in ("inventory", "specs", "suites", "playbooks"):
        shutil.copytree(ROOT / folder, fleet / folder)
    shutil.copy(ROOT / "ansible.cfg", fleet)
    first, last = (
        write_story(tmp_path / f"{name}.yaml", fault=fault)
        for name, fault in (("first", "bmc.silent"), ("last", last_fault))
    )
    done = run_assay("lab", "tour", first, last, "--fleet", fleet)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout.index("The story first") < done.stdout.index("The story last")
    home = Home(fleet, "lab")
    assert not find_lab_pid(home.world)
    planted = LabWorld(home.world).load("n0001")["fails"]
    assert (planted["probe_hangs"], planted["bmc_silent"]) == (code == 0, False), "the first is played on a copy"
