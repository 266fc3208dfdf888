"""Finds and ends what a lab started: its daemon, machines in qemu, and all that runs on its nodes, wherever it went.

Each of these processes has $ASSAY_ROOT below LAB/nodes, from the environment that it was started in, or is an Ansible
that a controller in the lab started, with $ANSIBLE_HOME in the lab's home. Sessions and parents are no guide: a burn-in
leaves them on purpose.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

VARIABLE = "ASSAY_ROOT"


def make_mark(home: Path) -> dict[str, str]:
    """Return the variable that marks a process of the lab in `home`."""
    return {VARIABLE: str(home.resolve() / "nodes")}


def list_marked_processes(home: Path) -> list[int]:
    """Return the ids of the processes of the lab in `home`, but for this one."""
    mark = "".join(f"\0{name}={text}" for name, text in make_mark(home).items()).encode()
    marks = (mark + b"/", mark + b"\0", f"\0ANSIBLE_HOME={home.resolve().parent}/".encode())
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            content = b"\0" + (folder / "environ").read_bytes()
            if any(one in content for one in marks):
                found.append(int(folder.name))
    return [process for process in found if process != os.getpid()]


def kill_marked_processes(home: Path) -> None:
    """Kill them all, and those that they start meanwhile. Return when none is left."""
    while processes := list_marked_processes(home):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)
