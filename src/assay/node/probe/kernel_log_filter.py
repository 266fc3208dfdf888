"""Rates raw kernel records by priority, to choose those worth sending before anything is parsed.

Worth sending are lines at level warning or worse, and lines with a built-in word or one of the controller's words. The
controller derives its words from its fault patterns and sends them in its answers, so a larger catalogue needs no new
agent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

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
"""Drivers and subsystems that report faults at level info too: a link that goes down, for one."""


class RecordPriority(IntEnum):
    """How much a record matters. Where space is short, records of a lower priority go first."""

    ROUTINE = 0
    """Neither of the others; the agent keeps its own probe readings at this priority too."""
    WARNING = 1
    """The kernel's level is warning or worse."""
    KNOWN = 2
    """The record has a word of the filter."""


class KernelLogFilter:
    """Looks for the built-in words and for `controller_words`. An empty word among these matches every line."""

    def __init__(self, controller_words: Sequence[str] = ()) -> None:
        self.controller_words = tuple(controller_words)
        words = (*BUILT_IN_WORDS, *controller_words)
        self._words = re.compile("|".join(map(re.escape, words)).encode(), re.IGNORECASE)

    def rate_record(self, record: bytes) -> RecordPriority:
        """Return the priority of a raw record."""
        if self._words.search(record):
            return RecordPriority.KNOWN
        return RecordPriority.WARNING if parse_level(record) <= WARNING_LEVEL else RecordPriority.ROUTINE


def parse_level(record: bytes) -> int:
    """Return the kernel's level of a record `prio,seq,…`: the low three bits of `prio`."""
    priority = record.partition(b",")[0]
    return int(priority) & 7 if priority.isdigit() else WARNING_LEVEL
