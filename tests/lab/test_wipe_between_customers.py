"""An operator lets a node be wiped between two customers: it drains, erases its drives, restarts, and serves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.lab.world import LabWorld
from tests.lab.test_burn_in_that_breaks import NODE, assay, home  # noqa: F401 — a fixture

ORDER = ("operations", "start", "wipe", NODE, "--reason", "the customer left", "--who", "ann")


def state_of(home: Path) -> str:  # noqa: F811
    (shown,) = json.loads(assay(home, "status", "--format", "json"))["nodes"]
    return str(shown["state"])


@pytest.mark.slow(minutes=2)
def test_a_node_is_wiped_restarted_tested_and_serves_again(home: Path) -> None:  # noqa: F811
    world = LabWorld(home / ".assay-lab/world")
    assay(home, "reconcile", "--once")
    boot = world.load(NODE)["boot"]["id"]
    assert f"wipe {NODE}: accepted" in assay(home, *ORDER)
    for _ in range(4):
        assay(home, "reconcile", "--once")
        if state_of(home) == "production":
            break
    explained = assay(home, "explain", NODE)
    assert state_of(home) == "production", explained
    assert [len(drive["sanitizes"]) for drive in world.load(NODE)["nvme"]] == [1] * 8
    assert world.load(NODE)["boot"]["id"] != boot
    history = assay(home, "history", NODE)
    assert history.count("is proven wiped by sanitize, crypto erase") == 8
    assert "wipe verified: proven wiped: nvme0" in history
