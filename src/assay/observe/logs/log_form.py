"""What a log form is: one module, and an entry point of the group `assay.log_forms` that names an object.

Every form rates the first lines of a log, and the form with the highest rating reads the log. Text that is of no form
is read line by line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from assay.model.log_message import LineTally, LogMessage
from assay.model.plugins import LOG_FORMS
from assay.model.specs.log_patterns import KernelLogMatcher

STAMP = re.compile(rb"\[ *\d+\.\d{6}\]")
BRACKETS = rb"\[[^\]]{1,40}+\]"
"""A time, or the thread or processor that some kernels write after it."""
OTHER = re.compile(rb"\n[^\[\n]")
OPENS_DOCUMENT = b"{"
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
"""A document in JSON is read as a whole, and takes up to ten times its size in memory."""


class DmesgPieces:
    """Remembers of the newest piece whether it is dmesg's alone: several readers ask, and one search answers all.

    Most of a log's bytes stand in such pieces. No syslog line and no row of an event log does, so they are not searched
    for these.
    """

    def __init__(self, matcher: KernelLogMatcher) -> None:
        harmless = rb" (?!" + matcher.prefix_regex().encode() + rb"))"
        unusual = rb"(?!" + BRACKETS + harmless + rb"(?!" + BRACKETS * 2 + harmless + rb"(?=[^\n])"
        self._begins_unusual = re.compile(unusual)
        self._unusual = re.compile(rb"\n" + unusual)
        self._piece = b""
        self._is_dmesg = False

    def holds_only_dmesg(self, piece: bytes) -> bool:
        """Whether the first line has the kernel's stamp, all begin with its bracket, and no document in JSON begins."""
        if piece is not self._piece:
            self._piece = piece
            self._is_dmesg = STAMP.match(piece) is not None and OPENS_DOCUMENT not in piece and not OTHER.search(piece)
        return self._is_dmesg

    def find_unusual_lines(self, piece: bytes) -> list[int]:
        """Return where the lines of dmesg begin that are no stamp with a message that begins as no fault does."""
        first = [0] if self._begins_unusual.match(piece) else []
        return first + [match.end() for match in self._unusual.finditer(piece)]


class LogQuery(NamedTuple):
    """What is read from a log: the messages that `matcher` may match.

    The form counts the lines in `tally`. `written_at` is the time when the log was last written, for forms whose times
    name no year. `dmesg` knows the pieces in which nothing but dmesg's lines stand.
    """

    matcher: KernelLogMatcher
    written_at: datetime
    tally: LineTally
    dmesg: DmesgPieces


class LogForm(Protocol):
    """One form in which logs are written down."""

    @property
    def name(self) -> str:
        """The form's name for people, such as `ipmitool sel list`."""

    @property
    def is_bmc_log(self) -> bool:
        """Whether the messages are events of a BMC, not lines of a kernel."""

    def rate(self, sample: Sequence[bytes]) -> float:
        """Return how well a log's first lines, without blank ones, fit this form: from 0 (not at all) to 1."""

    def read(self, pieces: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
        """Yield the messages of a log, which comes in pieces that end with a line.

        Raises UnknownLogForm where the log is not of this form after all.
        """


class UnknownLogForm(ValueError):
    """The log is of no form that is known here."""


class TooLongDocument(UnknownLogForm):
    """A document in JSON of more than `MAX_DOCUMENT_BYTES`, which would have to be read as a whole."""


def list_log_forms() -> list[LogForm]:
    """Return every installed form, assay's own first. Raises AssayError where one cannot be loaded."""
    names = sorted(LOG_FORMS.names(), key=lambda name: (not LOG_FORMS.is_own(name), name))
    return [LOG_FORMS.load(name) for name in names]
