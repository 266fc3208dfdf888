"""A node that is out stays closed, whatever becomes of our drain: real passes over nodes of a real Slurm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.loop.context import ControllerContext
from assay.act.loop.reconcile_pass import record_decisions, run_outstanding_effects
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.adapters.scheduler import load_scheduler_adapter
from assay.decide.faults.detection import FaultObservation
from assay.decide.state import decision_and_fault_entries
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.node_settings import make_node_settings
from assay.model.timestamps import format_time
from assay.observe.evidence_store import EvidenceStore
from tests.support.entry_lines import format_entries
from tests.support.places import ROOT
from tests.support.slurm_cluster import Cluster, cluster, needs_slurm, said, until
from tests.support.slurm_room import SETTINGS, adapter, by_hand, job, reason, state

pytestmark = [needs_slurm, pytest.mark.slow]
NODES = ("n0001", "n0002", "n0003", "n0004")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("own"), *NODES, more=SETTINGS) as running:
        yield running


@pytest.fixture
def memory(tmp_path: Path) -> FleetSnapshotCache:
    """Have nodes of the example fleet serve, with Slurm as their scheduler."""
    fleet, clock = load_fleet(ROOT), SystemClock()
    nodes = {name: replace(fleet.nodes[name], settings=make_node_settings({"workloads": "slurm"})) for name in NODES}
    ledger, store = Ledger.open(tmp_path / "ledger.sqlite"), EvidenceStore(tmp_path / "evidence")
    desk = ControllerContext(
        replace(fleet, nodes=nodes), ledger, store, clock, tmp_path, tmp_path / "reports", load_scheduler_adapter
    )
    ledger.append(
        *(
            decision_and_fault_entries.make_enrolled_entry(name, nodes[name].pool, "production", clock.now())
            for name in NODES
        )
    )
    return FleetSnapshotCache(desk)


def one_pass(memory: FleetSnapshotCache) -> list[str]:
    """Decide and act; return what changed, in words."""
    memory.take_new_entries()
    record_decisions(memory)
    run_outstanding_effects(memory, NODES)
    return format_entries(memory.take_new_entries())


def hot(memory: FleetSnapshotCache, name: str) -> None:
    """Let a GPU be hot, so that the node is closed and its job waited for."""
    desk, at = memory.context, memory.context.now
    treatment = desk.fleet.fault_catalog.find_treatment("gpu.thermal")
    about = (treatment.severity, treatment.blame, treatment.remedy, 1, format_time(at), format_time(at), "as planted")
    subject = f"{desk.fleet.nodes[name].subject}/gpu3"
    seen = FaultObservation(f"hot-{name}", name, "gpu.thermal", subject, *about, {"check": at}, (format_time(at),))
    desk.ledger.append(decision_and_fault_entries.make_fault_entry(seen, desk.clock.now()))


def test_a_person_who_resumes_a_node_in_mid_repair_finds_it_drained_again(own: Cluster, memory: FleetSnapshotCache):
    job("llama", "n0001")
    hot(memory, "n0001")
    one_pass(memory)
    assert state("n0001") == "draining"

    by_hand("n0001", state="resume")
    assert adapter().read_cordon_reason("n0001") == ""
    said_now = one_pass(memory)
    assert "closes the node again: cordon of 20" in said_now[0]
    assert reason("n0001").startswith("assay: gpu.thermal on h100-a/n0001/gpu3: as planted (closed again, after it was")
    assert one_pass(memory) == []
    memory.context.ledger.append(
        LedgerEntry("h", memory.context.now, "hold", "n0001", {"who": "bob", "reason": "mine"})
    )
    by_hand("n0001", state="resume")
    assert one_pass(memory) == [], "held: bob may"


def test_a_slurm_that_forgot_everything_gets_its_drains_again(own: Cluster, memory: FleetSnapshotCache):
    asked = {"who": "ann", "reason": "fans", "to": "draining", "now": True}
    memory.context.ledger.append(LedgerEntry("m", memory.context.now, "move", "n0002", asked))
    one_pass(memory)
    one_pass(memory)
    assert memory.node_states()["n0002"].state == "triage"
    assert state("n0002") == "drained"

    own.kill("slurmctld")
    assert one_pass(memory) == [], "nobody can tell"
    own.control("-c")
    until(lambda: state_of("n0002").startswith("idle"))
    one_pass(memory)
    assert state("n0002") == "drained"
    assert "(closed again, after it was opened)" in reason("n0002")


def test_others_who_drained_it_first_keep_their_drain_and_ours_follows(own: Cluster, memory: FleetSnapshotCache):
    job("gemma", "n0003")
    by_hand("n0003", state="drain", reason="bob: fans")
    hot(memory, "n0003")
    one_pass(memory)
    assert reason("n0003") == "bob: fans"

    by_hand("n0003", state="resume")
    one_pass(memory)
    assert reason("n0003").startswith("assay: ")


def test_a_node_that_slurm_took_down_itself_gets_a_drain_that_outlasts_that(own: Cluster, memory: FleetSnapshotCache):
    own.kill("n0004")
    said("scontrol", "update", "nodename=n0004", "state=down", "reason=Not responding")
    asked = {"who": "ann", "reason": "fans", "to": "draining", "now": True}
    memory.context.ledger.append(LedgerEntry("m", memory.context.now, "move", "n0004", asked))
    told = one_pass(memory)
    assert any("cordon verified: cordoned: assay: " in line for line in told)

    own.join("n0004", "-b")
    until(lambda: "NOT_RESPONDING" not in said("sinfo", "--json", "--nodes=n0004"))
    assert adapter().read_cordon_reason("n0004").startswith("assay: ")
    assert said("srun", "--nodelist=n0004", "--immediate=2", "hostname") == ""


def state_of(name: str) -> str:
    """Return a node's state, "" while nobody can tell."""
    try:
        adapter().read_cordon_reason(name)
    except AssayError:
        return ""
    return state(name)
