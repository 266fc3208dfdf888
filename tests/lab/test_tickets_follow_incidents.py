"""Tickets follow their incidents: they merge into one cause, split when proof says so, and end with their cause."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.forked_assay import assay, run_assay
from tests.support.serving_fleet import GIT, change_yaml, commit_all, start_history

SPEC = "specs/nodes/hgx-h100.yaml"
NODES = ("n0001", "n0002", "n0003")
SLOW = """\
kind: Scenario
name: slow
description: A round on a busy machine takes a minute of the lab.
owner: tests
start: "2026-01-05T08:00:00+00:00"
rate: 3
chapters: [{title: nothing, steps: [{reconcile: {}}]}]
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new fleet of four nodes in one rack that serve, its lab up. Its breaker is for more nodes than that."""
    home = tmp_path_factory.mktemp("new") / "fleet"
    assert run_assay("init", str(home)).returncode == 0
    change_yaml(home / "specs/lifecycle/default.yaml", _widen)
    start_history(home)
    (home.parent / "slow.yaml").write_text(SLOW)
    assay(home, "lab", "up", "--scenario", str(home.parent / "slow.yaml"))
    assay(home, "reconcile", "--once")
    yield home
    assay(home, "lab", "down")


def _widen(policy: dict[str, Any]) -> None:
    policy["breaker"]["min_nodes"] = 5
    for series in policy["breaker"]["by_class"]:
        series["min_nodes"] = 5


def go_on(home: Path, minutes: float = 1) -> None:
    assay(home, "lab", "advance", str(minutes / 60))
    assay(home, "reconcile", "--once", "--settle")


def list_tickets(home: Path) -> dict[str, dict[str, Any]]:
    """Return the tickets by key: its kind, and what is left of it."""
    listed = json.loads(assay(home, "tickets", "--all", "--format", "json"))["tickets"]
    return {each["key"]: each for each in listed}


def name_open(home: Path) -> list[str]:
    """Return kind and node of each open ticket."""
    tickets = list_tickets(home)
    return sorted(f"{key.partition('/')[0]} {each['node']}" for key, each in tickets.items() if not each["closed_at"])


def list_events(home: Path, kind: str) -> dict[str, list[str]]:
    """Return what happened to the tickets of a kind, by node."""
    return {
        each["node"]: [f"{event['what']}: {event['why']}" for event in each["history"]]
        for key, each in list_tickets(home).items()
        if key.startswith(f"{kind}/")
    }


@pytest.mark.slow(minutes=4)
def test_supplies_of_a_rack_merge_into_one_ticket_and_split_as_they_are_mended(home: Path) -> None:
    for node in NODES[:2]:
        assay(home, "lab", "inject", "psu.failed", "--node", node, "--with", "psu=3")
    go_on(home)
    assert name_open(home) == ["incident n0001", "incident n0002"]
    assay(home, "lab", "inject", "psu.failed", "--node", "n0003", "--with", "psu=3")
    go_on(home)
    assert name_open(home) == ["shared n0001"], "a rack's feed is one cause"
    merged = list_events(home, "incident")
    assert all(any(event.startswith("closed: ticket ") for event in merged[node]) for node in NODES[:2]), merged
    for node in NODES[:2]:
        assay(home, "lab", "inject", "psu.replaced", "--node", node, "--with", "psu=3")
    go_on(home, 15)
    assert name_open(home) == ["incident n0003"], "one supply is no feed of a rack"
    assert any(event.startswith("split") for event in list_events(home, "incident")["n0003"])
    assay(home, "lab", "inject", "psu.replaced", "--node", "n0003", "--with", "psu=3")
    go_on(home, 15)
    assert name_open(home) == [], assay(home, "tickets")
    states = json.loads(assay(home, "status", "--format", "json"))["nodes"]
    assert [state["incident"] for state in states] == [""] * 4, "the BMC's log keeps what is mended"


@pytest.mark.slow(minutes=2)
def test_what_one_commit_asks_is_one_ticket_and_its_revert_withdraws_it(home: Path) -> None:
    text = (home / SPEC).read_text()
    assert "inlet_temperature: {value: 35" in text
    (home / SPEC).write_text(text.replace("inlet_temperature: {value: 35", "inlet_temperature: {value: 18"))
    commit_all(home)
    go_on(home)
    (ticket,) = (each for each in list_tickets(home).values() if not each["closed_at"])
    assert ticket["key"].startswith("shared/commit/")
    assert {place["device"] for place in ticket["places"]} == {*NODES, "n0004"}
    subprocess.run([*GIT, "revert", "--no-edit", "HEAD"], cwd=home, check=True, capture_output=True)
    go_on(home)
    assert name_open(home) == []
