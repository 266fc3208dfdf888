"""Starts and stops the lab's one process, and says whether it is up."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

from assay.lab.build import build_world
from assay.lab.inject import inject
from assay.lab.scenario import Scenario
from assay.lab.world import World
from assay.model.errors import Trouble
from assay.model.fleet import Fleet

UP_WITHIN_S = 30.0
DOWN_WITHIN_S = 10.0


def clear(home: Path) -> None:
    """Take away an earlier rehearsal in `home`, with its ledger. A ledger that no lab made is never touched."""
    if (home / "ledger.sqlite").exists() and not (home / "lab").exists():
        raise Trouble(
            "this repository has the ledger of a real fleet; a rehearsal would overwrite it",
            where=str(home / "ledger.sqlite"),
            fix="rehearse in another clone",
        )
    stop(World(home / "lab"))
    shutil.rmtree(home, ignore_errors=True)


def prepare(fleet: Fleet, world: World, start: datetime, rate: float, scenario: Scenario | None) -> None:
    """Make the world, with what the scenario plants."""
    build_world(fleet, world, start, rate)
    for wish in scenario.plant if scenario else ():
        inject(world, wish.fault, wish.node, wish.arguments)


def start(world: World) -> None:
    """Start the lab's process and wait until every virtual part answers."""
    if running(world):
        raise Trouble("the lab is up already", where=str(world.home), fix="`assay lab down` first")
    log = (world.home / "lab.log").open("a")
    process = subprocess.Popen(
        [sys.executable, "-m", "assay.lab.daemon", str(world.home)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    deadline = time.monotonic() + UP_WITHIN_S
    while not (world.home / "inventory.yml").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise Trouble("the lab did not come up", where=str(world.home / "lab.log"), fix="the log says why")
        time.sleep(0.05)


def stop(world: World) -> bool:
    """End the lab's process; its world stays. Return whether there was one."""
    pid = running(world)
    if not pid:
        (world.home / "inventory.yml").unlink(missing_ok=True)
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + DOWN_WITHIN_S
    while running(world):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    (world.home / "inventory.yml").unlink(missing_ok=True)
    return True


def running(world: World) -> int:
    """Return the process id of the lab, 0 when it is down."""
    try:
        pid = int(json.loads((world.home / "lab.json").read_text())["pid"])
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError, KeyError):
        return 0
    return pid if str(world.home).encode() in command else 0
