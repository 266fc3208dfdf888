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
from assay.model.texts.packed_text import ByteSource, UnpackingError, open_text, read_up_to

MAX_MAIL_BYTES = 64 * 1024 * 1024
_MAIL_HEADER = (
    rb"(?:Return-Path|Delivered-To|Received|From|To|Cc|Subject|Date"
    rb"|Message-I[Dd]|MIME-Version|Content-[\w-]+|X-[\w-]+)"
)
MAIL_BEGINS = re.compile(rb"(?:From \S[^\n]*\n)?" + _MAIL_HEADER + rb": ?[^\n]*\r?\n(?:[ \t][^\n]*\n)*[A-Z][\w-]*: ?")
"""How a mail begins: with two headers."""


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

    def put_back(self, content: bytes) -> None:
        """Let `content` be read again, before the rest."""
        self._source = ChainedStream(content, self._source)


def unpack_text(file: ByteSource) -> LogText:
    """Return the text of a file as UTF-8: unpacked, without a byte order mark, what a mail holds."""
    source = open_text(file)
    return _open_mail(LogText(source)) if MAIL_BEGINS.match(source.first) else LogText(source)


def _open_mail(mail: LogText) -> LogText:
    """Return what a mail holds. One that is too long is read as it is."""
    from assay.observe.logs.mail_text import decode_mails

    content = read_up_to(mail, MAX_MAIL_BYTES)
    if len(content) == MAX_MAIL_BYTES:
        mail.put_back(content)
        return mail
    parts = [LogText(open_text(io.BytesIO(part))) for part in decode_mails(content)]
    texts = [read_up_to(part, MAX_MAIL_BYTES) for part in parts]
    broken = next((part.broken for part in (mail, *parts) if part.broken), "")
    return LogText(io.BytesIO(b"\n".join(texts) or content), broken)


class ChainedStream:
    """Bytes that were read already, and then the rest of their source."""

    def __init__(self, first: bytes, rest: ByteSource) -> None:
        self._first, self._rest = io.BytesIO(first), rest

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        return self._first.read(size) or self._rest.read(size)
