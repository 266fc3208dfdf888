"""What a log form is: one module, and an entry point of the group `assay.log_forms` that names an object.

Every form rates the first lines of a log, and the form with the highest rating reads the log. Text that is of no form
is read line by line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from assay.model.log_message import LineTally, LogMessage
from assay.model.plugins import LOG_FORMS
from assay.model.specs.kernel_log_and_xid_patterns import KernelLogMatcher
from assay.observe.logs.dmesg_pieces import DmesgPieces

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
"""A document in JSON is read as a whole, and takes up to ten times its size in memory."""


class LogQuery(NamedTuple):
    """What is read from a log: messages that `matcher` may match, or `every` message.

    The form counts the lines in `tally`.
    `written_at` is the time when the log was last written, for forms whose times name no year. `dmesg` knows the
    pieces in which nothing but dmesg's lines stand.
    """

    matcher: KernelLogMatcher
    written_at: datetime
    tally: LineTally
    dmesg: DmesgPieces
    every: bool = False


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
