"""New firmware is committed, and reaches the virtual fleet: a canary, then the others; killed in between; or paused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from assay.lab.bmc.firmware_flash import plan_flash_fault
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from tests.support.forked_assay import run_assay
from tests.support.serving_fleet import GIT, POLICY, change_yaml, make_serving_fleet, merge_bmc_image, start_history

NODES = ["n0001", "n0002", "n0003"]
ROUNDS = 14
"""More rounds than a rollout of three nodes needs."""


def assay(home: Path, *words: str) -> CompletedProcess[str]:
    done = run_assay(*words, "--fleet", home, cwd=home)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three nodes that serve, in a git repository; their burn-in takes no day."""
    root = tmp_path_factory.mktemp("fleet")
    make_serving_fleet(root, NODES)
    change_yaml(root / POLICY, _make_quick)
    start_history(root)
    assay(root, "lab", "up")
    assay(root, "reconcile", "--once")
    yield root
    assay(root, "lab", "down")


def _make_quick(policy: dict[str, Any]) -> None:
    policy["states"]["test"] |= {"soak_hours": 0, "burn_in": [], "entry": []}
    policy["limits"]["pool_percent"] = 70


def newest(home: Path) -> dict[str, Any]:
    rollout: dict[str, Any] = json.loads(assay(home, "rollout", "--format", "json").stdout)["rollouts"][0]
    return rollout


def go_on(home: Path, until: str) -> dict[str, Any]:
    """Let rounds pass until the newest rollout has this status; return it."""
    for _ in range(ROUNDS):
        assay(home, "reconcile", "--once")
        if (rollout := newest(home))["status"] == until:
            return rollout
    shown = assay(home, "rollout", "show", rollout["id"]).stdout
    raise AssertionError(f"{shown}\n{assay(home, 'reconcile', '--once').stdout}")


def flashes(home: Path) -> dict[str, list[str]]:
    world = LabWorld(home / ".assay-lab/world")
    return {name: [flash["component"] for flash in world.load(name)["flashes"]] for name in NODES}


def kill_while_flashing(home: Path) -> None:
    """Run rounds until a BMC writes an image; then SIGKILL the controller, with all that it started."""
    world = LabWorld(home / ".assay-lab/world")
    for _ in range(ROUNDS):
        command = [sys.executable, "-m", "assay", "reconcile", "--once", "--fleet", str(home)]
        running = subprocess.Popen(command, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while running.poll() is None:
            if any(world.load(name)["tasks"] for name in NODES):
                os.kill(running.pid, signal.SIGKILL)
                running.wait()
                return
            time.sleep(0.2)
    raise AssertionError("no BMC ever wrote an image")


@pytest.mark.slow(minutes=2)
def test_new_firmware_reaches_every_node_once_though_the_controller_is_killed(home: Path) -> None:
    assert newest_or_none(home) is None, "the first start rolls nothing out"
    merge_bmc_image(home, "01.05.12")
    kill_while_flashing(home)
    out = json.loads(assay(home, "rollout", "show", newest(home)["id"], "--format", "json").stdout)
    assert Counter(one["progress"] for one in out["nodes"]) == {"out": 1, "waiting": 2}, "the canary is alone"
    done = go_on(home, "finished")
    assert (done["reason"], done["proven"]) == ("3 of 3 nodes proven", 3)
    assert flashes(home) == {name: ["bmc"] for name in NODES}, "each image was sent once"
    ledger = Ledger.open_for_reading(home / ".assay-lab/ledger.sqlite")
    assert Counter(entry.node for entry in ledger.entries(kinds=["move"])) == dict.fromkeys(NODES, 1)
    ledger.close()


@pytest.mark.slow(minutes=2)
def test_a_revert_brings_the_canary_back_and_nothing_asks_for_the_change_any_more(home: Path) -> None:
    images = home / ".assay-lab/world/firmware"
    images.mkdir(exist_ok=True)
    (images / "bmc-01.05.14.bin").write_bytes(b"no image")
    merge_bmc_image(home, "01.05.14")
    paused, before = go_on(home, "paused"), flashes(home)
    assert paused["paused_by"]["reason"].startswith("canary n0001 failed: in zapfail: ")
    assert len(list_tickets(home)) == 2, "the canary's and the rollout's"
    subprocess.run([*GIT, "revert", "--no-edit", "HEAD"], cwd=home, check=True, capture_output=True)
    done = go_on(home, "finished")
    assert (done["reason"], done["nodes"]) == ("1 of 1 node proven", 1), "the others have what git wants"
    assert flashes(home) == before, "no image was needed"
    assert list_tickets(home) == []
    ledger = Ledger.open_for_reading(home / ".assay-lab/ledger.sqlite")
    (ended,) = ledger.entries(kinds=["rollout.superseded"])
    assert ledger.entries(kinds=["ticket.opened"], after=ended.seq) == [], "nor did the revert ask for anything"
    ledger.close()
    assert paused["id"][:8] not in assay(home, "explain", "n0002").stdout, "it never had the change"
    assert "2 nodes need nothing more" in assay(home, "rollout", "show", paused["id"]).stdout


def list_tickets(home: Path) -> list[str]:
    return [one["title"] for one in json.loads(assay(home, "tickets", "--format", "json").stdout)["tickets"]]


@pytest.mark.slow
def test_a_canary_that_fails_pauses_and_a_person_ends_it(home: Path) -> None:
    before = flashes(home)
    for name in NODES:
        with LabWorld(home / ".assay-lab/world").change(name) as state:
            plan_flash_fault(state, "bmc", "rolls-back", after_s=0)
    merge_bmc_image(home, "01.05.13")
    paused = go_on(home, "paused")
    assert paused["paused_by"]["rule"] == "failures"
    assert paused["paused_by"]["reason"].startswith("canary n0001 failed: ")
    assay(home, "rollout", "abort", paused["id"], "--reason", "a bad image", "--who", "ann")
    assay(home, "reconcile", "--once")
    assert "aborted by ann: a bad image" in assay(home, "rollout", "show", paused["id"]).stdout
    touched = {name for name, done in flashes(home).items() if done != before[name]}
    assert touched == {"n0001"}, "only the canary was touched"


def newest_or_none(home: Path) -> dict[str, Any] | None:
    rollouts = json.loads(assay(home, "rollout", "--format", "json").stdout)["rollouts"]
    return rollouts[0] if rollouts else None
