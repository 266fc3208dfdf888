"""A controller that begins a slot and is killed in it: `slot_killed LEDGER ROOT HOME LAB`, at the lab's time."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from assay.act.loop.context import ControllerContext
from assay.act.schedules import slot_runner
from assay.act.schedules.due_slots import SlotTask
from assay.act.schedules.scheduled_jobs import SCHEDULED_JOBS
from assay.declare.loader import load_fleet
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from assay.observe.evidence_store import EvidenceStore


def desk_of(ledger: Path | str, root: Path, home: Path, lab: Path) -> ControllerContext:
    """Return the desk of two of the lab's nodes."""
    fleet = load_fleet(root, [lab / "inventory.yml"])
    fleet = replace(fleet, nodes={name: fleet.nodes[name] for name in ("n0003", "n0004")})
    store = EvidenceStore(home / "evidence")
    return ControllerContext(fleet, Ledger.open(ledger), store, LabWorld(lab).clock(), home, home / "reports")


def verification(desk: ControllerContext) -> SlotTask | None:
    """Return the verification that is due, None where it is over or in living hands."""
    found = slot_runner.list_due_tasks(desk, desk.clock.now())
    return next((task for task in found if task.job == "idle-verification"), None)


if __name__ == "__main__":
    slot_runner.SLOT_LEASE_S = 1.0
    here = desk_of(sys.argv[1] if "://" in sys.argv[1] else Path(sys.argv[1]), *map(Path, sys.argv[2:]))
    task = verification(here)
    print(bool(task and slot_runner.run_slot_task(here, task, SCHEDULED_JOBS)))  # noqa: T201 — who survives says so
