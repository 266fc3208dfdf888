"""Ties a shard to the run that started it, and forks shards from one process that has imported what each needs."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Never

PARENT_PID_VARIABLE = "ASSAY_STARTED_BY"
"""Environment variable of a shard: the process id of the run that started it."""
RECEIVED_SIGNALS: list[int] = []
"""The signals from outside that this shard has received."""
PR_SET_PDEATHSIG = 1  # linux/prctl.h
IMPORTED_LATE = ("assay.validate.items.suite_hooks", "assay.validate.fixtures.fabric_views", "assay.ledger.store")
"""What a shard imports for suites (with pytest), for checks of fabrics, and for those that count growth."""
CHILD_POLL_S, MAX_ORDER_BYTES = 0.02, 1 << 20
JUDGED_BY = ("CheckCatalog", "FirmwareBundle", "LifecyclePolicy", "ManagementProfile", "NodeSpec", "Provisioning")
"""Kinds of specs that judgements read: building their models takes longer than decoding the specs."""


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent, the run that started it, ends in whatever way.

    The first SIGINT or SIGTERM writes to disk what was judged; later ones are ignored, since a cluster signals every
    process of a job. The variable is removed, so it does not reach what this process starts. Raises SystemExit where
    the parent has ended already.
    """
    parent = os.environ.pop(PARENT_PID_VARIABLE, "")
    if not parent:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        raise SystemExit(f"process {parent}, which started this shard, has ended")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt_once)


def _interrupt_once(received: int, *_: object) -> Never:
    RECEIVED_SIGNALS.append(received)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def fork_pytests() -> None:
    """Import what every shard needs, and build the models of specs. Then fork a `python -m pytest` for each order.

    An order comes by the socket on stdin, with a socket of its own, which gets the id of the process, and its exit code
    when it has ended. The child imports fleet and suites itself: nothing of one judgement reaches another. The socket
    is closed when the run ends; then this process ends, and the kernel kills its children.
    """
    from assay.declare.fleet_cache import IMPORTS_LIST, SETTINGS_LIST
    from assay.model.specs.spec_document import load_spec_model

    for name in IMPORTED_LATE:
        import_module(name)
    for kind in JUDGED_BY:
        load_spec_model(kind).model_rebuild()
    for lists in (SETTINGS_LIST, IMPORTS_LIST):
        lists.rebuild()
    gc.freeze()
    orders, running = socket.socket(fileno=os.dup(0)), dict[int, socket.socket]()
    while True:
        ready = select.select([orders], [], [], CHILD_POLL_S if running else None)[0]
        _report_ended(running)
        if not ready:
            continue
        order, descriptors, *_ = socket.recv_fds(orders, MAX_ORDER_BYTES, 1)
        if not order:
            return
        answers, forker = socket.socket(fileno=descriptors[0]), os.getpid()
        if (pid := os.fork()) == 0:
            for ours in (orders, answers, *running.values()):
                ours.close()
            _become_pytest(forker, *json.loads(order))
        os.setpgid(pid, pid)  # so that a signal reaches what it starts, too
        answers.send(str(pid).encode())
        running[pid] = answers


def _report_ended(running: dict[int, socket.socket]) -> None:
    """Send the exit code of each child that has ended to whom it was forked for."""
    for pid in [*running]:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with suppress(BrokenPipeError), running.pop(pid) as answers:
                answers.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become_pytest(forker: int, folder: str, arguments: list[str], environment: dict[str, str], log: str) -> Never:
    os.chdir(folder)
    sys.path[0] = folder
    os.environ.clear()
    os.environ.update(environment | {PARENT_PID_VARIABLE: str(forker)})
    with Path(os.devnull).open() as nothing, Path(log).open("a") as out:
        for number, file in enumerate((nothing, out, out)):
            os.dup2(file.fileno(), number)
    sys.argv = ["pytest", *arguments]
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)
    raise SystemExit


if __name__ == "__main__":
    fork_pytests()
