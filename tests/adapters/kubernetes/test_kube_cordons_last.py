"""A node that is out stays closed, whatever becomes of its object: real passes over a node of the fake API server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.actions import drain_now
from assay.act.actions.action import EffectIntent
from assay.act.loop.context import ControllerContext
from assay.act.loop.reconcile_pass import record_decisions, run_outstanding_effects
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.adapters.kubernetes.adapter import KubernetesScheduler
from assay.decide.state import decision_and_fault_entries
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.ledger_entry import LedgerEntry
from assay.observe.evidence_store import EvidenceStore
from tests.support.entry_lines import format_entries
from tests.support.kubernetes.kube_kubelet import STUCK
from tests.support.kubernetes.kube_make import node, pod
from tests.support.kubernetes.kube_server import KubeFake
from tests.support.kubernetes.kube_store import Thing, written
from tests.support.places import ROOT

NODE = "n0003"


@pytest.fixture
def memory(tmp_path: Path, kube: KubeFake, adapter: KubernetesScheduler) -> FleetSnapshotCache:
    """Have a node of the example fleet leave service for its triage."""
    kube.put("nodes", "", node(NODE))
    fleet, clock = load_fleet(ROOT), SystemClock()
    fleet = replace(fleet, nodes={NODE: fleet.nodes[NODE]})
    ledger, store = Ledger.open(tmp_path / "ledger.sqlite"), EvidenceStore(tmp_path / "evidence")
    desk = ControllerContext(fleet, ledger, store, clock, tmp_path, tmp_path / "reports", lambda _: adapter)
    asked = {"who": "ann", "reason": "fans", "to": "draining", "now": True}
    ledger.append(
        decision_and_fault_entries.make_enrolled_entry(NODE, "h100-a", "production", clock.now()),
        LedgerEntry("m", desk.now, "move", NODE, asked),
    )
    memory = FleetSnapshotCache(desk)
    one_pass(memory)
    one_pass(memory)
    assert memory.node_states()[NODE].state == "triage"
    assert adapter.read_cordon_reason(NODE).startswith("assay: ann asked for draining")
    return memory


def one_pass(memory: FleetSnapshotCache) -> list[str]:
    """Decide and act; return what changed, in words."""
    memory.take_new_entries()
    record_decisions(memory)
    run_outstanding_effects(memory, [NODE])
    return format_entries(memory.take_new_entries())


def there(kube: KubeFake) -> Thing:
    found = kube.get("nodes", "", NODE)
    assert found is not None
    return found


def test_a_node_that_joins_as_a_new_object_is_closed_again(
    kube: KubeFake, adapter: KubernetesScheduler, memory: FleetSnapshotCache
):
    kube.store.remove("nodes", there(kube))
    assert one_pass(memory) == [], "nobody can tell of a node that is not there"

    kube.put("nodes", "", node(NODE))
    said = one_pass(memory)
    assert "closes the node again" in said[0]
    assert "cordon verified" in said[-1]
    assert adapter.read_cordon_reason(NODE).endswith("(closed again, after it was opened)")
    assert one_pass(memory) == []


def test_others_who_made_it_unschedulable_first_are_followed_by_ours_and_stay(
    kube: KubeFake, adapter: KubernetesScheduler, memory: FleetSnapshotCache
):
    kube.store.remove("nodes", there(kube))
    kube.put("nodes", "", {**node(NODE), "spec": {"unschedulable": True}})
    assert one_pass(memory) == []
    assert "assay" not in adapter.read_cordon_reason(NODE).replace("not by assay", "")

    there(kube)["spec"].pop("unschedulable")
    kube.put("nodes", "", node(NODE))
    one_pass(memory)
    assert adapter.read_cordon_reason(NODE).startswith("assay: ")


def test_what_a_dead_node_still_holds_is_left_to_its_restart(kube: KubeFake, memory: FleetSnapshotCache):
    stuck = pod("llama-0", NODE)
    stuck["metadata"].update(annotations={STUCK: "yes"}, finalizers=["example.org/unmount"])
    kube.put("pods", "ml", stuck | {"metadata": stuck["metadata"] | {"deletionTimestamp": written(-300)}})
    wish, ctx = EffectIntent("e", "drain-now", NODE, "d", "fans"), memory.context
    assert drain_now.verify(ctx, wish).reason.startswith("still running: job ml/llama-0")

    silent = there(kube)
    silent["status"]["conditions"][0]["status"] = "Unknown"
    kube.put("nodes", "", silent)
    proof = drain_now.verify(ctx, wish)
    assert proof.done
    assert "does not answer its scheduler; its restart ends what is left: job ml/llama-0" in proof.reason
