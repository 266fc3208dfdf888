"""One message of a log, and what was met on the way to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class LogMessage(NamedTuple):
    """What a log says once. `at`: seconds on the log's own clock, None where it has none; `stamp`: that for people.

    `uptime_s`: seconds since the boot, where the log counts from there. `part`: what an event log names, "" else;
    `message_id`: that of a Redfish entry.
    """

    text: str
    at: float | None = None
    stamp: str | None = None
    uptime_s: float | None = None
    part: str = ""
    message_id: str = ""


def replace_unencodable(said: Any) -> str:
    """Return a text that can be kept and printed: half a letter, which JSON can write, becomes a question mark."""
    return str(said).encode(errors="replace").decode()


@dataclass(slots=True)
class LineTally:
    """How many lines were looked at, and how many of them are no line of such a log, or say too little."""

    lines: int = 0
    unreadable: int = 0
