"""A controller whose disk (ledger, evidence, DBOS's file) becomes full between two passes, and has room again later."""

# ruff: noqa: T201 — a program; its answer
from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path

from assay.decide.state.node_projection import project_node_states
from assay.ledger.store import Ledger
from assay.model.clock import ScaledClock
from assay.model.errors import AssayError
from tests.integration.chaos.chaos_controller import ORIGIN, Controller, fleet_of
from tests.integration.chaos.chaos_world import World
from tests.support.ballast import fill


def main(disk: Path, elsewhere: Path, what: str) -> None:
    """Let nodes fall ill before and while the disk is full. On it lies everything, or only the file of DBOS.

    The world lies elsewhere, and never is full.
    """
    root, other = (disk, elsewhere) if what == "everything" else (elsewhere, disk)
    (root / ".assay" / "locks").mkdir(parents=True)
    lies_there = Path("world.sqlite") if what == "everything" else Path(".assay/dbos.sqlite")
    (root / lies_there).symlink_to(other / lies_there.name)
    fleet, clock = fleet_of(root, 10), ScaledClock(datetime.fromisoformat(ORIGIN), time.time(), 600.0)
    world, ledger = World(root), Ledger.open(root / "ledger.sqlite", patience_s=2)
    world.make(fleet.nodes)
    one = Controller(root, str(root / "ledger.sqlite"), fleet, clock, seed=3, refused=0)
    one.take_pass(ledger, settle=True)
    _ill(world, "n0001")
    while not world.done():
        one.take_pass(ledger, settle=True)
    fill(disk)
    _ill(world, "n0004")
    said = _while_full(one, ledger)
    (disk / "ballast").unlink()
    deadline = time.monotonic() + 100
    while world.ill() or not one.settled(ledger) or set(states(ledger)) != {"production"}:
        assert time.monotonic() < deadline, (world.ill(), states(ledger), said)
        one.take_pass(ledger, settle=True)
    assert ledger.verify() == []
    done = sorted((node, what) for node, what, _ in world.done())
    assert done == [("n0001", "reboot"), ("n0004", "reboot")], done
    print("\n".join(said))


def _ill(world: World, node: str) -> None:
    world.fall_ill(node, "gpu.missing", "reboot")


def _while_full(one: Controller, ledger: Ledger) -> list[str]:
    said: list[str] = []
    deadline = time.monotonic() + 100
    while len(said) < 3:
        assert time.monotonic() < deadline, "nobody noticed that the disk is full"
        try:
            one.take_pass(ledger, settle=True)
        except AssayError as trouble:
            said.append(str(trouble))
    return said


def states(ledger: Ledger) -> list[str]:
    """Return where the nodes are."""
    return [story.state for story in project_node_states(ledger.entries()).values()]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
