"""A controller that begins a slot and is killed in it: `slot_killed.py LEDGER ROOT HOME LAB`, at the lab's time."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from assay.controller.clock import schedule
from assay.controller.clock.timetable import Task
from assay.controller.desk import Desk
from assay.fleet.load import load_fleet
from assay.lab.world import World
from assay.ledger.store import Ledger
from assay.observe.store import EvidenceStore


def desk_of(ledger: Path | str, root: Path, home: Path, lab: Path) -> Desk:
    """Return the desk of two of the lab's nodes."""
    fleet = load_fleet(root, [lab / "inventory.yml"])
    fleet = replace(fleet, nodes={name: fleet.nodes[name] for name in ("n0003", "n0004")})
    store = EvidenceStore(home / "evidence")
    return Desk(fleet, Ledger.open(ledger), store, World(lab).clock(), home, home / "reports")


def verification(desk: Desk) -> Task | None:
    """Return the verification that is due, None where it is over or in living hands."""
    found = schedule.due(desk, desk.clock.now())
    return next((task for task in found if task.does == "idle-verification"), None)


if __name__ == "__main__":
    schedule.LEASE_S = 1.0
    here = desk_of(sys.argv[1] if "://" in sys.argv[1] else Path(sys.argv[1]), *map(Path, sys.argv[2:]))
    task = verification(here)
    print(bool(task and schedule.carry_out(here, task)))  # noqa: T201 — who survives says so
