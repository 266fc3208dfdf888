"""A busy node whose GPU runs hot and cools again and again is held, with a person's ticket: not cordoned each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.declare.loader import load_fleet
from assay.lab.scheduler import LabScheduler
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from tests.lab.test_burn_in_that_breaks import NODE, assay, home  # noqa: F401 — a fixture

FLAPS, FOREVER_S = 6, 10_000_000


@pytest.mark.slow
def test_a_busy_node_that_flaps_is_cordoned_and_opened_once_then_held_for_a_person(home: Path) -> None:  # noqa: F811
    world = LabWorld(home / ".assay-lab/world")
    scheduler = LabScheduler(load_fleet(home, [world.home / "inventory.yml"]).nodes[NODE].settings)
    assay(home, "reconcile", "--once")
    job = scheduler.place("llama", "customer", NODE, FOREVER_S)
    cool = {name: world.load(NODE)["gpus"][0][name] for name in ("temperature_c", "throttle")}
    cordons = []
    for _ in range(FLAPS):
        assay(home, "lab", "inject", "gpu.thermal", "--node", NODE, "--with", "gpu=0")
        assay(home, "reconcile", "--once")
        with world.change(NODE) as state:
            state["gpus"][0] |= cool
        assay(home, "reconcile", "--once")
        cordons.append(bool(scheduler.read_cordon_reason(NODE)))
    assert cordons == [False] + [True] * (FLAPS - 1)
    assert scheduler.list_jobs(NODE) == (job,), "the customer's job goes on"
    ledger = Ledger.open_for_reading(home / ".assay-lab/ledger.sqlite")
    actions = [entry.body["action"] for entry in ledger.entries(NODE, ["effect.intent"])]
    ledger.close()
    assert (actions.count("cordon"), actions.count("uncordon")) == (3, 1)
    assert f"faults of {NODE} come and go" in assay(home, "tickets")
    explained = assay(home, "explain", NODE) + assay(home, "explain", NODE, "--full")
    assert "came and went 4 times in 168 h while the node waited" in explained
    assert "lemon score 2.25 of 24" in explained
