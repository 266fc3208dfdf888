"""Reads any log that is known: finds out what it is, and yields what it says of interest.

Opens a log: a file, one packed with gzip, or what stands on standard input.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

from assay.model.errors import AssayError
from assay.model.log_message import LineTally, LogMessage
from assay.model.specs.kernel_log_patterns import KernelLogMatcher
from assay.observe.logs import kernel_log_search, sel_and_redfish_entries
from assay.observe.logs.log_formats import LOG_FORMATS, UNSTAMPED_FORMAT, LogFormat, detect_log_format

GZIP_MAGIC = b"\x1f\x8b"


class PeekedStream:
    """A stream of which the first bytes have been looked at already."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first, self._rest = first, rest

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end."""
        if self._first:
            given, self._first = self._first[:size], self._first[size:]
            return given
        return self._rest.read(size)


@contextmanager
def open_log(name: str) -> Iterator[tuple[PeekedStream, datetime]]:
    """Open a log by its path, `-` for standard input; say when it was written at last. Raises Trouble."""
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
        said = getattr(error, "strerror", None) or str(error)
        raise AssayError(f"cannot be read: {said}", where=where) from None


SAMPLE_LINES = 200  # lines by which a log is told
MAX_REDFISH_BYTES = 256 * 1024 * 1024  # bytes of a Redfish document
KNOWN_FORMATS = ", ".join(["ipmitool sel list", "a Redfish LogEntryCollection", *(form.name for form in LOG_FORMATS)])


class LogReader:
    """A log that is read once. `tally` counts while `messages` is drawn from. Raises Trouble for what is no log.

    `of_bmc`: its messages are a BMC's events, and no kernel's lines.
    """

    def __init__(
        self, read: kernel_log_search.ReadBytes, recogniser: KernelLogMatcher, before: datetime, where: str
    ) -> None:
        self.tally, self.is_bmc_log = LineTally(), False
        self._read, self._recogniser, self._before, self._where = read, recogniser, before, where

    def messages(self) -> Iterator[LogMessage]:
        """Yield what the log says of interest, in its order."""
        pieces = kernel_log_search.read_chunks(self._read)
        first = next(pieces, b"")
        lines = [line for line in first.splitlines() if line.strip()][:SAMPLE_LINES]
        if not lines:
            return
        if sum(map(sel_and_redfish_entries.is_sel_line, lines)) * 2 > len(lines):
            self.is_bmc_log = True
            yield from sel_and_redfish_entries.parse_sel_lines(_text(chain([first], pieces)), self.tally)
        elif (form := detect_log_format(lines)) is not None:
            yield from self._kernel(form, chain([first], pieces))
        elif first.lstrip()[:1] in (b"{", b"["):
            self.is_bmc_log = True
            yield from sel_and_redfish_entries.parse_redfish_entries(
                self._entries(first + b"".join(_bounded(pieces))), self.tally
            )
        else:
            yield from self._kernel(self._bare(lines), chain([first], pieces))

    def _kernel(self, form: LogFormat, pieces: Iterable[bytes]) -> Iterator[LogMessage]:
        return kernel_log_search.find_kernel_messages(form, self._recogniser, pieces, self._before, self.tally)

    def _entries(self, content: bytes) -> list[Any]:
        try:
            found = sel_and_redfish_entries.find_log_entries(json.loads(content))
        except (ValueError, RecursionError):
            found = None
        if found is None:
            raise self._unknown_format()
        return found

    def _bare(self, lines: list[bytes]) -> LogFormat:
        """Return the form without any stamps, if a message of interest is there to believe it by."""
        texts = (line.decode(errors="replace") for line in lines)
        if not any(map(self._recogniser.find_faults, texts)):
            raise self._unknown_format()
        return UNSTAMPED_FORMAT

    def _unknown_format(self) -> AssayError:
        return AssayError("is no log that I can read", where=self._where, fix=f"known are: {KNOWN_FORMATS}")


def _text(pieces: Iterator[bytes]) -> Iterator[str]:
    for piece in pieces:
        yield from piece.decode(errors="replace").splitlines()


def _bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_REDFISH_BYTES:
            return
        yield piece
