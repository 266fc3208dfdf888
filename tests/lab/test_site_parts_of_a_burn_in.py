"""From a fresh `assay init`: storage that forgets, a training that loses its loss, and power that trips are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.lab.world import LabWorld
from tests.lab.test_a_day_of_burn_in import assay, begin_after_onboarding, stop_supervisor
from tests.support.forked_assay import run_assay
from tests.support.serving_fleet import POLICY, change_yaml

RATE = 200.0
STORAGE, POWER, TRAINING = "n0001", "n0002", "n0003"
TOLD = {STORAGE: "storage.data.wrong", POWER: "host.load.fault", TRAINING: "gpu.burn.failed"}
WORDS = {
    STORAGE: "shared_storage read back other data than it had written",
    POWER: "the node restarted 2 times under its load",
    TRAINING: "losses that are no number",
}
TRAINED = {"step": {"pattern": r"step (\d+)"}, "loss": {"pattern": r"loss (\S+)"}}
LOAD_TOOLS = {
    "storage": "/lustre/assay",
    "training": {"command": ["bash", "/shared/pretrain.sh"], "deadline_s": 1800, **TRAINED},
}
PHASES: list[dict[str, Any]] = [
    {"name": "own", "hours": 1, "parts": ["site_training"], "beside": ["shared_storage"]},
    {
        "name": "power-in-step",
        "hours": 24,
        "parts": ["gpu_burn"],
        "cycles": {"on_minutes": 20, "off_minutes": 10},
        "swings": {"hertz": [0.1, 1], "duty": 0.5},
    },
]


def declare_tools(inventory: dict[str, Any]) -> None:
    shared = inventory["h100-a"]["vars"]
    shared["load_tools"] = LOAD_TOOLS
    shared["service_import"]["nodes"] = ["n0004"]  # the others have never served, so that no limit holds them


def begin_from_the_inspection(policy: dict[str, Any]) -> None:
    begin_after_onboarding(policy)
    policy["edges"]["onboard"].append("test")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A new fleet whose nodes are ordered to burn in, with a training and a storage of the site; its lab up."""
    home = tmp_path / "our-fleet"
    assert run_assay("init", str(home)).returncode == 0
    change_yaml(home / POLICY, begin_from_the_inspection)
    change_yaml(home / "inventory/h100-a.yml", declare_tools)
    day = {"phases": PHASES, "unit_seconds": 300, "step_kw": 20}
    change_yaml(home / "specs/burnin/day.yaml", lambda spec: spec.update(day))
    assay(home, "lab", "up")
    assay(home, "reconcile", "--once")
    yield home
    for name in TOLD:
        stop_supervisor(home, name)
    assay(home, "lab", "down")


def read_nodes(home: Path) -> dict[str, Any]:
    return {node["node"]: node for node in json.loads(assay(home, "status", "--format", "json"))["nodes"]}


def reboot(home: Path, count: int) -> None:
    with LabWorld(home / ".assay-lab/world").change(POWER) as state:
        state["boot"] |= {"id": f"11111111-2222-3333-4444-55555555555{count}", "count": count}


@pytest.mark.slow(minutes=6)
def test_each_failed_part_is_one_incident_with_one_ticket(home: Path) -> None:
    assay(home, "lab", "inject", "storage.forgets", "--node", STORAGE)
    spoilt = ["gpu=0", "kind=nan", "test=train.gpt"]
    words = [word for each in spoilt for word in ("--with", each)]
    assay(home, "lab", "inject", "gpu.computes-wrong", "--node", TRAINING, *words)
    for name in TOLD:
        assay(home, "move", name, "test", "--reason", "a day of load")
    assay(home, "reconcile", "--once")  # before time runs faster: an order is meant for an hour
    world, boots = LabWorld(home / ".assay-lab/world"), 1
    world.set_clock(world.clock().now(), RATE)
    for _ in range(200):
        assay(home, "reconcile", "--once")
        nodes = read_nodes(home)
        burn_ins = {name: nodes[name]["burn_in"] or {} for name in TOLD}
        seen = burn_ins[POWER]
        if boots < 3 and seen.get("hours", 0) > 0 and seen.get("reboots", 0) == boots - 1:
            boots += 1
            reboot(home, boots)
        if all(nodes[name]["state"] == "triage" for name in TOLD):
            break
    assert {name: each.get("outcome") for name, each in burn_ins.items()} == dict.fromkeys(TOLD, "failed"), burn_ins
    for name, said in WORDS.items():
        assert said in burn_ins[name]["reason"]
    assay(home, "reconcile", "--once")
    tickets = json.loads(assay(home, "tickets", "--format", "json"))["tickets"]
    for name, fault in TOLD.items():
        (ticket,) = [each for each in tickets if name in json.dumps(each)]
        assert fault in ticket["title"], ticket
        said = " ".join(assay(home, "explain", name).split())
        assert WORDS[name] in said
        assert fault in said
