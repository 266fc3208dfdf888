"""A node that is out stays closed, whatever becomes of our drain: real passes over nodes of a real Slurm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from slurm_cluster import Cluster, cluster, needs_slurm, said, until
from slurm_room import SETTINGS, adapter, by_hand, job, reason, state

from assay.actions.workloads import workloads_of
from assay.controller.desk import Desk
from assay.controller.known.memory import Memory
from assay.controller.once import act_where_owed, decide_now
from assay.controller.people.telling import lines
from assay.fleet.load import load_fleet
from assay.ledger.store import Ledger
from assay.lifecycle import journal
from assay.lifecycle.classify import FaultSeen
from assay.lifecycle.when import written
from assay.model.clock import SystemClock
from assay.model.entry import Entry
from assay.model.errors import Trouble
from assay.observe.store import EvidenceStore

pytestmark = [needs_slurm, pytest.mark.slow]
REPOSITORY = Path(__file__).resolve().parents[2]
NODES = ("n0001", "n0002", "n0003", "n0004")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("own"), *NODES, more=SETTINGS) as running:
        yield running


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Have nodes of the example fleet serve, with Slurm as their scheduler."""
    fleet, clock = load_fleet(REPOSITORY), SystemClock()
    nodes = {name: replace(fleet.nodes[name], variables={"workloads": "slurm"}) for name in NODES}
    ledger, store = Ledger.open(tmp_path / "ledger.sqlite"), EvidenceStore(tmp_path / "evidence")
    desk = Desk(replace(fleet, nodes=nodes), ledger, store, clock, tmp_path, tmp_path / "reports", workloads_of)
    ledger.append(*(journal.enrolled(name, nodes[name].pool, "production", clock.now()) for name in NODES))
    return Memory(desk)


def one_pass(memory: Memory) -> list[str]:
    """Decide and act; return what changed, in words."""
    memory.news()
    decide_now(memory)
    act_where_owed(memory, NODES)
    return lines(memory.news())


def hot(memory: Memory, name: str) -> None:
    """Let a GPU be hot, so that the node is closed and its job waited for."""
    desk, at = memory.desk, memory.desk.now
    treatment = desk.fleet.catalog.treatment("gpu.thermal")
    about = (treatment.severity, treatment.blame, treatment.remedy, 1, written(at), written(at), "as planted")
    subject = f"{desk.fleet.nodes[name].subject}/gpu3"
    seen = FaultSeen(f"hot-{name}", name, "gpu.thermal", subject, *about, {"check": at}, (written(at),))
    desk.ledger.append(journal.fault(seen, desk.clock.now()))


def test_a_person_who_resumes_a_node_in_mid_repair_finds_it_drained_again(own: Cluster, memory: Memory):
    job("llama", "n0001")
    hot(memory, "n0001")
    one_pass(memory)
    assert state("n0001") == "draining"

    by_hand("n0001", state="resume")
    assert adapter().cordoned("n0001") == ""
    said_now = one_pass(memory)
    assert "closes the node again: cordon of 20" in said_now[0]
    assert reason("n0001").startswith("assay: gpu.thermal on h100-a/n0001/gpu3: as planted (closed again, after it was")
    assert one_pass(memory) == []
    memory.desk.ledger.append(Entry("h", memory.desk.now, "hold", "n0001", {"who": "bob", "reason": "mine"}))
    by_hand("n0001", state="resume")
    assert one_pass(memory) == [], "held: bob may"


def test_a_slurm_that_forgot_everything_gets_its_drains_again(own: Cluster, memory: Memory):
    asked = {"who": "ann", "reason": "fans", "to": "draining", "now": True}
    memory.desk.ledger.append(Entry("m", memory.desk.now, "move", "n0002", asked))
    one_pass(memory)
    one_pass(memory)
    assert memory.stories()["n0002"].state == "triage"
    assert state("n0002") == "drained"

    own.kill("slurmctld")
    assert one_pass(memory) == [], "nobody can tell"
    own.control("-c")
    until(lambda: state_of("n0002").startswith("idle"))
    one_pass(memory)
    assert state("n0002") == "drained"
    assert "(closed again, after it was opened)" in reason("n0002")


def test_others_who_drained_it_first_keep_their_drain_and_ours_follows(own: Cluster, memory: Memory):
    job("gemma", "n0003")
    by_hand("n0003", state="drain", reason="bob: fans")
    hot(memory, "n0003")
    one_pass(memory)
    assert reason("n0003") == "bob: fans"

    by_hand("n0003", state="resume")
    one_pass(memory)
    assert reason("n0003").startswith("assay: ")


def test_a_node_that_slurm_took_down_itself_gets_a_drain_that_outlasts_that(own: Cluster, memory: Memory):
    own.kill("n0004")
    said("scontrol", "update", "nodename=n0004", "state=down", "reason=Not responding")
    asked = {"who": "ann", "reason": "fans", "to": "draining", "now": True}
    memory.desk.ledger.append(Entry("m", memory.desk.now, "move", "n0004", asked))
    told = one_pass(memory)
    assert any("cordon verified: cordoned: assay: " in line for line in told)

    own.join("n0004", "-b")
    until(lambda: "NOT_RESPONDING" not in said("sinfo", "--json", "--nodes=n0004"))
    assert adapter().cordoned("n0004").startswith("assay: ")
    assert said("srun", "--nodelist=n0004", "--immediate=2", "hostname") == ""


def state_of(name: str) -> str:
    """Return a node's state, "" while nobody can tell."""
    try:
        adapter().cordoned(name)
    except Trouble:
        return ""
    return state(name)
