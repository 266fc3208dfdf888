"""A fabric of the lab, scanned and evaluated by schedule with the real ibnetdiscover."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.act.loop.context import ControllerContext
from assay.act.schedules.due_slots import SLOT_RAN
from assay.act.schedules.scheduled_jobs import SCHEDULED_JOBS
from assay.act.schedules.slot_runner import list_due_tasks, run_slot_task
from assay.ledger.store import Ledger
from assay.observe.evidence_store import EvidenceStore
from tests.act.schedules.by_hand import in_production
from tests.support.lab_room import Room


@pytest.mark.slow
def test_a_scan_and_a_week_are_carried_out_and_kept(room: Room, tmp_path: Path):
    ledger, store = Ledger.open(tmp_path / "ledger.sqlite"), EvidenceStore(tmp_path / "evidence")
    desk = ControllerContext(room.fleet, ledger, store, room.world.clock(), tmp_path / "home", tmp_path / "reports")
    in_production(desk)
    for task in list_due_tasks(desk, desk.clock.now()):
        if task.job.startswith("fabric"):
            assert run_slot_task(desk, task, SCHEDULED_JOBS)
    scan, week = ledger.entries(kinds=[SLOT_RAN])
    assert (scan.body["ended"], scan.body["verdict"]) == ("done", "match")
    assert scan.body["reason"].startswith("fabric compute: match (416 of 416 cables")
    assert (week.body["ended"], (tmp_path / "reports/weekly/compute.txt").exists()) == ("done", True)
    assert week.body["reason"].endswith("its report is reports/weekly/compute.txt")
    [run] = ledger.iter_runs()
    assert (run.id, run.phases) == (week.body["run"], ("weekly",))
    assert {one.outcome.verdict for one in ledger.outcomes(run.id)} <= {"pass", "skip"}
