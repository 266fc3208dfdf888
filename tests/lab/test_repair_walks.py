"""Repairs from the fault to production: what people type is what `assay explain` tells them, and it is little."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.forked_assay import assay, run_assay
from tests.support.places import ROOT
from tests.support.serving_fleet import GIT, change_yaml, start_history

WALKS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "n0001": ("gpu.replaced", {"gpu": 4}, False),
    "n0002": ("chassis.replaced", {"serial": "NEWCHASSIS002"}, True),
    "n0003": ("bmc.replaced", {}, True),
    "n0004": ("board.replaced", {}, True),
    "n0005": ("node.moved", {"rack": "r09", "u": 2}, True),
}
"""Node → what people do to it in triage, and whether the inventory must know of it."""
SWITCH = "leaf-su01-r0"
MOST_TYPED = 2
SLOW = """\
kind: Scenario
name: slow
description: A round on a busy machine takes no hour of the lab.
owner: tests
start: "2026-01-05T08:00:00+00:00"
rate: 5
chapters: [{title: nothing, steps: [{reconcile: {}}]}]
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A new fleet with a fifth node, all in production, and its lab up."""
    home = tmp_path / "fleet"
    assert run_assay("init", str(home)).returncode == 0
    fifth = yaml.safe_load((ROOT / "inventory/h100-a.yml").read_text())["h100-a"]["hosts"]["n0005"]

    def add(pools: dict[str, Any]) -> None:
        pools["h100-a"]["hosts"]["n0005"] = fifth
        pools["h100-a"]["vars"]["service_import"]["nodes"].append("n0005")

    change_yaml(home / "inventory/h100-a.yml", add)
    change_yaml(home / "specs/fabrics/compute.yaml", lambda design: design.update(nodes=["n0001..n0005"]))

    def widen(policy: dict[str, Any]) -> None:
        """Let all walks go at once."""
        policy["limits"] |= {"pool_percent": 100, "rack_concurrent": 5}
        for series in policy["breaker"]["by_class"]:
            series["min_nodes"] = 5

    change_yaml(home / "specs/lifecycle/default.yaml", widen)
    start_history(home)
    (home.parent / "slow.yaml").write_text(SLOW)
    assay(home, "lab", "up", "--scenario", str(home.parent / "slow.yaml"))
    assay(home, "reconcile", "--once")
    yield home
    assay(home, "lab", "down")


def explain(home: Path, node: str) -> dict[str, Any]:
    return json.loads(assay(home, "explain", node, "--format", "json"))


def read_states(home: Path) -> dict[str, str]:
    return {node["node"]: node["state"] for node in json.loads(assay(home, "status", "--format", "json"))["nodes"]}


def pass_time(home: Path, hours: float) -> None:
    assay(home, "lab", "advance", str(hours))
    assay(home, "reconcile", "--once", "--settle")


def update(home: Path, name: str) -> str:
    """Type `assay discover update`, and merge what it drafts; return what it printed."""
    done = run_assay("discover", "--fleet", home, "update", name, cwd=home)
    assert done.returncode == 0, done.stdout + done.stderr
    subprocess.run([*GIT, "merge", "--quiet", "--no-edit", f"update/{name}"], cwd=home, check=True)
    return done.stdout


@pytest.mark.slow(minutes=12)
def test_each_repair_ends_in_production_by_at_most_two_commands_that_assay_names(home: Path) -> None:
    assay(home, "lab", "inject", "gpu.missing", "--node", "n0001", "--with", "gpu=4")
    for node in [*WALKS][1:]:
        assay(home, "move", node, "triage", "--now", "--reason", f"{WALKS[node][0]} is planned")
    assay(home, "reconcile", "--once", "--settle")  # an order is meant for an hour
    for _ in range(4):
        pass_time(home, 0.5)
    assert set(read_states(home).values()) == {"triage"}, assay(home, "status")
    for node, (fault, given, _) in WALKS.items():
        words = [word for name, value in given.items() for word in ("--with", f"{name}={value}")]
        assay(home, "lab", "inject", fault, "--node", node, *words)
    assay(home, "lab", "inject", "switch.replaced", "--node", "n0001", "--with", f"switch={SWITCH}")
    pass_time(home, 0.5)

    typed = dict.fromkeys(WALKS, 0)
    for node, (_, _, is_other) in WALKS.items():
        if is_other:
            assert f"assay discover update {node}" in explain(home, node)["next"]["detail"]
            update(home, node)
            typed[node] += 1
    assert f"assay discover update {SWITCH}" in assay(home, "tickets")
    assert "specs/fabrics/compute.yaml" in update(home, SWITCH)
    pass_time(home, 0.5)
    assert read_states(home) == {**dict.fromkeys(WALKS, "triage"), "n0002": "onboard"}, "another machine is a new node"
    for node in WALKS:
        assert f"assay certify {node} --reason" in explain(home, node)["next"]["detail"]
        assay(home, "certify", node, "--reason", f"{WALKS[node][0]} is done")
        typed[node] += 1
    for _ in range(6):
        pass_time(home, 0.5)
    assert set(read_states(home).values()) == {"test"}, assay(home, "tickets")
    assay(home, "lab", "advance", "25")
    assay(home, "reconcile", "--once", "--settle")
    assay(home, "schedules", "run")  # the collectives that end the burn-in, which a loop runs beside its rounds
    assay(home, "reconcile", "--once", "--settle")
    assert set(read_states(home).values()) == {"production"}, assay(home, "tickets")
    assert max(typed.values()) <= MOST_TYPED
    hosts = yaml.safe_load((home / "inventory/h100-a.yml").read_text())["h100-a"]["hosts"]
    assert (hosts["n0005"]["rack"], hosts["n0005"]["u"]) == ("r09", 2)
    assert hosts["n0002"]["serial_number"] == "NEWCHASSIS002"
