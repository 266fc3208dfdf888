"""Which kernel lines are worth bringing: a cheap look at the raw record, before anything is parsed.

Sent is every line at level warning or worse, every line with one of these words, and every line with one of the words
that the controller draws from its own patterns and tells us in its answers. So its catalogue may grow as it likes, and
no node needs a new agent for that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

KNOWN_WORTH = 2  # what a record is worth that tells of a known thing
WARNING_LEVEL = 4  # of the kernel's levels, include/linux/kern_levels.h; lower is worse
BUILT_IN_WORDS = (
    "NVRM",
    "nvidia",
    "mlx5",
    "infiniband",
    "nvme",
    "pcieport",
    "AER:",
    "EDAC",
    "mce:",
    "Hardware Error",
    "Out of memory",
    "oom-kill",
    "EXT4-fs",
    "XFS (",
    "I/O error",
    "blocked for more than",
    "lockup",
    "Link is Down",
    "link down",
    "thermal",
)
"""Drivers and subsystems whose informational lines tell of faults too: a link that goes down is told at level info."""


class KernelLogFilter:
    """The words looked for now. An empty word in `told` means: every line."""

    def __init__(self, told: Sequence[str] = ()) -> None:
        self.controller_words = tuple(told)
        self._sought = re.compile("|".join(map(re.escape, (*BUILT_IN_WORDS, *told))).encode(), re.IGNORECASE)

    def rate_record(self, record: bytes) -> int:
        """Return what a raw record is worth: 2 when it tells of a known thing, 1 when it only warns, 0 else."""
        if self._sought.search(record):
            return KNOWN_WORTH
        return 1 if parse_level(record) <= WARNING_LEVEL else 0


def parse_level(record: bytes) -> int:
    """Return the kernel's level of a record, `prio,seq,…`: the low three bits of its priority."""
    priority = record.partition(b",")[0]
    return int(priority) & 7 if priority.isdigit() else WARNING_LEVEL
