"""`--burn-in start|read|stop`: starts the supervisor apart from its caller, tells what it saw, and ends it.

Each may be repeated at any time. Starting what runs already changes nothing; starting after a reboot goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from typing import Any

from assay.node.burnin.journal import ERROR, LOCK, STOP, BurnInFolder, read_since
from assay.node.burnin.node_tasks import NodeMachine, close_descriptors, end_leftovers
from assay.node.burnin.supervisor import Supervisor
from assay.node.load_tools.load_delivery import DECLARATION_VARIABLE
from assay.node.probe.node_access import BOOT_ID_FILE, NodeRoot

MOST_BYTES = 2**20
START_S = 10.0
FULL = "the disk with its journal is full: what it sees waits in its memory"
STOP_S = 20.0
POLL_S = 0.05


def answer_burn_in(
    root: NodeRoot, request: str, plan: str, since: str, declared: tuple[str, str] = ("", ""), clock: str = ""
) -> dict[str, Any]:
    """Do what is asked and return the answer: `id`, `running`, `t` (seconds done), `boot`, `m`, and the new lines.

    A plan to stop another burn-in than the one that is here stops nothing. `clock`: the file with a lab's clock.
    """
    folder = BurnInFolder(root)
    try:
        if request == "start":
            _start(folder, {**json.loads(plan), "load": declared[0], "load_tools": declared[1], "clock": clock})
        elif request == "stop" and (not plan or json.loads(plan)["id"] == folder.read_plan().get("id")):
            _stop(folder)
    except OSError as error:
        return {"failed": f"{folder.path}: {error.strerror or error}"}
    return _describe(root, folder, since)


def _describe(root: NodeRoot, folder: BurnInFolder, since: str) -> dict[str, Any]:
    plan = folder.read_plan()
    try:
        boot = root.read_text(BOOT_ID_FILE)
    except OSError:
        boot = ""
    state = {"id": plan.get("id", ""), "phases": len(plan.get("phases", ())), "running": folder.is_supervised()}
    clock = {"t": folder.read_clock(), "boot": boot, "m": round(NodeMachine(folder, plan).read_time(), 2)}
    error = folder.read_text(ERROR) or (FULL if folder.is_full() else "")
    return {**state, **clock, "error": error, **read_since(folder, since, MOST_BYTES)}


def _start(folder: BurnInFolder, plan: dict[str, Any]) -> None:
    known = folder.read_plan()
    is_same = known.get("id") == plan["id"] and len(known.get("phases", ())) == len(plan["phases"])
    if folder.is_supervised():
        if is_same:
            return
        _stop(folder)
    folder.create()
    try:
        folder.write_plan(plan)
    except OSError:  # a full disk stops no test that the node knows
        if not is_same:
            raise
    _detach(folder)

    def has_started() -> bool:
        lines = read_since(folder, "", sys.maxsize)["lines"]
        return folder.is_supervised() or bool(lines and "end" in lines[-1])  # a short plan may have ended already

    _wait_until(has_started, START_S)


def _stop(folder: BurnInFolder) -> None:
    if not folder.is_supervised():
        return
    with contextlib.suppress(OSError):  # a full disk stops no end
        folder.replace(STOP, "")
    if _wait_until(lambda: not folder.is_supervised(), STOP_S):
        return
    with contextlib.suppress(ValueError, OSError), open(folder.file(LOCK), encoding="utf-8") as file:  # noqa: PTH123
        os.kill(int(file.read()), signal.SIGKILL)
    if _wait_until(lambda: not folder.is_supervised(), STOP_S):
        end_leftovers(folder)


def _wait_until(is_so: Any, within_s: float) -> bool:
    ends_at = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > ends_at:
            return False
        time.sleep(POLL_S)
    return True


def _detach(folder: BurnInFolder) -> None:
    """Run the supervisor in a process that outlives its caller and holds none of its pipes."""
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        return
    try:
        os.setsid()
        if os.fork() == 0:
            _let_go_of_caller()
            _supervise(folder)
    finally:
        os._exit(0)


def _let_go_of_caller() -> None:
    """Hold none of the caller's pipes, and live on when it is gone."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    close_descriptors()
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.chdir("/")


def _supervise(folder: BurnInFolder) -> None:
    lock = folder.take_lock()
    if lock is None:
        return
    with contextlib.suppress(OSError):  # a full disk stops no test
        os.ftruncate(lock, os.pwrite(lock, str(os.getpid()).encode(), 0))
    plan = folder.read_plan()
    if plan.get("load"):
        os.environ[DECLARATION_VARIABLE] = plan["load"]
    folder.remove(ERROR)
    end_leftovers(folder)
    try:
        Supervisor(folder, plan, NodeMachine(folder, plan)).run()
    except Exception as error:  # whatever it is: the controller starts it again, and reads why it ended
        with contextlib.suppress(OSError):
            folder.replace(ERROR, f"{type(error).__name__}: {error}")
