"""`assay lab advance` rehearses a day of load: our own burn-in has run when the command ends, and the node goes on."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.lab.process_control import list_marked_processes
from assay.lab.world import LabWorld
from tests.support.forked_assay import assay
from tests.support.serving_fleet import POLICY, change_yaml, make_serving_fleet

NODE = "n0001"


def name_burn_in(policy: dict[str, Any]) -> None:
    policy["states"]["test"] |= {"burn_in": ["day"], "entry": ["cordon", "drain", "burn-in"]}
    policy["edges"]["production"].append("test")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A fleet of one node whose burn-in of a day has begun, its lab up."""
    make_serving_fleet(tmp_path, [NODE])
    change_yaml(tmp_path / POLICY, name_burn_in)
    assay(tmp_path, "lab", "up")
    assay(tmp_path, "reconcile", "--once")
    assay(tmp_path, "move", NODE, "test", "--reason", "a day of load")
    for _ in range(10):
        assay(tmp_path, "reconcile", "--once")
        if read_burn_in(tmp_path).get("outcome") == "running":
            break
    yield tmp_path
    assay(tmp_path, "lab", "down")


def read_burn_in(home: Path) -> dict[str, Any]:
    (node,) = json.loads(assay(home, "status", "--format", "json"))["nodes"]
    return {"state": node["state"], **(node["burn_in"] or {})}


@pytest.mark.slow(minutes=4)
def test_a_day_of_load_is_over_when_25_hours_have_passed(home: Path) -> None:
    assert f"{NODE}: under load for 2 h" in assay(home, "lab", "advance", "2")
    assay(home, "reconcile", "--once")
    early = read_burn_in(home)
    assert 1 < early["hours"] < 24, "of two hours, the windows of 15 minutes that are over"
    assay(home, "lab", "advance", "23")
    assay(home, "reconcile", "--once", "--settle")
    found = read_burn_in(home)
    assert (found["outcome"], found["reason"], found["state"]) == ("done", "", "production")
    assert found["hours"] >= 24
    assert {one["load"] for one in found["coverage"]} == {
        "all_reduce", "battery", "gpu_burn", "memory", "nvme_read", "training",
    }  # fmt: skip


def test_nothing_that_a_node_runs_outlives_the_lab(home: Path) -> None:
    world = LabWorld(home / ".assay-lab/world")
    daemon = json.loads((world.home / "lab.json").read_text())["pid"]
    supervisor = int((world.folder(NODE) / "root/var/lib/assay/burn-in/lock").read_text())
    assert {daemon, supervisor} <= set(list_marked_processes(world.home))
    assert list_marked_processes(home / "another lab") == []
    os.kill(daemon, signal.SIGKILL)
    assert assay(home, "lab", "down").startswith("the lab was not up")
    assert list_marked_processes(world.home) == []
    lines = (world.folder(NODE) / "root/var/lib/assay/burn-in/journal.jsonl").read_text()
    time.sleep(2)
    assert (world.folder(NODE) / "root/var/lib/assay/burn-in/journal.jsonl").read_text() == lines, "nobody writes on"
