"""Opens a log file: its text is unpacked, as UTF-8."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.text.packed_text import ByteSource, UnpackingError, open_text


@contextmanager
def open_log(name: str) -> Iterator[tuple[LogText, datetime]]:
    """Open a log by its path, `-` for standard input; yield its text as UTF-8, and when it was last written.

    gzip, bzip2, xz and zstd are unpacked. Raises AssayError where the log cannot be read.
    """
    where = "standard input" if name == "-" else name
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb", buffering=0) as file:
            written = datetime.now(UTC) if name == "-" else datetime.fromtimestamp(Path(name).stat().st_mtime, UTC)
            yield unpack_text(file), written
    except OSError as error:
        raise AssayError(f"cannot be read: {error.strerror or error}", where=where) from None


class LogText:
    """The text of a log. `broken` says why it ends before the log does, as far as it was read; "" if it does not."""

    def __init__(self, source: ByteSource, broken: str = "") -> None:
        self.broken, self._source = broken, source

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        try:
            return self._source.read(size)
        except UnpackingError as error:
            self.broken = self.broken or str(error)
            return b""


def unpack_text(file: ByteSource) -> LogText:
    """Return the text of a file as UTF-8: unpacked, without a byte order mark."""
    return LogText(open_text(file))
