"""A node in service gets settings where it is: at once, or between two jobs. What changes again goes to people."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.declare.loader import load_fleet
from assay.lab.scheduler import LabScheduler
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from tests.lab.test_burn_in_that_breaks import NODE, assay, home  # noqa: F401 — a fixture
from tests.support.serving_fleet import POLICY, change_yaml

FOREVER_S = 10_000_000


@pytest.fixture
def world(home: Path) -> LabWorld:  # noqa: F811
    """The lab, with one customer's job on the node, which serves and has passed its checks."""
    change_yaml(home / POLICY, lambda policy: policy["corrections"].update(idle=["nics.mtu"], times=1))
    world = LabWorld(home / ".assay-lab/world")
    scheduler_of(home).place("llama", "customer", NODE, FOREVER_S)
    assay(home, "reconcile", "--once")
    return world


def scheduler_of(home: Path) -> LabScheduler:  # noqa: F811
    return LabScheduler(load_fleet(home, [home / ".assay-lab/world/inventory.yml"]).nodes[NODE].settings)


def entries(home: Path, *kinds: str) -> list[LedgerEntry]:  # noqa: F811
    ledger = Ledger.open_for_reading(home / ".assay-lab/ledger.sqlite")
    found = ledger.entries(NODE, kinds)
    ledger.close()
    return found


def effects(home: Path) -> list[tuple[str, str]]:  # noqa: F811
    """Return kind and action of what was begun and proved since the node was enrolled."""
    found = entries(home, "effect.intent", "effect.verified", "effect.failed")
    return [(entry.kind.removeprefix("effect."), entry.body["action"]) for entry in found]


@pytest.mark.slow
def test_a_governor_is_brought_back_under_a_job_and_goes_to_people_if_it_changes_again(
    home: Path,  # noqa: F811
    world: LabWorld,
):
    assay(home, "lab", "inject", "cpu.governor", "--node", NODE)
    assay(home, "reconcile", "--once")
    assert world.load(NODE)["host"]["governor"] == "performance"
    assert effects(home) == [("intent", "configure"), ("verified", "configure")]
    assert not scheduler_of(home).read_cordon_reason(NODE)
    assert len(scheduler_of(home).list_jobs(NODE)) == 1
    assert entries(home, "transition") == []
    assert "gets its settings where it is: host.governor: governor powersave" in assay(home, "history", NODE)
    assay(home, "reconcile", "--once")
    assert '"state": "in_sync"' in assay(home, "sync", "--format", "json")

    assay(home, "lab", "inject", "cpu.governor", "--node", NODE)
    assay(home, "reconcile", "--once")
    assert world.load(NODE)["host"]["governor"] == "powersave", "once is enough by this policy"
    assert "brought in service: host.sysctls, host.transparent_hugepages, host.governor at once" in assay(home, "sync")
    (ticket,) = (home / ".assay-lab/tickets").glob("*.md")
    assert "assay brought host.governor 1 times in " in ticket.read_text()
    assert "another tool changes it too" in ticket.read_text()


@pytest.mark.slow
def test_an_mtu_waits_for_the_end_of_the_job_and_is_brought_under_a_short_cordon(
    home: Path,  # noqa: F811
    world: LabWorld,
):
    with world.change(NODE) as state:
        state["nics"][0]["mtu"] = 1500
    assay(home, "reconcile", "--once")
    assert effects(home) == []
    assert "waits until no job runs on the node" in assay(home, "status")
    scheduler_of(home).drain(NODE, "the job ends", now=True)
    scheduler_of(home).uncordon(NODE)
    assay(home, "reconcile", "--once")
    assert world.load(NODE)["nics"][0]["mtu"] == 9000
    assert [action for kind, action in effects(home) if kind == "verified"] == ["cordon", "configure", "uncordon"]
    assert not scheduler_of(home).read_cordon_reason(NODE)
    assert entries(home, "transition") == []
