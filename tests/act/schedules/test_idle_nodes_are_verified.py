"""Nodes of the lab, verified in their spare time: passes count, failures are faults, and customers come first."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from assay.act.loop.context import ControllerContext
from assay.act.schedules import idle_verification
from assay.act.schedules.due_slots import ScheduleLine, SlotTask
from assay.act.schedules.idle_verification import VERIFICATION_MISSED, judge_cut, verify_idle
from assay.act.schedules.idle_visits import IdleNodeResult, NodeVisit, load_idle_node
from assay.act.schedules.slot_runner import SlotResult
from assay.adapters.scheduler import VERIFY_UNDRAIN
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.schedules import FleetSchedule, IdleVerificationSpec, find_previous_slot
from assay.observe.evidence_collector import collect_evidence
from assay.observe.evidence_store import EvidenceStore
from tests.act.schedules.by_hand import in_production
from tests.support.lab_room import Room

NODE, OTHER = "n0003", "n0004"
FOREVER_S = 10_000_000
BURN = "suites/test/test_gpu.py::test_gpu_burn"


@pytest.fixture
def desk(room: Room, tmp_path) -> ControllerContext:
    """Return the desk of two nodes that serve and that nobody uses."""
    fleet = replace(room.fleet, nodes={name: room.fleet.nodes[name] for name in (NODE, OTHER)})
    for name in (NODE, OTHER):
        room.fresh(name)
        room.scheduler(name)._request("POST", f"/nodes/{name}/requeue")
        room.scheduler(name)._request("DELETE", f"/nodes/{name}/cordon")
    ledger, store = Ledger.open(tmp_path / "ledger.sqlite"), EvidenceStore(tmp_path / "evidence")
    desk = ControllerContext(fleet, ledger, store, room.world.clock(), tmp_path, tmp_path / "reports")
    in_production(desk)
    return desk


def task(desk: ControllerContext, at_once: int = 2, **more: Any) -> SlotTask:
    how = {"phase": "test", "parts": ["all_reduce", "gpu_burn", "nvme_read", "memory"], "seconds": 1}
    how |= {"within_minutes": 2.0, "at_once": at_once, "told_after": 3, **more}
    schedule = FleetSchedule(does="idle-verification", cron="0 * * * *", verification=IdleVerificationSpec(**how))
    line = ScheduleLine("idle", "h100-a", schedule, "UTC")
    return SlotTask(line, find_previous_slot(schedule, "UTC", desk.clock.now()))


def busy(room: Room, name: str) -> str:
    return str(room.scheduler(name).place("llama", "customer", name, FOREVER_S))


def is_asked(room: Room, name: str) -> bool:
    """Whether a command runs on a virtual node."""
    words = [b"assay.lab.node.shell", os.fsencode(room.world.home), name.encode()]
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if set(words) <= set(file.read_bytes().split(b"\0")):
                return True
    return False


def came(ended: SlotResult) -> dict[str, Any]:
    assert ended.status == "done", ended.reason
    return dict(ended.facts)


def faults(desk: ControllerContext) -> list[tuple[str, str]]:
    found = desk.ledger.entries(kinds=["fault", "fault.cleared"])
    return [(entry.kind, entry.body.get("class", "")) for entry in found]


def judged(desk: ControllerContext, node: str) -> dict[str, str]:
    return {one.outcome.subject: one.outcome.verdict for one in desk.ledger.latest(node) if one.outcome.check == BURN}


@pytest.mark.slow
def test_a_failure_is_a_fault_and_the_next_pass_ends_it_and_who_is_in_use_is_left_to_the_next_slot(desk, room):
    job = busy(room, OTHER)
    room.change(NODE, lambda state: state["gpus"][4].update(burn_ok=False))
    [(why, names)] = came(verify_idle(desk, task(desk)))["failed"].items()
    assert (names, why) == ([NODE], "test_gpu_burn: computed wrong results")
    assert faults(desk) == [("fault", "gpu.burn.failed")]
    room.change(NODE, lambda state: state["gpus"][4].update(burn_ok=True))
    ended = verify_idle(desk, task(desk))
    assert came(ended) == {"passed": {"": [NODE]}, "busy": {job: [OTHER]}}
    assert ended.reason == f"1 passed ({NODE}), 1 in use ({OTHER}: {job})"
    assert faults(desk)[1:] == [("fault.cleared", "")]
    assert set(judged(desk, NODE).values()) == {"pass"}
    assert judged(desk, OTHER) == {}
    assert desk.evidence.latest(NODE).read("active", "memory", "errors").value == 0


def test_a_customer_in_the_middle_ends_it_and_that_is_neither_pass_nor_fail(desk, room):
    busy(room, OTHER)
    room.change(NODE, lambda state: state["fails"].update(probe_hangs=True))
    jobs: list[str] = []
    customers: list[Thread] = []

    def as_soon_as_it_runs(line: str) -> None:
        if "loading" in line:
            customers.append(Thread(target=come, daemon=True))
            customers[-1].start()

    def come() -> None:
        while not is_asked(room, NODE):
            time.sleep(0.05)
        jobs.append(busy(room, NODE))

    ended = verify_idle(replace(desk, progress=as_soon_as_it_runs), task(desk))
    for customer in customers:
        customer.join()  # the node may be free before the scheduler's answer has arrived
    assert came(ended)["yielded"] == {jobs[0]: [NODE]}
    [visit] = desk.ledger.entries(kinds=["node.loaded"])
    assert visit.body["reason"] == jobs[0]
    assert visit.body["gone_ms"] >= 0, "what the visit cost the customer is kept"
    assert "passed" not in ended.facts
    assert desk.ledger.latest() == []
    assert faults(desk) == []


@pytest.mark.slow
def test_a_wrong_result_before_a_customer_came_is_evidence_and_nothing_good_is(desk, room):
    known = desk.evidence.latest(NODE) or collect_evidence(desk.fleet, [NODE], clock=desk.clock, store=desk.evidence)
    assert known
    at = {"value": desk.now}
    wrong = {"memory": {"started_at": at, "errors": {"value": 7}}, "gpu_burn": {"failed": "killed: a customer came"}}
    right = {"memory": {"started_at": at, "errors": {"value": 0}}}
    store = EvidenceStore(desk.home / "cut")
    loads = [IdleNodeResult(NODE, "yielded", "job 7", wrong, 200), IdleNodeResult(OTHER, "yielded", "job 8", right, 90)]
    failures = [recorded.outcome for recorded in judge_cut(desk, "test", loads, store)]
    assert [(one.node, one.check.rpartition("::")[2]) for one in failures] == [(NODE, "test_memory_verifies")]
    assert [recorded.outcome.node for recorded in desk.ledger.latest()] == [NODE], "what was cut short proves nothing"


@pytest.mark.slow
def test_each_visit_says_what_it_covered_and_the_next_one_runs_what_it_left_out(desk, room):
    busy(room, OTHER)
    short = task(desk, budget_minutes=0.04)  # two seconds: two of the four parts
    verify_idle(desk, short)
    [first] = desk.ledger.entries(kinds=["node.loaded"])
    ended = {part: told["ended"] for part, told in first.body["parts"].items()}
    assert ended == {"all_reduce": "done", "gpu_burn": "done"}
    assert len(first.body["gpus"]) == 8
    verify_idle(desk, replace(short, slot=short.slot + timedelta(hours=1)))
    [_, second] = desk.ledger.entries(kinds=["node.loaded"])
    assert sorted(second.body["parts"]) == ["memory", "nvme_read"]
    checks = {recorded.outcome.check.rpartition("::")[2] for recorded in desk.ledger.latest(NODE)}
    assert {"test_gpu_burn", "test_memory_verifies"} <= checks, "each visit judges what it ran"
    covered = [one.outcome for one in desk.ledger.latest(NODE) if one.outcome.phases == ("idle",)]
    assert {outcome.subject: outcome.verdict for outcome in covered} == {
        f"h100-a/{NODE}/gpu{n}": "pass" for n in range(8)
    }
    assert {one.name for one in covered[0].measurements} == {
        f"{part}_age" for part in short.line.schedule.verification.parts
    }


def test_what_cannot_be_loaded_is_told_and_counts_for_nothing(desk, room):
    busy(room, OTHER)
    room.change(NODE, lambda state: state["power"].update(state="Off"))
    [(why, names)] = came(verify_idle(desk, task(desk)))["unknown"].items()
    assert names == [NODE]
    assert "No route to host" in why
    assert desk.ledger.latest() == []


def test_who_is_held_or_cordoned_by_somebody_is_left_out(desk, room):
    desk.ledger.append(LedgerEntry("h", desk.now, "hold", NODE, {"who": "sue", "reason": "looks at it"}))
    room.scheduler(OTHER)._request("PUT", f"/nodes/{OTHER}/cordon", {"reason": "maintenance by hand"})
    assert came(verify_idle(desk, task(desk)))["skipped"] == {
        "held by sue: looks at it": [NODE],
        "cordoned: maintenance by hand": [OTHER],
    }


@pytest.mark.slow
def test_a_drain_that_asks_for_it_ends_with_the_next_pass_and_not_with_a_failure(desk, room):
    busy(room, OTHER)
    reason = f"sue: odd losses, {VERIFY_UNDRAIN}"
    room.scheduler(NODE)._request("PUT", f"/nodes/{NODE}/cordon", {"reason": reason})
    room.change(NODE, lambda state: state["active"].update(memory_errors=7))
    assert "failed" in came(verify_idle(desk, task(desk)))
    assert room.scheduler(NODE).read_cordon_reason(NODE) == reason
    room.change(NODE, lambda state: state["active"].update(memory_errors=0))
    assert "passed" in came(verify_idle(desk, task(desk)))
    assert room.scheduler(NODE).read_cordon_reason(NODE) == ""
    [undrained] = desk.ledger.entries(kinds=["node.undrained"])
    assert (undrained.node, undrained.body["reason"]) == (NODE, reason)


@pytest.mark.slow
def test_a_cordon_of_ours_on_a_node_that_serves_ends_with_the_next_pass_unless_somebody_has_it(desk, room, monkeypatch):
    def meanwhile(desk: ControllerContext, visit: NodeVisit, store: EvidenceStore) -> IdleNodeResult:
        desk.ledger.append(LedgerEntry("h", desk.now, "hold", OTHER, {"who": "sue", "reason": "looks at it"}))
        return load_idle_node(desk, visit, store)

    monkeypatch.setattr(idle_verification, "load_idle_node", meanwhile)
    for name in (NODE, OTHER):
        room.scheduler(name).cordon(name, "ib.link.down on mlx5_0: a hook saw it for a moment")
    assert came(verify_idle(desk, task(desk)))["passed"] == {"": [NODE, OTHER]}
    assert room.scheduler(NODE).read_cordon_reason(NODE) == ""
    assert room.scheduler(OTHER).read_cordon_reason(OTHER).startswith("assay: ib.link.down")
    assert [entry.node for entry in desk.ledger.entries(kinds=["node.undrained"])] == [NODE]


def test_a_node_that_is_never_idle_is_told_once_after_so_many_slots(desk, room):
    busy(room, NODE)
    busy(room, OTHER)
    verify_idle(desk, task(desk))
    assert desk.ledger.entries(kinds=[VERIFICATION_MISSED]) == []
    room.world.jump(timedelta(hours=5))
    later = replace(desk, clock=room.world.clock())
    assert verify_idle(later, task(later)).reason.endswith("2 nodes not verified for too long")
    verify_idle(later, task(later))
    assert [entry.node for entry in desk.ledger.entries(kinds=[VERIFICATION_MISSED])] == [NODE, OTHER]


@pytest.mark.slow
def test_who_takes_a_slot_up_judges_what_was_loaded_and_loads_nothing_twice(desk, room):
    busy(room, OTHER)
    first = task(desk)
    verify_idle(desk, first)
    kept = EvidenceStore(desk.home / "verification" / "idle.h100-a" / first.id)
    assert not kept.folder.exists(), "a slot that ended leaves nothing"
    kept.store_latest(desk.evidence.latest(NODE))
    lines: list[str] = []
    ended = verify_idle(replace(desk, progress=lines.append), replace(first, attempt=2))
    assert came(ended)["passed"] == {"": [NODE]}
    assert not [line for line in lines if "loading" in line]


def test_no_more_nodes_of_a_pool_are_loaded_at_once_than_its_schedule_says(desk, monkeypatch):
    under_way: list[str] = []

    def alone(_: ControllerContext, visit: NodeVisit, __: object) -> IdleNodeResult:
        under_way.append(visit.node.name)
        time.sleep(0.05)
        assert under_way == [visit.node.name]
        return IdleNodeResult(under_way.pop(), "unknown", "not today")

    monkeypatch.setattr(idle_verification, "load_idle_node", alone)
    assert came(verify_idle(desk, task(desk, at_once=1)))["unknown"] == {"not today": [NODE, OTHER]}
