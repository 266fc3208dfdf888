"""Slots in a real ledger: begun, ended, claimed by one, and taken up again after SIGKILL."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time

from assay.act.loop.context import ControllerContext
from assay.act.schedules.due_slots import SLOT_BEGUN, SLOT_RAN, SlotTask, list_schedule_lines
from assay.act.schedules.slot_runner import SlotResult, list_due_tasks, read_schedule_history, run_slot_task
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.specs.load_parts import LOAD_PARTS
from assay.node.load_tools.registry import LOAD_TOOLS
from tests.act.schedules.by_hand import begun_slot

DYING = """
import json, os, signal, sys
from pathlib import Path
from assay.ledger.leases import hold_lease
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
ledger, lease, begun, body = Ledger.open(Path(sys.argv[1])), *sys.argv[2:]
with hold_lease(ledger, lease, 0.2):
    ledger.append(LedgerEntry(begun, "2026-11-21T12:00:00+00:00", "schedule.begun", body=json.loads(body)))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def only(desk: ControllerContext, name: str) -> SlotTask:
    [task] = [task for task in list_due_tasks(desk, desk.clock.now()) if task.line.name == name]
    return task


def kinds(desk: ControllerContext) -> list[tuple[str, str]]:
    return [(entry.kind, entry.body.get("ended", "")) for entry in desk.ledger.entries(kinds=[SLOT_BEGUN, SLOT_RAN])]


def well(*_: object) -> SlotResult:
    return SlotResult("done", "as it should be", {"found": 3})


def test_the_fleet_has_its_schedules_for_its_pools_and_fabrics(desk):
    parts = {(line.name, line.target) for line in list_schedule_lines(desk.fleet)}
    assert parts == {
        ("collectives", "compute"),
        ("fabric-scan", "compute"),
        ("fabric-week", "compute"),
        ("stale", "byo-b"),
        ("stale", "h100-a"),
        ("trends", "fleet"),
    }, "no scheduler places jobs in this inventory, so nothing can be verified in spare time"


def test_a_slot_is_begun_done_and_told_once(desk):
    task = only(desk, "fabric-scan")
    assert run_slot_task(desk, task, jobs={"fabric-scan": well})
    assert not run_slot_task(desk, task, jobs={"fabric-scan": well}), "it is over"
    assert kinds(desk) == [(SLOT_BEGUN, ""), (SLOT_RAN, "done")]
    [_, ran] = desk.ledger.entries(kinds=[SLOT_BEGUN, SLOT_RAN])
    assert ran.id == task.id
    assert ran.body | {"found": 3, "reason": "as it should be", "attempt": 1} == ran.body


def test_what_stands_in_its_way_is_how_it_ended(desk):
    def trouble(*_: object) -> SlotResult:
        raise AssayError("no answer from ibnetdiscover", where="head1")

    run_slot_task(desk, only(desk, "fabric-scan"), jobs={"fabric-scan": trouble})
    assert kinds(desk) == [(SLOT_BEGUN, ""), (SLOT_RAN, "failed")]
    assert "head1: no answer" in desk.ledger.entries(kinds=[SLOT_RAN])[0].body["reason"]


def test_of_two_controllers_one_carries_a_slot_out(desk):
    at_it, may_end = threading.Event(), threading.Event()

    def long(*_: object) -> SlotResult:
        at_it.set()
        may_end.wait(60)
        return well()

    task = only(desk, "fabric-scan")
    first = threading.Thread(target=run_slot_task, args=(desk, task), kwargs={"jobs": {"fabric-scan": long}})
    first.start()
    assert at_it.wait(60)
    assert not run_slot_task(desk, task, jobs={"fabric-scan": well})
    assert not [one for one in list_due_tasks(desk, desk.clock.now()) if one.line.name == "fabric-scan"]
    desk.clock.sleep(6 * 3600)
    assert not [one for one in list_due_tasks(desk, desk.clock.now()) if one.line.name == "fabric-scan"], (
        "nor one beside it"
    )
    may_end.set()
    first.join()
    assert kinds(desk) == [(SLOT_BEGUN, ""), (SLOT_RAN, "done")]
    assert only(desk, "fabric-scan").slot > task.slot


def test_a_slot_whose_controller_was_killed_is_taken_up_when_its_lease_is_over(desk):
    task = only(desk, "fabric-scan")
    begun = begun_slot(task, "begun", "")
    words = [desk.home / "ledger.sqlite", task.lease_name, begun.id, json.dumps(begun.body)]
    dead = subprocess.run([sys.executable, "-c", DYING, *map(str, words)], check=False)
    assert dead.returncode == -signal.SIGKILL
    while desk.ledger.leases():
        time.sleep(0.02)
    again = only(desk, "fabric-scan")
    assert (again.id, again.attempt) == (task.id, 2)
    assert run_slot_task(desk, again, jobs={"fabric-scan": well})
    assert kinds(desk) == [(SLOT_BEGUN, ""), (SLOT_BEGUN, ""), (SLOT_RAN, "done")]
    assert desk.ledger.entries(kinds=[SLOT_RAN])[0].body["attempt"] == 2


def test_while_a_dead_holders_lease_runs_its_slot_is_left_alone(desk):
    task = only(desk, "fabric-scan")
    desk.ledger.append(begun_slot(task, "begun", desk.now))
    desk.ledger.claim_lease(task.lease_name, "somebody", 60)
    assert "fabric-scan" not in {one.line.name for one in list_due_tasks(desk, desk.clock.now())}
    desk.ledger.release(task.lease_name, "somebody")
    assert only(desk, "fabric-scan").attempt == 2


def test_a_slot_that_was_left_is_told_as_lost_once_the_next_is_there(desk):
    task = only(desk, "fabric-scan")
    desk.ledger.append(begun_slot(task, "begun", desk.now))
    desk.clock.sleep(6 * 3600)
    for one in list_due_tasks(desk, desk.clock.now()):
        if one.line.name == "fabric-scan":
            run_slot_task(desk, one, jobs={"fabric-scan": well})
    assert kinds(desk) == [(SLOT_BEGUN, ""), (SLOT_RAN, "lost"), (SLOT_BEGUN, ""), (SLOT_RAN, "done")]


def test_another_controller_reads_what_the_first_one_did(desk, tmp_path):
    run_slot_task(desk, only(desk, "fabric-scan"), jobs={"fabric-scan": well})
    other = Ledger.open(tmp_path / "ledger.sqlite")
    [line] = [line for line in list_schedule_lines(desk.fleet) if line.name == "fabric-scan"]
    assert len(read_schedule_history(other).get(line).ended) == 1


def test_the_parts_that_a_schedule_can_name_are_those_that_the_probe_has():
    assert set(LOAD_PARTS) == set(LOAD_TOOLS)
