"""Ties a shard to the run that started it, and lets it start before its run knows what it is to judge."""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Never

PARENT_PID_VARIABLE = "ASSAY_STARTED_BY"
"""Environment variable of a shard: the process id of the run that started it."""
RECEIVED_SIGNALS: list[int] = []
"""The signals from outside that this shard has received."""
PR_SET_PDEATHSIG = 1  # linux/prctl.h


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


def become_pytest() -> None:
    """Import what a shard needs. Then become the `python -m pytest` that a line on stdin describes."""
    import_module("assay.validate.items.suite_hooks")  # with pytest; the plugin imports it when it finds suites
    arguments, environment, log = json.loads(sys.stdin.readline() or sys.exit("the run has ended"))
    os.environ.update(environment)
    with Path(os.devnull).open() as nothing, Path(log).open("a") as out:
        for number, file in enumerate((nothing, out, out)):
            os.dup2(file.fileno(), number)
    sys.argv = ["pytest", *arguments]
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    become_pytest()
