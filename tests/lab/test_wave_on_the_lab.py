"""A wave on the virtual fleet: held, cordoned within the limits, told in one ticket, until a person clears it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from assay.decide.state.node_projection import project_node_states
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from tests.support.forked_assay import run_assay
from tests.support.serving_fleet import POLICY, change_yaml, make_serving_fleet

NODES = [f"n000{number}" for number in range(1, 9)]
HIT = NODES[:5]


def assay(home: Path, *words: str) -> CompletedProcess[str]:
    done = run_assay(*words, "--fleet", home, cwd=home)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A fleet of eight nodes that serve, its lab up."""
    make_serving_fleet(tmp_path, NODES)
    assay(tmp_path, "lab", "up")
    yield tmp_path
    assay(tmp_path, "lab", "down")


def states(home: Path) -> list[str]:
    ledger = Ledger.open_for_reading(home / ".assay-lab/ledger.sqlite")
    found = project_node_states(ledger.entries())
    ledger.close()
    return [found[name].state for name in NODES]


@pytest.mark.slow(minutes=2)
def test_a_wave_is_held_and_told_until_a_person_clears_it_and_then_answered_within_the_limits(home: Path) -> None:
    assert assay(home, "reconcile", "--once").returncode == 0
    for name in HIT:
        assay(home, "lab", "inject", "gpu.xid", "--node", name, "--with", "gpu=0", "--with", "xid=79")
    for words in (("--once",), ("--settle",)):
        held = assay(home, "reconcile", *words)
        assert held.returncode == 1
        assert "the breaker holds back n0001 and 4 more" in held.stderr
        assert "assay breaker" in held.stderr
    assert states(home) == ["production"] * 8
    (told,) = json.loads(assay(home, "breaker", "--format", "json").stdout)["breakers"]
    assert (told["pool"], told["nodes"]) == ("a", HIT)
    assert len(told["cordoned"]) == 1, "half of 25 % of 8"
    tickets = json.loads(assay(home, "tickets", "--format", "json").stdout)["tickets"]
    (wave,) = [
        one
        for one in tickets
        if one["title"] == "Find the cause, or clear the breaker: many nodes of pool a fail at once"
    ]
    assert "on 5, in 5 racks" in wave["seen"]
    assert told["clear"] in wave["steps"]

    said = assay(home, "breaker", "clear", "a", "--reason", "the power is back", "--who", "ann").stdout
    assert "answer 5 nodes" in said
    assert assay(home, "reconcile", "--once").returncode == 0
    assert states(home).count("production") == 6, "25 % of 8 are out"
    assert "the breaker of pool a was cleared by ann: the power is back" in assay(home, "history", "n0003").stdout
    tickets = json.loads(assay(home, "tickets", "--format", "json").stdout)["tickets"]
    assert wave["title"] not in {one["title"] for one in tickets}


@pytest.mark.slow
def test_a_wave_that_stays_held_is_told_again_each_time_that_the_policy_says(home: Path) -> None:
    change_yaml(home / POLICY, lambda policy: policy["breaker"].update(held_hours=1000))
    remind_hours = yaml.safe_load((home / POLICY).read_text())["waiting"]["remind_hours"]
    assert assay(home, "reconcile", "--once").returncode == 0
    for name in HIT:
        assay(home, "lab", "inject", "gpu.xid", "--node", name, "--with", "gpu=0", "--with", "xid=79")
    assert "has waited" not in assay(home, "reconcile", "--once").stdout
    for _ in range(2):
        LabWorld(home / ".assay-lab/world").jump(timedelta(hours=remind_hours + 1))
        again = assay(home, "reconcile", "--once")
        assert again.returncode == 1
        assert "the breaker holds back n0001 and 4 more" in again.stderr
        (told,) = [line for line in again.stdout.splitlines() if "has waited" in line]
        node, _, rest = told.partition(": noted: has waited ")
        assert node in HIT, "whichever was seen first"
        assert rest
        assert "to be answered, for breaker: 5 of 8 serving nodes of pool a" in told
    assert "has waited" not in assay(home, "reconcile", "--once").stdout, "once each time"
    assert states(home) == ["production"] * 8
    tickets = json.loads(assay(home, "tickets", "--format", "json").stdout)["tickets"]
    assert [one["title"] for one in tickets].count(
        "Find the cause, or clear the breaker: many nodes of pool a fail at once"
    ) == 1
