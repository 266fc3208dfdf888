"""Reads any log of a known form: opens it, detects its form, and yields the messages that may name a fault."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

from assay.model.errors import AssayError
from assay.model.log_message import LineTally, LogMessage
from assay.model.specs.kernel_log_and_xid_patterns import KernelLogMatcher
from assay.observe.logs.kernel_log_search import UNSTAMPED_FORM, ReadBytes, read_chunks
from assay.observe.logs.log_form_protocol import LogForm, LogQuery, UnknownLogForm, detect_log_form, list_log_forms

SAMPLE_LINES = 200
"""Lines by which the form of a log is detected."""
GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def open_log(name: str) -> Iterator[tuple[PeekedStream, datetime]]:
    """Open a log by its path, `-` for standard input; yield its stream and the time when it was last written.

    A log that is packed with gzip is unpacked. Raises AssayError where the log cannot be read.
    """
    where = "standard input" if name == "-" else name
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as file:
            written = datetime.now(UTC) if name == "-" else datetime.fromtimestamp(Path(name).stat().st_mtime, UTC)
            first = file.read(2)
            if first == GZIP_MAGIC:
                packed = gzip.GzipFile(fileobj=cast("BinaryIO", PeekedStream(first, cast("BinaryIO", file))))
                yield PeekedStream(b"", cast("BinaryIO", packed)), written
            else:
                yield PeekedStream(first, cast("BinaryIO", file)), written
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AssayError(f"cannot be read: {reason}", where=where) from None


class PeekedStream:
    """A stream whose first bytes were read already."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first, self._rest = first, rest

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end."""
        if self._first:
            piece, self._first = self._first[:size], self._first[size:]
            return piece
        return self._rest.read(size)


class LogReader:
    """A log that is read once. `where` names it in errors.

    `tally` counts while `messages` is read. `is_bmc_log` says whether the messages are a BMC's events; it is set when
    the first message comes.
    """

    def __init__(self, read: ReadBytes, matcher: KernelLogMatcher, written_at: datetime, where: str) -> None:
        self.tally, self.is_bmc_log = LineTally(), False
        self._read, self._matcher, self._written_at, self._where = read, matcher, written_at, where

    def messages(self) -> Iterator[LogMessage]:
        """Yield the messages that may name a fault, in order. Raises AssayError where the log is of no known form."""
        pieces = read_chunks(self._read)
        first = next(pieces, b"")
        sample = [line for line in first.splitlines() if line.strip()][:SAMPLE_LINES]
        if not sample:
            return
        try:
            form = detect_log_form(sample) or self._unstamped_form(sample)
            self.is_bmc_log = form.is_bmc_log
            yield from form.read(chain([first], pieces), LogQuery(self._matcher, self._written_at, self.tally))
        except UnknownLogForm:
            names = ", ".join(form.name for form in list_log_forms())
            raise AssayError("is no log that I can read", where=self._where, fix=f"known are: {names}") from None

    def _unstamped_form(self, sample: list[bytes]) -> LogForm:
        """Return the form without stamps if one of the lines names a fault. Raises UnknownLogForm."""
        if any(self._matcher.find_faults(line.decode(errors="replace")) for line in sample):
            return UNSTAMPED_FORM
        raise UnknownLogForm
