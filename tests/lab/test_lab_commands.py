"""`assay lab` as a person types it: up, status, inject, down, and its errors."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from assay.declare.home import Home
from assay.lab.process_control import delete_lab
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT


def lab(fleet: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `assay lab …` on a fleet."""
    return run_assay("lab", *words, "--fleet", fleet)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    fleet = tmp_path_factory.mktemp("lab") / "fleet"
    for folder in ("inventory", "specs", "suites", "playbooks"):
        shutil.copytree(ROOT / folder, fleet / folder)
    up = lab(fleet, "up", "--scenario", str(ROOT / "scenarios" / "the-loop.yaml"))
    assert up.returncode == 0, up.stderr
    yield fleet
    lab(fleet, "down")


def test_up_plants_what_the_scenario_says(fleet: Path) -> None:
    state = json.loads((fleet / ".assay-lab/world/nodes/n0001/state.json").read_text())
    assert state["firmware"]["BMC"] == "01.03.07"


def test_up_twice_is_refused(fleet: Path) -> None:
    again = lab(fleet, "up")
    assert again.returncode == 2
    assert "assay lab down" in again.stderr


def test_status_names_every_node_and_what_is_real(fleet: Path) -> None:
    status = lab(fleet, "status", "--format", "json")
    answer = json.loads(status.stdout)
    assert status.returncode == 0
    assert answer["up"]
    assert len(answer["nodes"]) == 20
    assert "Fabric" in answer["parts"]
    assert "NVML" in answer["parts"]


def test_inject_plants_a_fault(fleet: Path) -> None:
    planted = lab(fleet, "inject", "gpu.thermal", "--node", "n0004", "--with", "gpu=2", "--with", "celsius=95.5")
    assert planted.returncode == 0, planted.stderr
    state = json.loads((fleet / ".assay-lab/world/nodes/n0004/state.json").read_text())
    assert state["gpus"][2]["temperature_c"] == 95.5


def test_the_clock_goes_ahead(fleet: Path) -> None:
    def read_clock() -> datetime:
        return LabWorld(fleet / ".assay-lab" / "world").clock().now()

    before = read_clock()
    ahead = lab(fleet, "advance", "25.5")
    assert ahead.returncode == 0, ahead.stderr
    assert ahead.stdout.startswith("it is 2026-01-06 ")
    assert read_clock() - before >= timedelta(hours=25.5)
    assert [lab(fleet, "advance", hours).returncode for hours in ("9000", "nan", "soon", "inf")] == [2, 2, 2, 2]


@pytest.mark.parametrize(
    "words",
    [
        ("inject", "gpu.meltdown", "--node", "n0004"),
        ("inject", "gpu.thermal", "--node", "n9", "--with", "gpu=1"),
        ("inject", "gpu.thermal", "--node", "n0004", "--with", "gpu"),
        ("up", "--scenario", "nowhere.yaml"),
    ],
    ids=" ".join,
)
def test_nonsense_gets_a_sentence_and_exit_code_2(fleet: Path, words: tuple[str, ...]) -> None:
    answer = lab(fleet, *words)
    assert answer.returncode == 2
    assert answer.stderr.startswith("assay: ")
    assert "Traceback" not in answer.stderr


def test_the_vocabulary_can_be_listed(fleet: Path) -> None:
    assert "gpu.missing" in lab(fleet, "inject", "list").stdout


@pytest.mark.slow
def test_a_lab_that_was_killed_is_seen_as_down_and_comes_up_again(fleet: Path) -> None:
    os.kill(json.loads(lab(fleet, "status", "--format", "json").stdout)["pid"], signal.SIGKILL)
    assert lab(fleet, "status").returncode == 1
    assert lab(fleet, "up").returncode == 0
    assert lab(fleet, "down").stdout.startswith("the lab is down\n")
    assert not (fleet / ".assay-lab/world/inventory.yml").exists()
    assert lab(fleet, "down").stdout.startswith("the lab was not up\n")


def test_the_home_of_a_real_fleet_is_never_touched(tmp_path: Path) -> None:
    for folder in ("inventory", "specs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    ledger = tmp_path / ".assay" / "ledger.sqlite"
    ledger.parent.mkdir()
    ledger.write_bytes(b"years of history")
    assert "assay lab up" in lab(tmp_path, "advance", "1").stderr
    for _ in range(2):
        up = lab(tmp_path, "up")
        assert up.returncode == 0, up.stderr
        lab(tmp_path, "down")
    assert "deleted the former lab in .assay-lab: world" in up.stdout
    assert [path.name for path in ledger.parent.iterdir()] == [ledger.name]
    assert ledger.read_bytes() == b"years of history"


def test_a_home_whose_ledger_is_a_fleets_is_not_deleted_as_a_labs(tmp_path: Path) -> None:
    home = Home(tmp_path, "lab")
    home.folder.mkdir()
    with closing(Ledger.open(home.folder / "ledger.sqlite", context="fleet")) as ledger:
        ledger.append(LedgerEntry("1", "2026-11-29T00:00:00+00:00", "test"))
    with pytest.raises(AssayError, match="this is the ledger of a fleet, and the lab is chosen"):
        delete_lab(home)
    with pytest.raises(AssayError, match="only a lab's home"):
        delete_lab(Home(tmp_path, "fleet"))
    assert (home.folder / "ledger.sqlite").exists()
