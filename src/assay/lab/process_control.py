"""Makes the virtual fleet of a declared one, starts and stops the lab's process, and ends all that a lab started.

That is its daemon, and what runs on its nodes, wherever it went. Each such process has $ASSAY_ROOT
below LAB/nodes, from the environment that it was started in, or is an Ansible that a controller in the lab started,
with $ANSIBLE_HOME in the lab's home. Sessions and parents are no guide: a burn-in leaves them on purpose. When the
lab's clock jumps, the burn-ins work through the hours that passed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from pathlib import Path

from assay.declare.home import Home, find_lab_pid
from assay.fabric.design.compiler import compile_topology
from assay.lab.fabric.cabling import lay_cables
from assay.lab.faults.injection import inject_fault
from assay.lab.node.virtual_node import make_initial_state
from assay.lab.scenario import LabScenario
from assay.lab.virtual_node_state import write_json
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.node.burnin.journal import LOCK, BurnInFolder
from assay.node.probe.node_access import NodeRoot

VARIABLE = "ASSAY_ROOT"
DEFAULT_CLOCK_RATE = 60.0
"""Lab seconds in a real second: a two-minute boot takes two seconds."""
START_DEADLINE_S = 120.0
STOP_DEADLINE_S = 10.0
POLL_S = 0.2


def start_lab(world: LabWorld) -> None:
    """Start the lab's process and wait until every virtual part answers.

    Raises AssayError if the lab is up already, or does not come up within `START_DEADLINE_S`.
    """
    if find_lab_pid(world.home):
        raise AssayError("the lab is up already", where=str(world.home), fix="`assay lab down` first")
    log = (world.home / "lab.log").open("a")
    process = subprocess.Popen(
        [sys.executable, "-m", "assay.lab.daemon", str(world.home.resolve())],
        env=os.environ | make_mark(world.home),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    deadline = time.monotonic() + START_DEADLINE_S
    while not (world.home / "inventory.yml").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise AssayError("the lab did not start", where=str(world.home / "lab.log"), fix="read the log")
        time.sleep(0.05)


def stop_lab(world: LabWorld) -> bool:
    """End the lab's process and all that runs on its nodes; its world stays. Return whether the lab was up."""
    if pid := find_lab_pid(world.home):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_DEADLINE_S
    while find_lab_pid(world.home) and time.monotonic() < deadline:
        time.sleep(0.05)
    kill_marked_processes(world.home)
    (world.home / "inventory.yml").unlink(missing_ok=True)
    return bool(pid)


def build_world(
    fleet: Fleet,
    world: LabWorld,
    start: datetime,
    rate: float = DEFAULT_CLOCK_RATE,
    scenario: LabScenario | None = None,
    with_files: Collection[str] = (),
) -> None:
    """Make every node of the fleet booted at lab time `start`, cable the fabrics, and plant the scenario's faults.

    Only the nodes `with_files` (none: all) can be read and changed; a thousand files each are most of the work.
    """
    world.home.mkdir(parents=True, exist_ok=True)
    world.set_clock(start, rate)
    for node in fleet.nodes.values():
        initial = make_initial_state(node, fleet.spec_of(node.name), fleet.bundle_of(node.name), start)
        folder = world.folder(node.name)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "state.json", initial)
        write_json(folder / "new.json", initial)
        if not with_files or node.name in with_files:
            with world.change(node.name):
                pass  # this renders its files
    if designs := [design for design in fleet.designs.values() if not design.nvlink]:
        lay_cables(world, *(compile_topology(design, fleet) for design in designs))
    for step in scenario.plant if scenario else ():
        inject_fault(world, step.fault, step.node, step.arguments)


def delete_lab(home: Home) -> list[str]:
    """Stop the lab and delete its home, with the rehearsal's ledger. Return the names of what was in it.

    Raises AssayError, and deletes nothing, if this is no lab's home, or if its ledger was not made in a lab.
    """
    if not home.is_lab:
        raise AssayError("only a lab's home can be deleted", where=str(home.folder))
    ledger = home.folder / "ledger.sqlite"
    if ledger.exists():
        Ledger.open_for_reading(ledger, context="lab").close()
    stop_lab(LabWorld(home.world))
    names = sorted(path.name for path in home.folder.iterdir()) if home.folder.exists() else []
    if names:
        shutil.rmtree(home.folder)
    home.folder.mkdir(exist_ok=True)
    (home.folder / ".gitignore").write_text("*\n")  # fleets of earlier versions do not ignore it yet
    return [name for name in names if not name.startswith(".")]


def make_mark(home: Path) -> dict[str, str]:
    """Return the variable that marks a process of the lab in `home`."""
    return {VARIABLE: str(home.resolve() / "nodes")}


def list_marked_processes(home: Path) -> list[int]:
    """Return the ids of the processes of the lab in `home`, but for this one."""
    root = "".join(f"\0{name}={text}" for name, text in make_mark(home).items()).encode()
    marks = (root + b"/", root + b"\0", f"\0ANSIBLE_HOME={home.resolve().parent}/".encode())
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            content = b"\0" + (folder / "environ").read_bytes()
            if any(mark in content for mark in marks):
                processes.append(int(folder.name))
    return [process for process in processes if process != os.getpid()]


def kill_marked_processes(home: Path) -> None:
    """Kill them all, and those that they start meanwhile. Return when none is left."""
    while processes := list_marked_processes(home):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)


def let_time_pass(
    world: LabWorld, step: timedelta, tell: Callable[[str], object] = lambda _: None
) -> Callable[[Collection[str]], None]:
    """Move the lab's clock forward. The answer waits until the burn-ins of nodes have done these hours or have ended.

    `tell` gets a line about a wait. Each part of a phase runs twice or more.
    """
    folders = {node: BurnInFolder(NodeRoot(str(world.folder(node) / "root"))) for node in world.nodes()}
    supervisors = {node: folder.read_text(LOCK) for node, folder in folders.items()}
    ends = {node: folders[node].read_clock() + step.total_seconds() for node in _find_running(world, supervisors)}
    if ends:
        tell(f"{', '.join(ends)}: under load for {step.total_seconds() / 3600:g} h; this takes some minutes")
    world.jump(step)

    def wait(nodes: Collection[str]) -> None:
        while late := [node for node in ends if node in nodes and folders[node].read_clock() < ends[node]]:
            if not _find_running(world, {node: supervisors[node] for node in late}):
                return
            time.sleep(POLL_S)

    return wait


def _find_running(world: LabWorld, supervisors: dict[str, str]) -> list[str]:
    """Return the nodes whose supervisor lives. `supervisors`: its process id by node, "" for none."""
    alive = {str(process) for process in list_marked_processes(world.home)} if any(supervisors.values()) else set()
    return [node for node, process in supervisors.items() if process in alive]
