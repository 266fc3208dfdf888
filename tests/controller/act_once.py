"""A program that does what a pass does first: finish what was begun, and what is owed to the nodes.

With `alone NODE ACTION` it carries one effect in its own main thread, where ansible-runner hears SIGTERM.
"""

from __future__ import annotations

import sys
from pathlib import Path

from assay.actions.action import Intent
from assay.actions.catalogue import action
from assay.controller.desk import Desk
from assay.controller.effects import effect as steps
from assay.controller.effects.act import act
from assay.controller.effects.journal import effect_id
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
    store = EvidenceStore(home / "evidence")
    return Desk(fleet, ledger, store, world.clock(), home, root / "reports", progress=tell)


def tell(line: str) -> None:
    """Show a line of progress."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def alone(desk: Desk, node: str, name: str) -> None:
    """Carry the effect that decision `d1` wants."""
    intent = Intent(effect_id("d1", name), name, node, "d1", "a test wants it")
    begun = steps.begin(desk.context(), action(name), intent)
    steps.prove(desk.context(), action(name), begun, steps.bring_about(desk.context(), action(name), begun))


if __name__ == "__main__":
    desk = desk_of(Path(sys.argv[1]))
    with only_controller(desk.home):
        if sys.argv[2:]:
            sys.exit(alone(desk, *sys.argv[3:]))
        act(desk)
