"""A shard's process ends with the one that started it, however that ends: nobody is left to hear what it finds."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from assay.harness.plugin import STARTED_BY

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent() -> None:
    """Let the kernel kill this process when the one that is named in the environment, its parent, ends.

    Not told to what this process starts itself. Raises SystemExit where the parent has ended already.
    """
    parent = os.environ.pop(STARTED_BY, "")
    if not parent:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        raise SystemExit(f"process {parent}, which started this shard, has ended")
