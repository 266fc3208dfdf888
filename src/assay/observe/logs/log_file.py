"""Opens a log file: its text is unpacked, as UTF-8, and what a mail holds."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from assay.model.errors import AssayError
from assay.model.texts.packed_text import ByteSource, open_text, read_up_to, unpack

MAX_MAIL_BYTES = 64 * 1024 * 1024
_MAIL_HEADER = (
    rb"(?:Return-Path|Delivered-To|Received|From|To|Cc|Subject|Date"
    rb"|Message-I[Dd]|MIME-Version|Content-[\w-]+|X-[\w-]+)"
)
MAIL_BEGINS = re.compile(rb"(?:From \S[^\n]*\n)?" + _MAIL_HEADER + rb": ?[^\n]*\r?\n(?:[ \t][^\n]*\n)*[A-Z][\w-]*: ?")
"""How a mail begins: with two headers."""


@contextmanager
def open_log(name: str) -> Iterator[tuple[ByteSource, datetime]]:
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


def unpack_text(file: ByteSource) -> ByteSource:
    """Return the text of a file as UTF-8: unpacked, without a byte order mark, what a mail holds.

    To read it raises UnpackingError where the file is cut or damaged.
    """
    text = open_text(file)
    return _open_mail(text) if MAIL_BEGINS.match(text.first) else text


def _open_mail(source: ByteSource) -> ByteSource:
    """Return what a mail holds. One that is too long is read as it is."""
    from assay.observe.logs.mail_text import decode_mails

    content = read_up_to(source, MAX_MAIL_BYTES)
    if rest := source.read(1):
        return ChainedStream(content + rest, source)
    parts = [read_up_to(unpack(io.BytesIO(part)), MAX_MAIL_BYTES) for part in decode_mails(content)]
    return io.BytesIO(b"\n".join(parts) or content)


class ChainedStream:
    """Bytes that were read already, and then the rest of their source."""

    def __init__(self, first: bytes, rest: ByteSource) -> None:
        self._first, self._rest = io.BytesIO(first), rest

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        return self._first.read(size) or self._rest.read(size)
