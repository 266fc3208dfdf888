"""One message of a log, its form without what varies, and the count of lines that could not be read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

GPU_INTRODUCTION = "NVRM: The NVIDIA GPU "
"""How the driver begins to tell in several lines what happened to a GPU."""
LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")
SINCE_BOOT = "boot+"
"""How a stamp begins that counts from the boot."""


class LogMessage(NamedTuple):
    """One message of a log.

    `at`: seconds on the log's own clock, None without one. `stamp`: the same time as the log prints it. `uptime_s`:
    seconds since boot, if the log says so. `part`: the part that an event log names. `message_id`, `severity`: those of
    a Redfish entry. `host`, `program`: who wrote the message, "" if the log does not say. `is_cut`: the log breaks off
    within it. `level`: the kernel's, from 0 (emergency) to 7; None if the log does not say. `lines`: it stands for so
    many lines of a storm.
    """

    text: str
    at: float | None = None
    stamp: str | None = None
    uptime_s: float | None = None
    part: str = ""
    message_id: str = ""
    severity: str = ""
    host: str = ""
    program: str = ""
    is_cut: bool = False
    level: int | None = None
    lines: int = 1

    @property
    def wall(self) -> float | None:
        """The time in seconds since 1970, None if the log has no such clock."""
        if self.stamp is None or self.stamp.startswith(SINCE_BOOT):
            return None
        return self.at

    @property
    def is_of_kernel(self) -> bool:
        """Whether the kernel wrote the message, as far as the log says."""
        return self.program in ("", "kernel")


def parse_log_level(text: str) -> int | None:
    """Return the level that a syslog's priority (`3`, `11`) or a name (`err`) says, None for anything else."""
    if text.isdecimal() and len(text) <= 3:
        return int(text) % len(LEVELS)
    return LEVELS.index(text) if text in LEVELS else None


def replace_unencodable(text: Any) -> str:
    """Return text that can be stored and printed: an unpaired surrogate, possible in JSON, becomes a question mark."""
    return str(text).encode(errors="replace").decode()


@dataclass(slots=True)
class LineTally:
    """The number of lines read, and how many of them are not a complete line of such a log.

    `uncounted` is the first line in which a message begins that could not be counted, "" for none. `unread_line` is the
    first line of an event log that is no entry.
    """

    lines: int = 0
    unreadable: int = 0
    uncounted: str = ""
    unread_line: str = ""

    def note_unread(self, line: str) -> None:
        """Note a line that is not of its log."""
        self.unreadable += 1
        self.unread_line = self.unread_line or line.strip()

    def note_uncounted(self, line: str) -> None:
        """Note a line that names a fault which could not be counted."""
        self.note_unread(line)
        self.uncounted = self.uncounted or line.strip()


LONGEST_PART = 48
_VARIES = re.compile(
    r"[0-9a-f]{4,8}:[0-9a-f]{2}(?::[0-9a-f]{2})?(?:\.\d)?\b|\b0x[0-9a-f]+|\b(?=[a-f]*\d)[0-9a-f]{3,}\b"
    r"|\b(?-i:(?=\d*[A-Z])(?=[A-Z]*\d)[A-Z0-9]{2,})\b(?!-[a-z])|(?<![a-z])\d+|\d++(?!_|-[a-z]|[a-z]{2})",
    re.IGNORECASE,
)
"""Addresses, serial numbers, and numbers; not those in a driver's name: `mlx5_core`, `EXT4-fs`."""
_SAME = re.compile(r"#(?:[-:.,/ ]?#)+")


@lru_cache(4096)
def find_message_form(text: str) -> str:
    """Return the form of a message: its words, with `#` for what differs."""
    return _SAME.sub("#", _VARIES.sub("#", " ".join(text.split())))


def name_form(text: str) -> str:
    """Return the form of a message as the name of a part: `nvrm-rminitadapter-failed`."""
    return "-".join(re.findall(r"[a-z]+", find_message_form(text).lower()))[:LONGEST_PART].rstrip("-")
