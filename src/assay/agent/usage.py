"""What the agent itself costs the node."""

from __future__ import annotations

import os
import resource
import time

PAGE = os.sysconf("SC_PAGE_SIZE")


def cpu_s() -> float:
    """Return the CPU seconds of this process and of the children that it has waited for (the probe)."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(sum(one.ru_utime + one.ru_stime for one in spent), 3)


def rss_bytes() -> int:
    """Return the memory that this process holds now."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # see probe.files
        return int(file.read().split()[1]) * PAGE


def up_s() -> float:
    """Return the seconds since this node booted, asleep or not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
