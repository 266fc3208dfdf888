"""One entry of an event log as text, what its words mean, and what a reader of one form is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

CRITICAL = {"critical", "failed", "fatal", "non-recoverable", "nonrecoverable", "emergency"}
OVER = {"ok", "nominal", "normal", "information", "informational", "info", "repaired"}
"""Severities of entries that report no problem, or one that is repaired."""
TOOL_SPEAKS = re.compile(
    r"\s*(SEL has no entries|SDRR successfully erased|Err in cmd get|Get SDR |Caching SDR |Loading |Running Get )"
)
"""Lines in which ipmitool and FreeIPMI tell of themselves."""

LINE_ENDS = ("\n", "\r")


class TextEntry(NamedTuple):
    """One entry. `date` and `clock` are as printed; both are "" where the BMC's clock was not set yet.

    `is_over`: it reports no problem, or the end of one. `is_cut`: the log breaks off within it.
    """

    ident: str
    text: str
    date: str = ""
    clock: str = ""
    part: str = ""
    message_id: str = ""
    severity: str = ""
    is_over: bool = False
    is_cut: bool = False

    @classmethod
    def with_severity(cls, severity: str, ident: str, text: str, date: str = "", clock: str = "") -> TextEntry:
        """Return an entry with the severity that a tool prints in words of its own."""
        word = severity.strip().lower()
        level = "Critical" if word in CRITICAL else ""
        return cls(ident, text, date, clock, severity=level, is_over=word in OVER)


class UnreadLine(NamedTuple):
    """A line that is no whole entry. `is_entry`: it begins as one, so that an event is lost with it."""

    line: str
    is_entry: bool = False


class TextForm(Protocol):
    """One form in which a tool prints an event log."""

    @property
    def name(self) -> str:
        """The tool's name for people."""

    def counts_lines(self, sample: Sequence[str]) -> int:
        """Return how many of these lines, which are not blank, are of this form; 0 if the log cannot be of it."""

    def read_entries(self, lines: Iterable[str]) -> Iterator[TextEntry | UnreadLine]:
        """Yield the entries of a log in order, and the lines that are none. A last line without its end is cut."""


def join_words(*words: str) -> str:
    """Return the words of an entry as one text: `Power Supply PS1, Failure detected`."""
    return ", ".join(word for word in words if word)
