"""One message of a log, and the count of lines that could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class LogMessage(NamedTuple):
    """One message of a log.

    `at`: seconds on the log's own clock, None without one. `stamp`: the same time as the log prints it. `uptime_s`:
    seconds since boot, if the log counts from there. `part`: the part that an event log names. `message_id`: the
    MessageId of a Redfish entry.
    """

    text: str
    at: float | None = None
    stamp: str | None = None
    uptime_s: float | None = None
    part: str = ""
    message_id: str = ""


def replace_unencodable(text: Any) -> str:
    """Return text that can be stored and printed: an unpaired surrogate, possible in JSON, becomes a question mark."""
    return str(text).encode(errors="replace").decode()


@dataclass(slots=True)
class LineTally:
    """The number of lines read, and how many of them are not a complete line of such a log."""

    lines: int = 0
    unreadable: int = 0
