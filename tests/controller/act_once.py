"""A program that does what a pass does first: finish what was begun, and what is owed to the nodes."""

from __future__ import annotations

import sys
from pathlib import Path

from assay.controller.act import act
from assay.controller.desk import Desk
from assay.controller.lock import only_controller
from assay.fleet.load import load_fleet
from assay.lab.world import World
from assay.ledger.store import Ledger
from assay.observe.store import EvidenceStore


def desk_of(root: Path) -> Desk:
    """Return the desk of a fleet whose lab is up."""
    home, world = root / ".assay", World(root / ".assay" / "lab")
    fleet = load_fleet(root, [world.home / "inventory.yml"])
    ledger = Ledger.open(home / "ledger.sqlite")
    return Desk(fleet, ledger, EvidenceStore(home / "evidence"), world.clock(), home, root / "reports")


if __name__ == "__main__":
    desk = desk_of(Path(sys.argv[1]))
    with only_controller(desk.home):
        act(desk)
