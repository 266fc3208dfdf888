"""Nodes of the lab whose scheduler is a real Slurm: verified in spare time, which a customer's job ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from assay.act.loop.context import ControllerContext
from assay.act.schedules.due_slots import ScheduleLine, SlotTask
from assay.act.schedules.idle_verification import verify_idle
from assay.act.schedules.slot_runner import SlotResult
from assay.adapters.scheduler import VERIFY_UNDRAIN
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.node import Node
from assay.model.specs.schedules import FleetSchedule, IdleVerificationSpec, find_previous_slot
from assay.observe.evidence_store import EvidenceStore
from tests.act.schedules.by_hand import in_production
from tests.support.lab_room import Room
from tests.support.slurm_cluster import cluster, needs_slurm, said, until
from tests.support.slurm_room import SETTINGS, by_hand, job, state, submitted

pytestmark = [needs_slurm, pytest.mark.slow]
NODE, OTHER = "n0003", "n0004"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with cluster(tmp_path_factory.mktemp("slurm"), NODE, OTHER, more=SETTINGS):
        yield


@pytest.fixture
def desk(room: Room, slurm: None, tmp_path: Path) -> Iterator[ControllerContext]:
    for name in (NODE, OTHER):
        room.fresh(name)
    nodes = {name: in_slurm(room, room.fleet.nodes[name]) for name in (NODE, OTHER)}
    ledger, store = Ledger.open(tmp_path / "ledger.sqlite"), EvidenceStore(tmp_path / "evidence")
    fleet = replace(room.fleet, nodes=nodes)
    desk = ControllerContext(fleet, ledger, store, SystemClock(), tmp_path, tmp_path / "reports")
    in_production(desk)
    yield desk
    said("scancel", "--partition=prod")
    until(lambda: not said("squeue", "--noheader"))


def in_slurm(room: Room, node: Node) -> Node:
    """Return a node of the lab that Slurm places jobs on, and whose probe is a program there."""
    there = [
        sys.executable,
        "-m",
        "assay.lab.node.shell",
        str(room.world.home),
        node.name,
        "python3",
        "-m",
        "assay.node.probe",
    ]
    told = {"workloads": "slurm", "slurm_spare_partition": "assay", "probe_command": there, "transport": "local"}
    return replace(node, settings=node.settings.model_copy(update={**told, "reach": []}))


def verified(desk: ControllerContext) -> SlotResult:
    how = {"phase": "test", "parts": ["all_reduce", "gpu_burn", "nvme_read", "memory", "battery"], "seconds": 1}
    how |= {"within_minutes": 5.0, "at_once": 2, "told_after": 3}
    schedule = FleetSchedule(does="idle-verification", cron="0 * * * *", verification=IdleVerificationSpec(**how))
    slot = find_previous_slot(schedule, "UTC", desk.clock.now())
    return verify_idle(desk, SlotTask(ScheduleLine("idle", "h100-a", schedule, "UTC"), slot))


def test_an_idle_node_is_verified_as_a_job_and_one_in_use_is_not_touched(desk):
    number = job("llama", OTHER)
    ended = verified(desk)
    assert ended.facts["passed"] == {"": [NODE]}, ended.reason
    [(why, names)] = ended.facts["busy"].items()
    assert names == [OTHER]
    assert f"job {number} (llama" in why


def test_a_customer_gets_the_node_in_the_middle_of_its_verification(desk, room):
    job("llama", OTHER)
    room.change(NODE, lambda state: state["fails"].update(probe_hangs=True))
    found: list[SlotResult] = []
    going = Thread(target=lambda: found.append(verified(desk)))
    going.start()
    until(lambda: "assay-spare" in said("squeue", "--noheader", f"--nodelist={NODE}", "--format=%j"))
    number = submitted("gemma", NODE)
    until(lambda: said("squeue", "--noheader", f"--job={number}", "--format=%T") == "RUNNING")
    room.change(NODE, lambda state: state["fails"].update(probe_hangs=False))
    going.join()
    [why] = found[0].facts["yielded"]
    assert "gemma" in why
    assert desk.ledger.latest() == []
    assert desk.ledger.entries(kinds=["fault"]) == []


def test_a_drain_that_asks_for_it_ends_when_the_node_has_passed(desk):
    by_hand(NODE, state="drain", reason=f"bob: odd losses {VERIFY_UNDRAIN}")
    by_hand(OTHER, state="drain", reason="bob: has it open")
    until(lambda: state(NODE).startswith("drained"))
    ended = verified(desk)
    assert ended.facts["passed"] == {"": [NODE]}, ended.reason
    assert ended.facts["skipped"] == {"cordoned: bob: has it open": [OTHER]}
    assert [entry.node for entry in desk.ledger.entries(kinds=["node.undrained"])] == [NODE]
    until(lambda: state(NODE).startswith("idle"))
    assert state(OTHER).startswith("drained")
    by_hand(OTHER, state="resume")
