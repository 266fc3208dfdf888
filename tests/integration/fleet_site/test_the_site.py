"""The site itself: its machines answer as real ones do, and no change of them goes unseen."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from assay.adapters.bmc.client import open_bmc
from assay.declare.loader import load_fleet
from tests.integration.fleet_site.bmc_recording import FILE
from tests.integration.fleet_site.machines_over_ssh import needs_sshd
from tests.integration.fleet_site.rehearsed_site import BMC_VARIABLE, Site
from tests.integration.fleet_site.site_fleet import ONE_POOL, list_machines
from tests.support.forked_assay import run_assay

pytestmark = needs_sshd
MACHINES = list_machines(ONE_POOL)


def test_assay_reads_every_machine_over_ssh_and_redfish_and_changes_none(site: Site, fleet_of_the_site: Path) -> None:
    seen = run_assay("observe", cwd=fleet_of_the_site, env=site.environment("reading"))
    assert (seen.returncode, seen.stdout.count("probe ok; bmc ok")) == (0, len(MACHINES)), seen.stdout + seen.stderr
    assert {command.machine for command in site.commands() if command.mark == "reading"} == set(MACHINES)
    assert {request.machine for request in site.requests() if request.mark == "reading"} == set(MACHINES)
    assert [change for change in site.caused_by("reading") if change.is_change] == []


def test_a_change_by_redfish_is_seen(site: Site, fleet_of_the_site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BMC_VARIABLE, site.environment("resetting")[BMC_VARIABLE])
    with open_bmc(load_fleet(fleet_of_the_site).nodes["gpu-02"], root=fleet_of_the_site) as bmc:
        bmc.reset_system("ForceOff")
        assert bmc.read_power_state() == "Off"
        bmc.reset_system("On")
    (off, on) = [change for change in site.changes() if change.mark == "resetting"]
    assert "ForceOff" in str(off)
    assert "On" in str(on)


@pytest.mark.parametrize(
    "words",
    [
        "ssh gpu-01 true",
        "ssh gpu-01 python3 -I -S - --active battery",
        "scontrol update nodename=gpu-01 state=drain",
        "srun --nodelist gpu-01 true",
        "mpirun --host gpu-01:8 true",
        "kubectl cordon gpu-01",
        "ipmitool -H 127.0.20.1 power off",
    ],
)
def test_a_change_by_a_program_is_seen(site: Site, words: str, tmp_path: Path) -> None:
    nowhere = tmp_path / "empty"
    nowhere.touch()
    environment = site.environment(words, SLURM_CONF=str(nowhere), KUBECONFIG=str(nowhere))
    subprocess.run(words.split(), env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert [change for change in site.changes() if change.mark == words] != []


def test_every_program_of_this_machine_has_a_recorder_that_runs_it(site: Site) -> None:
    environment = site.environment("counting", ASSAY_CONTEXT="lab")
    said = subprocess.run(["git", "--version"], env=environment, capture_output=True, text=True, check=True).stdout
    subprocess.run(["seq", "2"], env=environment, stdout=subprocess.DEVNULL, check=True)
    assert said.startswith("git version")
    calls = [call for call in site.programs.calls() if call.mark == "counting"]
    assert [(call.context, call.name, call.words) for call in calls] == [
        ("lab", "git", "--version"),
        ("lab", "seq", "2"),
    ]


def test_the_recording_looks_like_a_machine_in_a_rack() -> None:
    assert re.findall(r"(?i)virtual|\blab\b|assay\.|n0001|lab1|\.example", FILE.read_text()) == []
