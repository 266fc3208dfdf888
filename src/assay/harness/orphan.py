"""A shard's process ends with the one that started it, however that ends: nobody is left to hear what it finds."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Never

from assay.harness.plugin import STARTED_BY

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent() -> None:
    """Let the kernel kill this process when the one that is named in the environment, its parent, ends.

    Told to end by SIGINT or SIGTERM, it puts on disk what was judged; whoever tells it twice, as a cluster does that
    tells all processes of a job, tells it once. What this process starts itself is told nothing. Raises SystemExit
    where the parent has ended already.
    """
    parent = os.environ.pop(STARTED_BY, "")
    if not parent:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        raise SystemExit(f"process {parent}, which started this shard, has ended")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)


def _interrupt(*_: object) -> Never:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
