"""A program that does what a pass does first: finish what was begun, and what is owed to the nodes.

With `alone NODE ACTION` it carries one effect in its own main thread, where ansible-runner hears SIGTERM.
"""

from __future__ import annotations

import sys
from pathlib import Path

from assay.act.actions.action import EffectIntent, load_action
from assay.act.effects import effect_attempt_and_verification as steps
from assay.act.effects.effect_journal import derive_effect_id, journal_intent
from assay.act.effects.pending_effect_runner import run_effects
from assay.act.loop.context import ControllerContext
from assay.declare.loader import load_fleet
from assay.lab.world import LabWorld
from assay.ledger.leases import hold_controller_lock
from assay.ledger.store import Ledger
from assay.observe.evidence_store import EvidenceStore


def desk_of(root: Path) -> ControllerContext:
    """Return the desk of a fleet whose lab is up."""
    home, world = root / ".assay-lab", LabWorld(root / ".assay-lab" / "world")
    fleet = load_fleet(root, [world.home / "inventory.yml"])
    ledger = Ledger.open(home / "ledger.sqlite", context="lab")
    store = EvidenceStore(home / "evidence")
    return ControllerContext(fleet, ledger, store, world.clock(), home, root / "reports", progress=tell)


def tell(line: str) -> None:
    """Show a line of progress."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def alone(desk: ControllerContext, node: str, name: str) -> None:
    """Carry the effect that decision `d1` wants."""
    intent = EffectIntent(derive_effect_id("d1", name), name, node, "d1", "a test wants it")
    begun = journal_intent(desk, load_action(name), intent)
    steps.verify_effect(
        desk,
        load_action(name),
        begun,
        steps.run_action(desk, load_action(name), begun),
    )


if __name__ == "__main__":
    desk = desk_of(Path(sys.argv[1]))
    with hold_controller_lock(desk.home):
        if sys.argv[2:]:
            sys.exit(alone(desk, *sys.argv[3:]))
        run_effects(desk)
