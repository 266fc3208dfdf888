"""The same incident through the whole loop: real passes on a lab's node, whose pods a Kubernetes cluster places.

The policy of this fleet acts at once on a deadlock; the incident's waited, and so does the one of this test.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from assay.act.loop.context import ControllerContext
from assay.act.loop.reconcile_pass import PassReport, reconcile_once, repeat_until_unchanged
from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.adapters.scheduler import SchedulerAdapter, load_scheduler_adapter
from assay.declare.loader import load_fleet
from assay.lab.faults.injection import inject_fault
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from assay.model.node import Node
from assay.observe.evidence_store import EvidenceStore
from tests.support.kubernetes.kube_make import budget, node, pod
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.lab_room import Room, lab_room
from tests.support.places import ROOT

NODE, STATE = "n0003", "production-powercycle-test"
WAITS = {
    "classes": ["host.kernel.deadlock"],
    "states": ["production"],
    "timing": "pending",
    "while_pending": ["cordon"],
}
RATE = 60.0
"""Slow enough for a busy machine: what a pass observed is still fresh for the policy, an hour, when it is judged."""
pytestmark = pytest.mark.slow


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with lab_room(tmp_path / "fleet", RATE) as room:
        (room.root / "suites").symlink_to(ROOT / "suites")
        yield room


def test_the_incident_in_the_loop(room: Room, kube: KubeFake, adapter: KubernetesScheduler):
    wait_for_tenants(room)
    kube.put("nodes", "", node(NODE))
    passes(room, adapter)
    assert state(room) == "production"

    kube.put("pods", "platform", pod("traefik-0", NODE, kind="ReplicaSet", owner="traefik"))
    kube.put("poddisruptionbudgets", "platform", budget("traefik", "traefik", minAvailable=1))
    inject_fault(room.world, "kernel.soft-lockup", NODE, {})
    boot = room.state(NODE)["boot"]["id"]
    passes(room, adapter)
    blocked = [entry for entry in entries(room) if entry.kind == "decision"][-1]
    assert (state(room), blocked.body["timing"]) == ("production", "pending")
    assert "PodDisruptionBudget platform/traefik allows no disruption since 20" in str(blocked.body["blockers"])
    assert adapter.read_cordon_reason(NODE).startswith("assay: ")

    room.world.jump(timedelta(hours=1))
    passes(room, adapter)
    assert state(room) == "production", "pending for an hour, and nobody was hurt"
    assert room.state(NODE)["boot"]["id"] == boot

    kube.put("pods", "platform", pod("traefik-1", "n2", kind="ReplicaSet", owner="traefik"))
    gone = kube.get("pods", "platform", "traefik-0")
    assert gone is not None
    kube.store.remove("pods", gone)
    closed: list[bool] = []
    kube.before = lambda asked: closed.append(bool(adapter_closed(kube))) if asked.verb == "patch" else None
    passes(room, adapter)

    assert room.state(NODE)["boot"]["id"] != boot
    assert state(room) == "production"
    assert adapter.read_cordon_reason(NODE) == ""
    story = [(entry.kind, entry.body.get("action") or entry.body.get("to")) for entry in entries(room)]
    assert story.index(("effect.verified", "powercycle")) < last(story, ("transition", "production"))
    assert last(story, ("transition", "production")) < last(story, ("effect.verified", "uncordon"))
    assert all(closed[:-2]), "closed until the very last order, the one that opens it"


def test_what_must_happen_at_once_evicts_as_soon_as_the_budget_allows_it(
    room: Room, kube: KubeFake, adapter: KubernetesScheduler
):
    kube.put("nodes", "", node(NODE))
    passes(room, adapter)
    kube.put("pods", "platform", pod("traefik-0", NODE, kind="ReplicaSet", owner="traefik"))
    kube.put("poddisruptionbudgets", "platform", budget("traefik", "traefik", minAvailable=1))
    inject_fault(room.world, "kernel.soft-lockup", NODE, {})
    boot = room.state(NODE)["boot"]["id"]
    one_pass(room, adapter)
    tried = [entry for entry in entries(room) if entry.kind == "effect.tried"]
    assert "PodDisruptionBudget platform/traefik allows no disruption since 20" in str(tried[-1].body)
    assert (state(room), room.state(NODE)["boot"]["id"]) == (STATE, boot), "out of service, and nobody was hurt"

    kube.put("pods", "platform", pod("traefik-1", "n2", kind="ReplicaSet", owner="traefik"))
    room.world.jump(timedelta(minutes=2))
    passes(room, adapter)
    assert room.state(NODE)["boot"]["id"] != boot
    assert state(room) == "production"
    assert kube.get("pods", "platform", "traefik-0") is None
    assert "delete pods" not in kube.asked


def wait_for_tenants(room: Room) -> None:
    """Let a deadlock wait for customers, as it did in the incident."""
    policy = room.root / "specs" / "lifecycle" / "default.yaml"
    told = yaml.safe_load(policy.read_text())
    told["faults"] = {"deadlock-waits": WAITS, **told["faults"]}
    policy.write_text(yaml.safe_dump(told, sort_keys=False))
    room.fleet = load_fleet(room.root, [room.world.home / "inventory.yml"])


def passes(room: Room, adapter: KubernetesScheduler) -> list[PassReport]:
    """Go round the loop until nothing happens any more."""
    return repeat_until_unchanged(lambda _: one_pass(room, adapter))


def one_pass(room: Room, adapter: KubernetesScheduler) -> PassReport:
    """Go round the loop once."""
    home, clock = room.root / ".assay-lab", room.world.clock()
    ledger, store = Ledger.open(home / "ledger.sqlite", context="lab"), EvidenceStore(home / "evidence")

    def where(node: Node) -> SchedulerAdapter:
        return adapter if node.name == NODE else load_scheduler_adapter(node)

    context = ControllerContext(room.fleet, ledger, store, clock, home, room.root / "reports", where, room.told.append)
    return reconcile_once(context, [NODE], scan_fabric=False)


def entries(room: Room) -> list[LedgerEntry]:
    return Ledger.open(room.root / ".assay-lab" / "ledger.sqlite").entries(NODE)


def state(room: Room) -> str:
    moved = [entry.body["to"] for entry in entries(room) if entry.kind == "transition"]
    return moved[-1] if moved else str(entries(room)[0].body["state"])


def adapter_closed(kube: KubeFake) -> bool:
    there = kube.store.find("nodes", "", NODE)
    return bool(there and there["spec"].get("unschedulable"))


def last(story: list[tuple[str, object]], line: tuple[str, object]) -> int:
    return max(index for index, one in enumerate(story) if one == line)
