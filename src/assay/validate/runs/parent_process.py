"""Ties a shard to the run that started it. It imports no pytest, which the run itself does not need."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
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
