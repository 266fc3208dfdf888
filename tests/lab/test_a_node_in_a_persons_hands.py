"""A broken node that a person keeps closed is left to him, and every command says so; the reboot follows once."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from assay.declare.loader import load_fleet
from assay.lab.scheduler import LabScheduler
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from tests.lab.test_burn_in_that_breaks import NODE, assay, home  # noqa: F401 — a fixture

FANS = "bob: fans, back at 16:00"
WAITS = f"closed by others ({FANS}): assay waits, and would go to production-reboot: drain-now, reboot"
TITLE = f"{NODE} is broken, and somebody keeps it closed"


def by_hand(scheduler: LabScheduler, method: str) -> None:
    """Close the node (PUT) or open it (DELETE) as a person would."""
    body = json.dumps({"reason": FANS}).encode() if method == "PUT" else None
    urlopen(Request(f"{scheduler.address}/nodes/{NODE}/cordon", body, method=method), timeout=30).close()


def begun(home: Path) -> list[str]:  # noqa: F811
    ledger = Ledger.open_for_reading(home / ".assay-lab/ledger.sqlite")
    actions = [entry.body["action"] for entry in ledger.entries(NODE, ["effect.intent"])]
    ledger.close()
    return actions


@pytest.mark.slow
def test_a_node_that_a_person_closed_is_rebooted_once_and_only_when_he_opened_it(home: Path) -> None:  # noqa: F811
    world = LabWorld(home / ".assay-lab/world")
    scheduler = LabScheduler(load_fleet(home, [world.home / "inventory.yml"]).nodes[NODE].settings)
    assay(home, "reconcile", "--once")
    boot, before = world.load(NODE)["boot"]["id"], begun(home)
    by_hand(scheduler, "PUT")
    assay(home, "lab", "inject", "gpu.xid", "--node", NODE, "--with", "gpu=0", "--with", "xid=79")

    assert WAITS in assay(home, "reconcile", "--once")
    assert WAITS in assay(home, "explain", NODE)
    (shown,) = json.loads(assay(home, "status", "--format", "json"))["nodes"]
    assert shown["state"] == "production"
    assert WAITS in json.dumps(shown)
    (ticket,) = [
        one for one in json.loads(assay(home, "tickets", "--format", "json"))["tickets"] if one["title"] == TITLE
    ]
    assert FANS in ticket["seen"]
    assert "assay waits" not in assay(home, "reconcile", "--once"), "it is said once"
    assert (begun(home), world.load(NODE)["boot"]["id"]) == (before, boot)
    assert scheduler.read_cordon_reason(NODE) == FANS

    by_hand(scheduler, "DELETE")
    assay(home, "reconcile", "--once")
    restarted = world.load(NODE)["boot"]["id"]
    assert restarted != boot
    assay(home, "reconcile", "--once")
    assert world.load(NODE)["boot"]["id"] == restarted
    assert begun(home).count("reboot") == 1
    assert TITLE not in assay(home, "tickets")
